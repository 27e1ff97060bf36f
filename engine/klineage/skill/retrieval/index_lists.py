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
        return np.bincount(self.owners[flags[self.codes]], minlength=len(self))

    def best(self, worth: Sequence[float]) -> Floats:
        """The worth of the worthiest word of each card, ``worth`` being that of each of ``words``; 0 for a card of none.

        No worth is below 0. One pass for each worth that there is, which are few: the highest comes last and stays.
        """
        import numpy as np

        found: Floats = np.zeros(len(self), np.float64)
        of_word = np.asarray(worth, np.float64)
        for value in sorted({float(one) for one in worth if one > 0}):
            found[self.owners[(of_word == value)[self.codes]]] = value
        return found

    def having(self, marked: Iterable[str]) -> Flags:
        """Which cards have a marked word."""
        return self.count(marked) > 0


def lists_of(cards: Sequence[Iterable[str]]) -> Lists:
    """The words of each card, in arrays."""
    import numpy as np

    known: dict[str, int] = {}
    codes: list[int] = []
    starts = [0]
    for words in cards:
        codes += sorted({known.setdefault(word, len(known)) for word in words})
        starts.append(len(codes))
    return Lists(tuple(known), np.asarray(starts, np.int64), np.asarray(codes, np.int32))


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
