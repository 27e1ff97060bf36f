"""The bytes of an index on disk. What a question needs lies there as arrays and is used where it lies; what only a change of
the files needs is unpacked when there is one.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.files import write_whole
from klineage.skill.retrieval.index import COLUMNS, Index, Row
from klineage.skill.retrieval.index_lists import Lists
from klineage.skill.retrieval.index_row import sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FORMAT = b"klineage index 2\n"


@dataclass(frozen=True)
class Ledger:
    """Which files an index was made from. prints: the stamp of each file by its name. cards: the id of the card in it."""

    prints: dict[str, str]
    cards: dict[str, str]


@dataclass(frozen=True)
class Kept:
    """An index with what it was made from.

    state: as in ``Source``; empty where a file must be asked again. problems: by file, what is wrong with it.
    """

    state: str
    problems: dict[str, str]
    index: Index
    packed_ledger: bytes | memoryview

    @cached_property
    def ledger(self) -> Ledger:
        import msgspec

        return msgspec.msgpack.decode(self.packed_ledger, type=Ledger)


@dataclass(frozen=True)
class _File:
    """What stands in the file: arrays as the bytes that numpy has them in. columns: words, starts and codes of each."""

    row: str
    state: str
    problems: dict[str, str]
    ids: tuple[str, ...]
    trials: memoryview
    order: memoryview
    rows: memoryview
    starts: memoryview
    columns: tuple[tuple[tuple[str, ...], memoryview, memoryview], ...]
    ledger: memoryview


def kept(state: str, problems: Mapping[str, str], index: Index, ledger: Ledger) -> Kept:
    """What is to be stored. A file whose name is no UTF-8 is not kept, and so read again each time."""
    import msgspec

    odd = {name for name in ledger.prints if not _is_utf8(name + problems.get(name, ""))}
    if odd:
        state = ""
        ledger = Ledger(
            *({k: v for k, v in d.items() if k not in odd} for d in (ledger.prints, ledger.cards))
        )
    return Kept(state, dict(problems), index, msgspec.msgpack.encode(ledger))


def load(path: Path) -> Kept | None:
    """The index in a file; None where there is none, or it is damaged, or of another version of klineage."""
    import msgspec

    try:
        data = memoryview(path.read_bytes())
    except OSError:
        return None
    head = len(_FORMAT) + 4
    if data[: len(_FORMAT)] != _FORMAT or data[len(_FORMAT) : head] != _sum(data[head:]):
        return None
    try:
        found = msgspec.msgpack.decode(data[head:], type=_File)
    except msgspec.DecodeError:
        return None
    return _kept(found) if found.row == _shape() else None


def store(path: Path, kept: Kept) -> None:
    """Whole or not at all; a cache that cannot be written only costs the next start its time."""
    import msgspec

    index = kept.index
    body = msgspec.msgpack.encode(
        _File(
            row=_shape(),
            state=kept.state,
            problems={name: text for name, text in kept.problems.items() if _is_utf8(name + text)},
            ids=index.ids,
            trials=_bytes(index.trials),
            order=_bytes(index.order),
            rows=memoryview(index.rows),
            starts=_bytes(index.starts),
            columns=tuple((one.words, _bytes(one.starts), _bytes(one.codes)) for one in index.columns),
            ledger=memoryview(kept.packed_ledger),
        )
    )
    with contextlib.suppress(OSError):
        write_whole(path, _FORMAT + _sum(body) + body)


def _kept(found: _File) -> Kept:
    import numpy as np

    columns = tuple(
        Lists(words, _array(starts, np.int64), _array(codes, np.int32))
        for words, starts, codes in found.columns
    )
    index = Index(
        ids=found.ids,
        columns=columns,
        trials=_array(found.trials, np.int64),
        order=_array(found.order, np.float64),
        rows=found.rows,
        starts=_array(found.starts, np.int64),
    )
    return Kept(found.state, found.problems, index, found.ledger)


def _array(data: memoryview, kind: type[np.generic]) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(data, kind)


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.tobytes())


def _sum(body: bytes | memoryview) -> bytes:
    return zlib.crc32(body).to_bytes(4, "big")


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _shape() -> str:
    """The names and types of what a row holds: another version of it makes every index on disk an old one."""
    import msgspec

    schema = msgspec.json.encode(msgspec.json.schema(Row))
    return hashlib.sha256(schema + sample() + repr(COLUMNS).encode()).hexdigest()[:16]
