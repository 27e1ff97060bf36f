"""The index on disk: rebuilt from the cards' files, and only for those that changed since.

One file a library in the user's cache folder. A missing, damaged or older one is built again; it may always be deleted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.skill.file import parse
from klineage.skill.library.folder import FolderShelf
from klineage.skill.retrieval.index import Index, Row, index_of, row_of, together, without
from klineage.skill.retrieval.index_store import Kept, Ledger, kept, load, store

if TYPE_CHECKING:
    from klineage.skill.library.library import Library

_AT_ONCE = 2000  # files that are held in memory together


@dataclass(frozen=True)
class Source:
    """Where the cards are.

    place: what stands before a file's name in a sentence for people; it also names the library, and so its index.
    state: tells one content of the whole library from another; never empty.
    files: the stamp of each card's file by its name; another one means that the file changed, "" that it is no file.
    read:  the bytes of files by name.
    """

    place: str
    state: str
    files: Callable[[], Mapping[str, str]]
    read: Callable[[Sequence[str]], Mapping[str, bytes]]


def source_of(library: Library) -> Source:
    """The cards of a library: by git's hashes in a branch, by size and time of each file in a folder."""
    shelf = library.shelf
    if isinstance(shelf, FolderShelf):
        stamps = shelf.stamps()
        return Source(
            shelf.place,
            _digest(stamps),
            lambda: stamps,
            lambda names: shelf.contents(dict.fromkeys(names, "")),
        )

    def files() -> dict[str, str]:
        return {path: hash_ for path, hash_ in shelf.listing().items() if path.startswith("cards/")}

    def read(names: Sequence[str]) -> Mapping[str, bytes]:
        listed = shelf.listing()
        return shelf.contents({name: listed[name] for name in names})

    tip = shelf.tip()
    tree = shelf.git.run("ls-tree", tip, "cards").decode("ascii", "replace") if tip else ""
    return Source(shelf.place, tree or "no cards", files, read)


def _digest(stamps: Mapping[str, str]) -> str:
    text = "\0".join(chain.from_iterable(stamps.items()))
    return hashlib.sha256(os.fsencode(text)).hexdigest()


@dataclass(frozen=True)
class Opened:
    """An index that is up to date with its source. problems: what is wrong with the files that hold no card, by name."""

    index: Index
    problems: Mapping[str, str]
    renewed: int = 0  # files that had to be read


def open_index(source: Source, folder: Path | None = None) -> Opened:
    """The index of a library, from disk as far as its files have not changed.

    folder: where indexes are kept (default: the user's cache). One that cannot be written is done without.
    """
    kept_in = _folder(folder) / f"{hashlib.sha256(os.fsencode(source.place)).hexdigest()[:32]}.index"
    old = load(kept_in)
    if old is not None and old.state == source.state:
        return Opened(old.index, old.problems)
    files = dict(source.files())
    if old is not None and old.ledger.prints == files:
        return Opened(old.index, old.problems)
    new, renewed = _renewed(old, source, files)
    store(kept_in, new)
    return Opened(new.index, new.problems, renewed)


def open_indexes(libraries: Iterable[Library], folder: Path | None = None) -> Opened:
    """The indexes of several libraries as one; of a card that is in more than one see ``together``."""
    opened = [open_index(source_of(library), folder) for library in libraries]
    index = index_of(()) if not opened else opened[0].index
    for one in opened[1:]:
        index = together(index, one.index)
    problems = {name: text for one in opened for name, text in one.problems.items()}
    return Opened(index, problems, sum(one.renewed for one in opened))


def _renewed(old: Kept | None, source: Source, files: dict[str, str]) -> tuple[Kept, int]:
    """The index with what has changed read again."""
    before, index = (old.ledger, old.index) if old else (Ledger({}, {}), index_of(()))
    cards, problems = dict(before.cards), dict(old.problems) if old else {}
    changed = {name for name, stamp in files.items() if before.prints.get(name) != stamp}
    gone = changed | (before.prints.keys() - files.keys())
    changed |= problems.keys() & files.keys()  # one whose id was taken is free when the other is gone
    dropped = [cards.pop(name) for name in gone if name in cards]
    problems = {name: _no_file(source, name) for name in changed if not files[name]}
    closed: dict[str, str] = {}
    taken = {card: name for name, card in cards.items()}

    def rows() -> Iterator[Row]:
        for name, row in _rows(source, sorted(changed - problems.keys()), problems, closed):
            if row.id in taken:
                problems[name] = (
                    f"{source.place}{name}: {taken[row.id]} has the id {row.id} already; rename one of them"
                )
                continue
            cards[name] = row.id
            taken[row.id] = name
            yield row

    added = index_of(rows())
    index = without(index, dropped)
    index = together(index, added) if len(added) else index
    problems |= closed
    prints = {name: stamp for name, stamp in files.items() if name not in closed}  # asked again next time
    state = "" if closed else source.state
    return kept(state, problems, index, Ledger(prints, cards)), len(changed)


def _no_file(source: Source, name: str) -> str:
    return f"{source.place}{name} is a link or no file; a card is a plain file"


def _rows(
    source: Source, names: list[str], problems: dict[str, str], closed: dict[str, str]
) -> Iterator[tuple[str, Row]]:
    """The rows of the cards in these files; what is wrong with the others goes to ``problems``, or to ``closed``."""
    for first in range(0, len(names), _AT_ONCE):
        for name, data in _read(source, names[first : first + _AT_ONCE], closed).items():
            try:
                yield name, row_of(parse(data, f"{source.place}{name}"))
            except KlineageError as error:
                problems[name] = str(error)


def _read(source: Source, names: list[str], closed: dict[str, str]) -> Mapping[str, bytes]:
    """The bytes of files; where one cannot be read, that one is named in ``closed`` and the others come."""
    try:
        return source.read(names)
    except KlineageError:
        found: dict[str, bytes] = {}
        for name in names:
            try:
                found |= source.read([name])
            except KlineageError as error:
                closed[name] = str(error)
        return found


def _folder(chosen: Path | None) -> Path:
    if chosen is not None:
        return chosen
    from klineage.gate.cache import folder

    return folder() / "cards"
