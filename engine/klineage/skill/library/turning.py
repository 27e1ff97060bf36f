"""Undo and redo of decisions on cards: one more commit that takes a decision's changes back, field by field.

What others have added to the same cards since stays (a probe's outcome, a trial); only where a later edit touched the
very field is there nothing to take back, and the field is named. A decision on many cards is taken back on all that
have not been edited or added to since, and the others are named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from klineage.errors import KlineageError
from klineage.skill.file import edited, parse
from klineage.skill.library.git import Change, GitShelf
from klineage.skill.library.history import Revision, Word, stacks, undone
from klineage.skill.library.merge import merge_cards

Turn = Literal["undo", "redo"]

_NAMED = 3  # what came after a decision, in a sentence


def next_title(shelf: GitShelf, turn: Turn) -> str:
    """The title of the decision that a turn would be about; "" for none."""
    stack = _stack(shelf, shelf.tip(), turn)
    return stack[-1].title if stack else ""


def turn(shelf: GitShelf, turn: Turn, who: str) -> str:
    """Take the last decision back, or the last undone one again; returns its title, and what of it was left as it is.

    Of a decision on several cards, those that cannot go back are left, each with what is in the way. Raises
    KlineageError when there is no decision, or nothing of it can be turned.
    """
    said: list[str] = []

    def plan(tip: str) -> Change:
        stack = _stack(shelf, tip, turn)
        if not stack:
            raise KlineageError(f"there is nothing to {turn} in the library of {shelf.workspace.path}")
        decision = stack[-1]
        replay = _replay(shelf, tip, decision, turn)
        if replay.kept and not replay.files and not replay.remove:
            raise KlineageError(f"cannot {turn} {decision.title!r}: {'; '.join(replay.kept)}")
        said.append("; ".join((decision.title, *(f"but not all: {why}" for why in replay.kept))))
        title = f"{turn.capitalize()}: {decision.title}"
        word = Word(title, "\n".join(replay.kept), kind=turn, of=decision.commit)
        return Change(word, replay.files, tuple(replay.remove), who=who)

    shelf.commit(plan)
    return said[-1]


def _stack(shelf: GitShelf, tip: str, turn: Turn) -> list[Revision]:
    undo, redo = stacks(reversed(shelf.log(tip, first_parent=True)))
    return list(undo if turn == "undo" else redo)


@dataclass
class _Replay:
    """What a turn writes and removes. ``kept``: a sentence for each card that it leaves as it is."""

    files: dict[str, bytes] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def _replay(shelf: GitShelf, tip: str, decision: Revision, turn: Turn) -> _Replay:
    """What the turn does to each card. Reports stay: they are named by what they hold."""
    changed = {p: pair for p, pair in shelf.changed(decision.commit).items() if not p.startswith("reports/")}
    listed = shelf.listing(tip)
    replay = _Replay()
    for path, (before, after) in changed.items():
        old, new = (after, before) if turn == "undo" else (before, after)
        now = listed.get(path, "")
        if now == old and new:
            replay.files[path] = shelf.contents({path: new})[path]
        elif now == old:
            replay.remove.append(path)
        elif now != new:
            try:
                since = _since(shelf, decision, tip, path)
                replay.files[path] = _merged(shelf, path, {"old": old, "new": new, "now": now}, since)
            except KlineageError as problem:
                replay.kept.append(str(problem))
    return replay


def _since(shelf: GitShelf, decision: Revision, tip: str, path: str) -> str:
    """What has been done to a card since a decision and still stands, in the words of the log."""
    back = {entry.commit for entry in undone(reversed(shelf.log(tip, first_parent=True)))}
    log = shelf.log(f"{decision.commit}..{tip}", path, first_parent=True)
    said = [f"{e.title}, by {e.who}" for e in log if e.kind not in ("undo", "redo") and e.commit not in back]
    return ", ".join(said[:_NAMED]) + ", ..." * (len(said) > _NAMED)


def _merged(shelf: GitShelf, path: str, at: Mapping[str, str], since: str) -> bytes:
    """The present file without (or with) what the decision changed in it. Raises KlineageError, with why not."""
    card_id = path.removeprefix("cards/").removesuffix(".md")
    if not at["new"]:
        raise KlineageError(
            f"{card_id} has grown since ({since}); klineage card retire {card_id} puts it out of use instead"
        )
    if not all(at.values()):
        raise KlineageError(f"{card_id} has been changed since ({since}) and is left as it is")
    data = {name: shelf.contents({path: revision})[path] for name, revision in at.items()}
    old, new, now = (parse(data[name], path) for name in ("old", "new", "now"))
    card, conflicts = merge_cards(old, now, new)
    if conflicts:
        fields = ", ".join(conflict.field for conflict in conflicts)
        raise KlineageError(f"{fields} of {card_id} has been edited since ({since}); edit it by hand")
    return edited(data["now"], card)
