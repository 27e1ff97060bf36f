"""Sets of words for many cards at once, as arrays: what retrieval scores in a few milliseconds for 100,000 cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Codes = NDArray[np.int32]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Lists:
    """For each card a set of words; those of card ``i`` are ``words[c] for c in codes[starts[i]:starts[i + 1]]``.

    starts: cards + 1 numbers, the first 0. The words of a card are in no order that means anything.
    """

    words: tuple[str, ...]
    starts: Ints
    codes: Codes

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self) -> Ints:
        """How many words each card has."""
        return self.starts[1:] - self.starts[:-1]

    def of(self, card: int) -> tuple[str, ...]:
        """The words of one card."""
        return tuple(self.words[code] for code in self.codes[self.starts[card] : self.starts[card + 1]])

    @cached_property
    def owners(self) -> Codes:
        """The card of each code."""
        import numpy as np

        return np.repeat(np.arange(len(self), dtype=np.int32), self.sizes())

    def count(self, marked: Iterable[str]) -> Ints:
        """How many words of each card are marked."""
        import numpy as np

        wanted = set(marked)
        flags = np.fromiter((word in wanted for word in self.words), np.bool_, len(self.words))
        if not flags.any():
            return np.zeros(len(self), np.int64)
        found = np.flatnonzero(flags.take(self.codes))
        return np.bincount(self.owners.take(found), minlength=len(self))

    def best(self, worth: Sequence[float]) -> Floats:
        """The worth of the worthiest word of each card, ``worth`` being that of each of ``words``; 0 for a card of none.

        No worth is below 0.
        """
        import numpy as np

        found: Floats = np.zeros(len(self), np.float64)
        if self.words:
            np.maximum.at(found, self.owners, np.asarray(worth, np.float64).take(self.codes))
        return found

    def having(self, marked: Iterable[str]) -> Flags:
        """Which cards have a marked word."""
        return self.count(marked) > 0


class Growing:
    """Lists to which one card after another is added."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._codes: list[int] = []
        self._starts = [0]

    def add(self, words: Iterable[str]) -> None:
        known = self._known
        self._codes += sorted({known.setdefault(word, len(known)) for word in words})
        self._starts.append(len(self._codes))

    def lists(self) -> Lists:
        import numpy as np

        return Lists(
            tuple(self._known), np.asarray(self._starts, np.int64), np.asarray(self._codes, np.int32)
        )


def taken(lists: Lists, cards: Ints) -> Lists:
    """The same of some cards, by their numbers, in that order."""
    import numpy as np

    sizes = lists.sizes()[cards]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    within = np.arange(int(starts[-1]), dtype=np.int64) - np.repeat(starts[:-1], sizes)
    return Lists(lists.words, starts, lists.codes[np.repeat(lists.starts[:-1][cards], sizes) + within])


def joined(one: Lists, two: Lists) -> Lists:
    """The cards of one, then those of the other."""
    import numpy as np

    known = {word: code for code, word in enumerate(one.words)}
    moved = np.asarray([known.setdefault(word, len(known)) for word in two.words], np.int32)
    codes = np.concatenate((one.codes, moved[two.codes] if len(two.codes) else two.codes))
    return Lists(tuple(known), np.concatenate((one.starts, two.starts[1:] + one.starts[-1])), codes)
