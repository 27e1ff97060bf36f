"""What retrieval knows of the cards of a library: a row for each to show, and columns to score all of them at once.

It is made from the cards' files and holds nothing of its own: it may be deleted at any time (see ``index_file``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from klineage.skill.card import Status, takes_its_place
from klineage.skill.retrieval.index_lists import Growing, Lists, joined, taken
from klineage.skill.retrieval.index_row import Condition, Row, packed, row_of, unpacked, words_of

if TYPE_CHECKING:
    from klineage.skill.retrieval.index_lists import Floats, Ints

__all__ = ["COLUMNS", "Condition", "Index", "Row", "index_of", "row_of", "together", "without"]

#: The columns: name -> the words of a row.
COLUMNS = (
    "status", "surface", "action", "workloads", "surfaces", "platforms", "priors", "requires", "provides", "conflicts", "lineages",
)  # fmt: skip


@dataclass(frozen=True)
class Index:
    """Many cards. ``ids`` are theirs; ``column`` has one ``Lists`` for each of ``COLUMNS``; ``trials`` is that of each row.

    order: a number below 1e-3, larger for an earlier id, which makes every ranking complete.
    rows: the rows themselves, packed; ``row`` unpacks one. starts: where each begins in them, and where the last ends.
    """

    ids: tuple[str, ...]
    columns: tuple[Lists, ...]
    trials: Ints
    order: Floats
    rows: bytes | memoryview
    starts: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Lists:
        return self.columns[COLUMNS.index(name)]

    def row(self, number: int) -> Row:
        """The row of the card with this number, from 0."""
        return unpacked(self.rows[self.starts[number] : self.starts[number + 1]])

    def number(self, card_id: str) -> int | None:
        """The number of a card, None for one that is not here."""
        return self._numbers.get(card_id)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {card_id: number for number, card_id in enumerate(self.ids)}


def _order(ids: Sequence[str]) -> Floats:
    """A number below 1e-3 for each card, larger for an earlier id: it makes every ranking complete."""
    import numpy as np

    place = np.empty(len(ids), np.float64)
    place[np.asarray(sorted(range(len(ids)), key=ids.__getitem__), np.int64)] = np.arange(len(ids))
    ordered: Floats = (1 - place / max(len(ids), 1)) * 1e-3
    return ordered


def index_of(rows: Iterable[Row]) -> Index:
    """An index of these rows. Each is taken in and let go before the next, so that many need little memory."""
    import numpy as np

    ids: list[str] = []
    trials: list[int] = []
    pieces: list[bytes] = []
    columns = {name: Growing() for name in COLUMNS}
    for row in rows:
        ids.append(row.id)
        trials.append(row.trials)
        pieces.append(packed(row))
        for name, column in columns.items():
            column.add(words_of(row, name))
    sizes = np.cumsum([len(data) for data in pieces], dtype=np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), sizes))
    return Index(
        ids=tuple(ids),
        columns=tuple(column.lists() for column in columns.values()),
        trials=np.asarray(trials, np.int64),
        order=_order(ids),
        rows=b"".join(pieces),
        starts=starts,
    )


def without(index: Index, gone: Iterable[str]) -> Index:
    """The index without the cards of these ids."""
    import numpy as np

    dropped = set(gone)
    if not dropped:
        return index
    keep = np.fromiter((card_id not in dropped for card_id in index.ids), np.bool_, len(index))
    if keep.all():
        return index
    numbers = np.flatnonzero(keep)
    sizes = (index.starts[1:] - index.starts[:-1])[numbers]
    return Index(
        ids=tuple(card_id for card_id in index.ids if card_id not in dropped),
        columns=tuple(taken(column, numbers) for column in index.columns),
        trials=index.trials[numbers],
        order=index.order[numbers],  # still larger for an earlier id
        rows=b"".join(index.rows[index.starts[a] : index.starts[b]] for a, b in _runs(numbers)),
        starts=np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64))),
    )


def _runs(numbers: Ints) -> list[tuple[int, int]]:
    """Ascending numbers as ranges without a gap, each with its end after it."""
    import numpy as np

    if not len(numbers):
        return []
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    first, last = numbers[np.r_[0, cuts]], numbers[np.r_[cuts - 1, len(numbers) - 1]]
    return list(zip(first.tolist(), (last + 1).tolist(), strict=True))


def _status(index: Index, card_id: str) -> Status:
    number = index.number(card_id)
    assert number is not None
    return index.row(number).status


def together(first: Index, second: Index) -> Index:
    """Both; where a card is in both, that of the first counts, unless it is a hypothesis and the other is admitted."""
    import numpy as np

    both = set(first.ids) & set(second.ids)
    first = without(
        first, [name for name in both if takes_its_place(_status(first, name), _status(second, name))]
    )
    added = without(second, first.ids)
    ids = first.ids + added.ids
    return Index(
        ids=ids,
        columns=tuple(joined(one, two) for one, two in zip(first.columns, added.columns, strict=True)),
        trials=np.concatenate((first.trials, added.trials)),
        order=_order(ids),
        rows=b"".join((first.rows, added.rows)),
        starts=np.concatenate((first.starts, added.starts[1:] + first.starts[-1])),
    )
