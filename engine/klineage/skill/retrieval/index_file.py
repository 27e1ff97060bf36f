"""The index on disk: rebuilt from the cards' files, and only for those that changed since.

One file a library in the user's cache folder. A missing, damaged or older one is built again; it may always be deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.skill.file import parse
from klineage.skill.library.folder import FolderShelf
from klineage.skill.retrieval.index import COLUMNS, Index, Row, index_of, row_of, together, without
from klineage.skill.retrieval.index_lists import Lists
from klineage.skill.retrieval.index_row import sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from klineage.skill.library.library import Library

_AT_ONCE = 2000  # files that are held in memory together
_FORMAT = b"klineage index 1\n"


@dataclass(frozen=True)
class Source:
    """Where the cards are.

    place: what stands before a file's name in a sentence for people; it also names the library, and so its index.
    state: tells one content of the whole library from another, where that is known without listing it; else empty.
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
        return Source(shelf.place, "", shelf.stamps, lambda names: shelf.contents(dict.fromkeys(names, "")))

    def files() -> dict[str, str]:
        return {path: hash_ for path, hash_ in shelf.listing().items() if path.startswith("cards/")}

    def read(names: Sequence[str]) -> Mapping[str, bytes]:
        listed = shelf.listing()
        return shelf.contents({name: listed[name] for name in names})

    tip = shelf.tip()
    tree = shelf.git.run("ls-tree", tip, "cards").decode("ascii", "replace") if tip else "no branch"
    return Source(shelf.place, tree, files, read)


@dataclass(frozen=True)
class Opened:
    """An index that is up to date with its source. problems: what is wrong with the files that hold no card, by name."""

    index: Index
    problems: Mapping[str, str]
    renewed: int = 0  # files that had to be read


@dataclass(frozen=True)
class _Kept:
    """What is on disk: for each file its stamp, and the id of its card or what is wrong with it."""

    state: str
    prints: dict[str, str]
    cards: dict[str, str]
    problems: dict[str, str]
    index: Index


def open_index(source: Source, folder: Path | None = None) -> Opened:
    """The index of a library, from disk as far as its files have not changed.

    folder: where indexes are kept (default: the user's cache). One that cannot be written is done without.
    """
    kept_in = _folder(folder) / f"{hashlib.sha256(os.fsencode(source.place)).hexdigest()[:32]}.index"
    old = _load(kept_in)
    if old is not None and source.state and old.state == source.state:
        return Opened(old.index, old.problems)
    files = dict(source.files())
    if old is not None and old.prints == files:
        return Opened(old.index, old.problems)
    new, renewed = _renewed(old, source, files)
    _store(kept_in, new)
    return Opened(new.index, new.problems, renewed)


def open_indexes(libraries: Iterable[Library], folder: Path | None = None) -> Opened:
    """The indexes of several libraries as one; of a card that is in more than one see ``together``."""
    opened = [open_index(source_of(library), folder) for library in libraries]
    index = index_of(()) if not opened else opened[0].index
    for one in opened[1:]:
        index = together(index, one.index)
    problems = {name: text for one in opened for name, text in one.problems.items()}
    return Opened(index, problems, sum(one.renewed for one in opened))


def _renewed(old: _Kept | None, source: Source, files: dict[str, str]) -> tuple[_Kept, int]:
    """The index with what has changed read again."""
    before = old or _Kept("", {}, {}, {}, index_of(()))
    changed = sorted(name for name, stamp in files.items() if before.prints.get(name) != stamp)
    same = before.prints.keys() & files.keys() - set(changed)
    cards = {name: card for name, card in before.cards.items() if name in same}
    problems = {name: text for name, text in before.problems.items() if name in same}
    taken = {card: name for name, card in cards.items()}
    rows: list[Row] = []
    closed: dict[str, str] = {}
    for name, row in _rows(source, [name for name in changed if files[name]], problems, closed):
        if row.id in taken:
            problems[name] = (
                f"{source.place}{name}: {taken[row.id]} has the id {row.id} already; rename one of them"
            )
            continue
        cards[name] = row.id
        taken[row.id] = name
        rows.append(row)
    problems |= {
        name: f"{source.place}{name} is a link or no file; a card is a plain file"
        for name in changed
        if not files[name]
    }
    problems |= closed
    prints = {name: stamp for name, stamp in files.items() if name not in closed}  # asked again next time
    state = "" if closed else source.state
    kept = set(taken) - {row.id for row in rows}
    index = without(before.index, [card for card in before.index.ids if card not in kept])
    index = together(index, index_of(rows)) if rows else index
    return _Kept(state, prints, cards, problems, index), len(changed)


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


def _load(path: Path) -> _Kept | None:
    import msgspec

    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_FORMAT) + 4
    body = memoryview(data)[head:]
    if data[: len(_FORMAT)] != _FORMAT or zlib.crc32(body).to_bytes(4, "big") != data[len(_FORMAT) : head]:
        return None
    try:
        return _unpacked(msgspec.msgpack.decode(body))
    except (msgspec.DecodeError, KeyError, ValueError, TypeError):
        return None  # of another version of klineage: built again


def _store(path: Path, kept: _Kept) -> None:
    """Whole or not at all; a cache that cannot be written only costs the next start its time."""
    import msgspec

    body = msgspec.msgpack.encode(_packed(kept))
    with contextlib.suppress(OSError):
        write_whole(path, _FORMAT + zlib.crc32(body).to_bytes(4, "big") + body)


def _packed(kept: _Kept) -> dict[str, Any]:
    index = kept.index
    # A file whose name is no UTF-8 is not kept, and so read again each time.
    names = {name for name in kept.prints if _is_utf8(name + kept.problems.get(name, ""))}
    return {
        "row": _shape(),
        "state": kept.state if len(names) == len(kept.prints) else "",
        "prints": {name: stamp for name, stamp in kept.prints.items() if name in names},
        "cards": {name: card for name, card in kept.cards.items() if name in names},
        "problems": {name: text for name, text in kept.problems.items() if name in names},
        "ids": index.ids,
        "rows": index.rows,
        "starts": index.starts.tobytes(),
        "trials": index.trials.tobytes(),
        "order": index.order.tobytes(),
        "columns": [[c.words, c.starts.tobytes(), c.codes.tobytes()] for c in index.columns],
    }


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _unpacked(data: dict[str, Any]) -> _Kept:
    import numpy as np

    if data["row"] != _shape():
        raise ValueError("rows of another shape")
    columns = tuple(
        Lists(tuple(words), _array(starts, np.int64), _array(codes, np.int32))
        for words, starts, codes in data["columns"]
    )
    index = Index(
        tuple(data["ids"]),
        columns,
        _array(data["trials"], np.int64),
        _array(data["order"], np.float64),
        data["rows"],
        _array(data["starts"], np.int64),
    )
    return _Kept(data["state"], data["prints"], data["cards"], data["problems"], index)


def _array(data: bytes, kind: type[np.generic]) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(data, kind)


def _shape() -> str:
    """The names and types of what a row holds: another version of it makes every index on disk an old one."""
    import msgspec

    schema = msgspec.json.encode(msgspec.json.schema(Row))
    return hashlib.sha256(schema + sample() + repr(COLUMNS).encode()).hexdigest()[:16]
