"""Which fields of a card a person is known to have written, from the history of its file."""

from __future__ import annotations

from klineage.errors import KlineageError
from klineage.skill.card import Card
from klineage.skill.file import parse
from klineage.skill.library.fields import changed_fields, parts
from klineage.skill.library.git import GitShelf

#: How the titles of commits begin whose words are those of a lift, or of another tool's card.
_MADE = ("Lift ", "Import ")


def by_hand(shelf: GitShelf, commit: str, path: str) -> frozenset[str]:
    """The fields (``intent``, ``carrier`` ...) that an edit wrote in the history that leads to ``commit``.

    Lifts, imports, pulls and what machines add are none. Empty for a folder's cards (the commit ""): nobody knows.
    """
    found: set[str] = set()
    for entry in shelf.log(commit, path) if commit else ():
        if entry.kind not in ("edit", "") or entry.title.startswith(_MADE):
            continue
        before, after = shelf.changed(entry.commit).get(path, ("", ""))
        if not after:
            continue
        card = _card(shelf, path, after)
        old = _card(shelf, path, before) if before else None
        if card is not None and old is not None:
            found |= {change.field.partition(".")[0] for change in changed_fields(old, card)}
        elif card is not None:
            found |= parts(card).keys()
    return frozenset(found)


def _card(shelf: GitShelf, path: str, revision: str) -> Card | None:
    try:
        return parse(shelf.contents({path: revision})[path], path)
    except KlineageError:
        return None  # a version that nobody can read: what it says is known from the edit that mends it
