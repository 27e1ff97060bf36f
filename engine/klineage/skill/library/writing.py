"""Saving cards: one commit, made of what the branch holds at that moment; and reading what was saved before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from klineage.errors import KlineageError
from klineage.lineage import Moved, store
from klineage.skill.card import Card, check_id
from klineage.skill.file import edited, parse, render
from klineage.skill.library.fields import changed_fields
from klineage.skill.library.git import Change, GitShelf, listing
from klineage.skill.library.history import Revision, Word

Made = Mapping[str, tuple[Card, bytes]]
_NAMED = 3  # fields or cards in a commit's subject


def card_file(card_id: str) -> str:
    """The path of a card in a library's branch. Raises KlineageError for what cannot name a card."""
    return f"cards/{check_id(card_id)}.md"


def report_name(report: str | bytes) -> str:
    """The file name of a gate report (its JSON) in a library's ``reports``, as ``Evidence.report`` has it."""
    return hashlib.sha256(_bytes(report)).hexdigest()[:16] + ".json"


def _bytes(report: str | bytes) -> bytes:
    return report.encode("utf-8", "surrogatepass") if isinstance(report, str) else report


def file_of(card: Card, old: bytes) -> bytes:
    """The file of a card: ``old`` with what differs rewritten, or a new one where there was none (b"").

    Raises KlineageError for a card that could not be read again.
    """
    data = edited(old, card) if old else render(card)
    parse(data, f"{card.id}.md")
    return data


def commit(
    shelf: GitShelf,
    make: Callable[[Callable[[str], bytes]], Made],
    word: Word,
    who: str = "",
    reports: Iterable[str | bytes] = (),
    expected: Mapping[str, str] | None = None,
) -> str:
    """Save what ``make`` makes of the present files, all in one commit; returns it, or the tip where nothing differs.

    make: from "the file of this card, b'' for none" to card id -> (card, its file). Raises Moved when a card's
    revision is not the one in ``expected``.
    """
    given = {f"reports/{report_name(report)}": _bytes(report) for report in reports}

    def plan(tip: str) -> Change | None:
        listed = shelf.listing(tip)
        for card_id, revision in (expected or {}).items():
            if listed.get(card_file(card_id), "") != revision:
                raise Moved(_moved(shelf, card_id) if revision else _there(card_id))
        old = _reader(shelf, listed)
        made = {key: pair for key, pair in make(old).items() if pair[1] != old(key)}
        files = {card_file(key): data for key, (_, data) in made.items()}
        files |= {path: data for path, data in given.items() if path not in listed}
        if not files:
            return None
        return Change(word if word.title else replace(word, title=_title(made, old)), files, who=who)

    return shelf.commit(plan)


def _reader(shelf: GitShelf, listed: Mapping[str, str]) -> Callable[[str], bytes]:
    def read(card_id: str) -> bytes:
        path = card_file(card_id)
        return shelf.contents({path: listed[path]})[path] if listed.get(path) else b""

    return read


def _there(card_id: str) -> str:
    return f"there is a card {card_id} already; nothing was changed, take another id"


def _moved(shelf: GitShelf, card_id: str) -> str:
    log = shelf.log(None, card_file(card_id))
    if not log:
        return f"there is no card {card_id} here, and one was expected; nothing was changed"
    why = f" ({log[0].title})" if log[0].title else ""
    return f"{log[0].who} has changed {card_id} meanwhile{why}; nothing was changed, look at it and do yours again"


def _title(made: Made, old: Callable[[str], bytes]) -> str:
    """The subject of a commit from what it changes."""
    if not made:
        return "Add gate reports"
    if len(made) > 1:
        more = f" and {len(made) - _NAMED} more" if len(made) > _NAMED else ""
        return f"Edit {', '.join(list(made)[:_NAMED])}{more}"
    ((card_id, (card, _)),) = made.items()
    if not (before := old(card_id)):
        return f"Add {card_id}"
    try:
        fields = [change.field for change in changed_fields(parse(before, card_file(card_id)), card)]
    except KlineageError:  # the edit mends a broken file
        return f"Mend {card_id}"
    more = f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else ""
    return f"Edit {card_id}: {', '.join(fields[:_NAMED]) or 'its form'}{more}"


def history(shelf: GitShelf, card_id: str) -> tuple[Revision, ...]:
    """The commits that changed a card, newest first, with its revision after each; all of the library's for ""."""
    if not card_id:
        return tuple(shelf.log())
    path = card_file(card_id)
    log = shelf.log(None, path)
    if not log:
        raise KlineageError(f"there never was a card {card_id!r} in {shelf.workspace.path}")
    hashes = shelf.hashes([entry.commit for entry in log], path)
    return tuple(replace(entry, revision=found) for entry, found in zip(log, hashes, strict=True))


def file_at(shelf: GitShelf, card_id: str, commit: str) -> bytes:
    """The file of a card in a commit of the library. Raises KlineageError when it is not there."""
    path = card_file(card_id)
    name = store.commit(shelf.git, commit).commit
    revision = listing(shelf.git, name).get(path)
    if not revision:
        raise KlineageError(f"commit {commit[:12]} of the library has no card {card_id}")
    return shelf.contents({path: revision})[path]
