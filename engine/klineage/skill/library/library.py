"""A library of cards: a branch of a workspace, where every decision is a commit, or a folder of files, to be read.

::

    library = Library.of(workspace)                    # or Library.open(PATH): a workspace or a folder
    for entry in library.cards():                      # all of them in bulk; a broken one has ``problem``, not ``card``
        ...
    card = library.get("c.prefetch")
    library.save(card, "Ann", "why", expected=entry.revision)
    library.update("c.prefetch", lambda card: replace(card, ...), reports=[report_json], machine=True)

``save`` is for a person who has seen a version and edits it. ``update`` is for whoever adds to a card whatever it says by
now: a probe, a trial, a lift. Reading never waits for a writer; a write is one commit, complete when the method
returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.skill.card import Card, check_id
from klineage.skill.file import parse
from klineage.skill.library import turning, writing
from klineage.skill.library.entries import Entries, Entry
from klineage.skill.library.evidence import Dangling, dangling, opened_lineage
from klineage.skill.library.folder import FolderShelf, is_library, place_of
from klineage.skill.library.git import GitShelf
from klineage.skill.library.history import Revision, Word
from klineage.skill.library.sound import sound_card
from klineage.skill.library.source import SHIPPED
from klineage.skill.library.writing import card_file, report_name

__all__ = ["Entry", "Library", "Revision", "card_file", "report_name"]


class Library:
    """Cards, and the reports and lineages that they cite. May be used from several threads."""

    def __init__(self, shelf: GitShelf | FolderShelf, path: Path) -> None:
        self.path = path
        self._shelf = shelf
        self._entries = Entries(shelf)

    @classmethod
    def of(cls, workspace: Workspace) -> Library:
        """The library of an open workspace; empty where it has none yet."""
        return cls(GitShelf(workspace), workspace.path)

    @classmethod
    def open(cls, path: Path | str) -> Library:
        """The library at ``path``: the branch of a workspace, a folder with ``cards/`` (or with such folders), ``shipped``.

        Raises KlineageError where there is none.
        """
        where = Path(path).absolute()
        if str(path) == SHIPPED and not where.exists():
            where = shipped("library")
            return cls(FolderShelf(where), where)
        if not (where / ".git").exists() and is_library(where):
            return cls(FolderShelf(where), where)
        return cls.of(Workspace.open(where))

    def close(self) -> None:
        """End what reads in the background. The library can still be used."""
        if isinstance(self._shelf, GitShelf):
            self._shelf.workspace.close()

    @property
    def writable(self) -> bool:
        """Whether this is the branch of a workspace; a folder has no history and is only read."""
        return isinstance(self._shelf, GitShelf)

    @property
    def shelf(self) -> GitShelf | FolderShelf:
        """Where the bytes are."""
        return self._shelf

    def stamps(self) -> Mapping[str, str]:
        """Card id to revision, without reading a card: what an index compares itself with."""
        return {name: revision for name, _, revision in reversed(self._entries.files())}

    def cards(self) -> tuple[Entry, ...]:
        """Every card by id, read in bulk; each version is parsed once. Broken ones are named, the rest still opens."""
        return self._entries.all()

    def entry(self, card_id: str) -> Entry:
        """One card's file. Raises KlineageError when there is none of that id."""
        if (found := self._entries.one(card_id)) is not None:
            return found
        raise KlineageError(
            f"there is no card {card_id!r} in {self.path}; klineage card list shows what there is"
        )

    def get(self, card_id: str) -> Card:
        """The card. Raises KlineageError when there is none, or its file is broken."""
        entry = self.entry(card_id)
        if entry.card is None:
            raise KlineageError(entry.problem)
        return entry.card

    def source(self, card_id: str) -> bytes:
        """The file of a card, byte for byte, also of a broken one."""
        entry = self.entry(card_id)
        if not entry.revision:
            raise KlineageError(entry.problem)
        return self._shelf.contents({entry.file: entry.revision})[entry.file]

    def reports(self) -> frozenset[str]:
        """The names of the gate reports that are here."""
        places = map(place_of, self._shelf.listing())
        return frozenset(found for kind, found in places if kind == "reports")

    def report(self, name: str) -> bytes:
        """A gate report that evidence names, as JSON. Raises KlineageError when it is not here."""
        for path, revision in self._shelf.listing().items():
            if revision and place_of(path) == ("reports", name):
                return self._shelf.contents({path: revision})[path]
        raise KlineageError(
            f"there is no report {name!r} in {self.path}; the evidence that names it cannot be shown"
        )

    def lineage(self, lineage_id: str) -> AbstractContextManager[Workspace]:
        """A workspace in which a cited lineage can be read, for a block: this one, or its bundle's.

        Raises KlineageError when neither has it.
        """
        return opened_lineage(self._shelf, lineage_id)

    def dangling(self, cards: Iterable[Card]) -> tuple[Dangling, ...]:
        """The evidence of cards that leads nowhere: a report, a lineage or a commit that is not here."""
        return dangling(self._shelf, cards)

    def save(self, card: Card, who: str = "", reason: str = "", *, reports: Iterable[str | bytes] = (),
             expected: str | None = None) -> str:  # fmt: skip
        """Make ``card`` the present version, as one commit by ``who`` (default: git's user); returns its revision.

        Only the fields that differ are rewritten in the file. expected: the revision that the editor has seen, "" for
        none: raises Moved when it is another by now. reports: gate reports that the card names (``report_name``).
        """
        held = {} if expected is None else {card.id: expected}
        commit = self.save_all([card], who, reason, reports=reports, expected=held)
        return self._saved(card.id, commit).revision

    def save_source(self, card_id: str, data: bytes, who: str = "", reason: str = "", *,
                    expected: str | None = None) -> str:  # fmt: skip
        """``save`` for a file as a person wrote it, kept byte for byte.

        Raises KlineageError, by line, when it is no card or has another id, and for a check or an anchor's query that the
        edit brings in and that cannot be read.
        """
        known = self._entries.one(check_id(card_id))
        made = {card_id: (sound_card(data, f"{card_id}.md", known.card if known else None), data)}
        held = {} if expected is None else {card_id: expected}
        commit = writing.commit(self._branch(), lambda _: made, Word("", reason), who, expected=held)
        return self._saved(card_id, commit).revision

    def save_all(self, cards: Iterable[Card], who: str = "", reason: str = "", *, title: str = "",
                 reports: Iterable[str | bytes] = (), expected: Mapping[str, str] | None = None) -> str:  # fmt: skip
        """``save`` for several cards in one commit, which is one decision; returns the commit.

        title: the commit's subject, where "Edit ..." would not say it.
        """
        kept = {card.id: card for card in cards}
        return writing.commit(
            self._branch(),
            lambda old: {key: (card, writing.file_of(card, old(key))) for key, card in kept.items()},
            Word(title, reason),
            who, reports, expected,
        )  # fmt: skip

    def update(self, card_id: str, change: Callable[[Card], Card], who: str = "", reason: str = "", *, title: str = "",
               reports: Iterable[str | bytes] = (), machine: bool = False) -> Card:  # fmt: skip
        """Change whatever version is present; returns the card that it became.

        change: is called while the workspace is held, and maybe twice; it must be quick and change nothing else.
        machine: what a probe or a trial adds. It is no person's decision, and undo passes over it.
        Raises KlineageError when there is no such card or its file is broken.
        """

        def changed(old: Callable[[str], bytes]) -> dict[str, tuple[Card, bytes]]:
            if not (data := old(card_id)):
                raise KlineageError(f"there is no card {card_id!r} in {self.path}; nothing was changed")
            card = change(parse(data, f"{card_id}.md"))
            return {card_id: (card, writing.file_of(card, data))}

        word = Word(title, reason, "evidence" if machine else "edit")
        commit = writing.commit(self._branch(), changed, word, who, reports)
        card = self._saved(card_id, commit).card
        assert card is not None  # nothing is written that cannot be read
        return card

    def _saved(self, card_id: str, commit: str) -> Entry:
        """A card as a commit has it, whatever others have made of it since."""
        file = card_file(card_id)
        return self._entries.at(card_id, file, self._branch().listing(commit)[file])

    def history(self, card_id: str = "") -> tuple[Revision, ...]:
        """The revisions of a card, newest first, with who and why; of the whole library for "".

        Raises KlineageError when there never was such a card, or this is a folder.
        """
        return writing.history(self._branch(), card_id)

    def at(self, card_id: str, commit: str) -> bytes:
        """The file of a card as a commit of its history has it. Raises KlineageError when it was not there."""
        return writing.file_at(self._branch(), card_id, commit)

    def before(self, card_id: str, revision: Revision) -> bytes:
        """The file of a card as it was where a commit of its history was made; b"" where it was not there yet."""
        parent = next(iter(revision.parents), "")
        shelf = self._branch()
        found = shelf.listing(parent).get(card_file(card_id)) if parent else ""
        return shelf.contents({card_file(card_id): found})[card_file(card_id)] if found else b""

    def undoable(self) -> str:
        """What ``undo`` would take back; "" for nothing."""
        return turning.next_title(self._branch(), "undo")

    def redoable(self) -> str:
        """What ``redo`` would take again; "" for nothing."""
        return turning.next_title(self._branch(), "redo")

    def undo(self, who: str = "") -> str:
        """Take the last decision back, field by field, so that what machines have added since stays.

        Returns what it was. Raises KlineageError when there is none, or a later edit is in the way.
        """
        return turning.turn(self._branch(), "undo", who)

    def redo(self, who: str = "") -> str:
        """Take the last undone decision again; returns what it was. Raises KlineageError when there is none."""
        return turning.turn(self._branch(), "redo", who)

    def _branch(self) -> GitShelf:
        if isinstance(self._shelf, GitShelf):
            return self._shelf
        raise KlineageError(
            f"{self.path} is a folder of cards, with no history; klineage library pull {self.path} -w DIR brings them "
            "into a workspace, where they can be changed"
        )
