"""The cards of a library as its files have them: read in bulk, each version parsed once, broken ones named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.skill.card import Card
from klineage.skill.file import parse
from klineage.skill.library.folder import FolderShelf, place_of
from klineage.skill.library.git import GitShelf


@dataclass(frozen=True)
class Entry:
    """One card's file.

    card:     None exactly when ``problem`` says, by file and line, why it cannot be read.
    revision: the git hash of the file's bytes; what ``save`` can be told to expect. Empty for what is no file.
    file:     its path in the library, ``cards/c.prefetch.md``.
    """

    id: str
    card: Card | None
    problem: str
    revision: str
    file: str


class Entries:
    """What is known of a shelf's cards; a version that was parsed is not read again."""

    def __init__(self, shelf: GitShelf | FolderShelf) -> None:
        self._shelf = shelf
        self._known: dict[tuple[str, str], Entry] = {}

    def files(self) -> list[tuple[str, str, str]]:
        """(id, path, revision) of every card's file."""
        found = ((*place_of(path), path, revision) for path, revision in self._shelf.listing().items())
        return [
            (name.removesuffix(".md"), path, revision)
            for kind, name, path, revision in found
            if kind == "cards" and name.endswith(".md")
        ]

    def all(self) -> tuple[Entry, ...]:
        """Every card, by id. Of two files with one id, the second is a problem."""
        files = self.files()
        data = self._unread({path: revision for _, path, revision in files})
        entries: dict[str, Entry] = {}
        for name, path, revision in files:
            entry = self._entry(name, path, revision, data.get(path))
            if name in entries:
                twin = entries[name].file
                problem = f"{self._shelf.place}{path}: {twin} has the id {name} already; rename one of them"
                entry = Entry(f"{name} ({path})", None, problem, revision, path)
            entries[entry.id] = entry
        return tuple(entries[key] for key in sorted(entries))

    def one(self, card_id: str) -> Entry | None:
        """The card of an id; None where there is none."""
        found = next((file for file in self.files() if file[0] == card_id), None)
        return found and self.at(*found)

    def at(self, card_id: str, path: str, revision: str) -> Entry:
        """A version of a card's file."""
        return self._entry(card_id, path, revision, self._unread({path: revision}).get(path))

    def _unread(self, files: Mapping[str, str]) -> dict[str, bytes]:
        new = {
            path: revision
            for path, revision in files.items()
            if revision and (path, revision) not in self._known
        }
        return self._shelf.contents(new) if new else {}

    def _entry(self, name: str, path: str, revision: str, data: bytes | None) -> Entry:
        where = f"{self._shelf.place}{path}"
        if not revision:
            return Entry(name, None, self._shelf.refusal(path), "", path)
        if data is not None:
            try:
                self._known[path, revision] = Entry(name, parse(data, where), "", revision, path)
            except KlineageError as error:
                self._known[path, revision] = Entry(name, None, str(error), revision, path)
        return self._known[path, revision]
