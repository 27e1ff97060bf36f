"""Undo and redo of decisions on cards: one more commit that takes a decision's changes back, field by field.

What others have added to the same cards since stays (a probe's outcome, a trial); only where a later edit touched the
very field is there nothing to take back, and the field is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from klineage.errors import KlineageError
from klineage.skill.file import edited, parse
from klineage.skill.library.git import Change, GitShelf
from klineage.skill.library.history import Revision, Word, stacks
from klineage.skill.library.merge import merge_cards

Turn = Literal["undo", "redo"]


def next_title(shelf: GitShelf, turn: Turn) -> str:
    """The title of the decision that a turn would be about; "" for none."""
    stack = _stack(shelf, shelf.tip(), turn)
    return stack[-1].title if stack else ""


def turn(shelf: GitShelf, turn: Turn, who: str) -> str:
    """Take the last decision back, or the last undone one again; returns its title.

    Raises KlineageError when there is none, or later edits are in the way.
    """
    turned: list[Revision] = []

    def plan(tip: str) -> Change:
        stack = _stack(shelf, tip, turn)
        if not stack:
            raise KlineageError(f"there is nothing to {turn} in the library of {shelf.workspace.path}")
        decision = stack[-1]
        turned.append(decision)
        files, remove = _replay(shelf, tip, decision, turn)
        title = f"{turn.capitalize()}: {decision.title}"
        return Change(Word(title, kind=turn, of=decision.commit), files, remove, who=who)

    shelf.commit(plan)
    return turned[-1].title


def _stack(shelf: GitShelf, tip: str, turn: Turn) -> list[Revision]:
    undo, redo = stacks(reversed(shelf.log(tip, first_parent=True)))
    return list(undo if turn == "undo" else redo)


def _replay(
    shelf: GitShelf, tip: str, decision: Revision, turn: Turn
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files that the turn writes, and those that it removes. Reports stay: they are named by what they hold."""
    changed = {p: pair for p, pair in shelf.changed(decision.commit).items() if not p.startswith("reports/")}
    listed = shelf.listing(tip)
    files: dict[str, bytes] = {}
    remove: list[str] = []
    for path, (before, after) in changed.items():
        old, new = (after, before) if turn == "undo" else (before, after)
        now = listed.get(path, "")
        if now not in (old, new):
            files[path] = _merged(shelf, path, {"old": old, "new": new, "now": now}, decision, turn)
        elif now == old and new:
            files[path] = shelf.contents({path: new})[path]
        elif now == old:
            remove.append(path)
    return files, tuple(remove)


def _merged(shelf: GitShelf, path: str, at: Mapping[str, str], decision: Revision, turn: Turn) -> bytes:
    """The present file without (or with) what the decision changed in it."""
    why = f"cannot {turn} {decision.title!r}: "
    if not at["new"]:
        raise KlineageError(
            f"{why}{path} has grown since; klineage card retire puts the card out of use instead"
        )
    if not all(at.values()):
        raise KlineageError(f"{why}{path} has been changed since; edit it by hand")
    data = {name: shelf.contents({path: revision})[path] for name, revision in at.items()}
    old, new, now = (parse(data[name], path) for name in ("old", "new", "now"))
    card, conflicts = merge_cards(old, now, new)
    if conflicts:
        fields = ", ".join(conflict.field for conflict in conflicts)
        raise KlineageError(f"{why}{fields} of {now.id} has been edited since; edit it by hand")
    return edited(data["now"], card)
