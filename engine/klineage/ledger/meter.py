"""How far a limit is used, now and before a run: the spend bar, its marks, and an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from klineage.ledger.book import Book, Total, marks
from klineage.ledger.ledger import Ledger
from klineage.ledger.model import ZERO, Limit, Usage
from klineage.ledger.prices import Price

_BYTES_A_TOKEN = 3  # of source code; a low guess, so that the estimate is rather high
_CONSTANT = 6000  # tokens of instructions in a prompt
_THOUGHT = 4000  # tokens of thinking and reasons in an answer


@dataclass(frozen=True)
class Reading:
    """What a meter shows. ``passed``: marks (per cent) of the limit that were passed since the last reading."""

    total: Total
    limit: Limit | None
    passed: tuple[int, ...] = ()

    @property
    def percent(self) -> int | None:
        """How much of the limit is spent or may be, in whole per cent, rounded up; None without a limit."""
        if self.limit is None:
            return None
        if self.limit.dollars == 0:
            return 100
        return int((self.total.committed * 100 / self.limit.dollars).to_integral_value(ROUND_UP))


class Meter:
    """Reads the ledger again and again, and tells of each mark once."""

    def __init__(self, ledger: Ledger, lineage: str, limit: Limit | None = None) -> None:
        self.ledger = ledger
        self._lineage = lineage
        self._limit = limit
        self._before = ledger.read().of(lineage).total().committed

    def read(self) -> Reading:
        """The spending of the lineage as it is now."""
        total = self.ledger.read().of(self._lineage).total()
        passed = () if self._limit is None else marks(self._before, total.committed, self._limit)
        self._before = max(self._before, total.committed)
        return Reading(total, self._limit, passed)


@dataclass(frozen=True)
class Estimate:
    """What a run may cost. ``basis`` says where ``dollars`` is from; it is a guess, and never a limit."""

    calls: int
    dollars: Decimal
    basis: str


def estimate(book: Book, model: str, price: Price, calls: int, source_bytes: int) -> Estimate:
    """The likely cost of so many calls: from earlier calls of the model, else from the size of what is sent.

    source_bytes: of the kernel and the workload together.
    """
    earlier = [e for e in book.entries if e.state == "settled" and e.call.model == model and e.usage.output]
    if earlier:
        spent = sum((price.cost(entry.usage) for entry in earlier), ZERO)
        basis = f"the mean of {len(earlier)} earlier call{'s' * (len(earlier) > 1)} of {model}"
        return Estimate(calls, spent / len(earlier) * calls, basis)
    source = source_bytes // _BYTES_A_TOKEN
    usage = Usage(input=_CONSTANT + source, output=_THOUGHT + source)
    return Estimate(
        calls, price.cost(usage) * calls, f"a guess from {source_bytes:,} bytes of source; no earlier call"
    )
