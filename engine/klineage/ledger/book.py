"""Adding the ledger up: totals by call, step, lineage or day, and how far a limit is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import Literal

from klineage.ledger.model import ZERO, Limit, Usage
from klineage.ledger.record import Entry, Torn

By = Literal["call", "step", "lineage", "day"]
MARKS = (50, 80, 100)  # per cent of a limit that a person is told of


@dataclass(frozen=True)
class Total:
    """A sum over calls.

    usage, dollars: of the settled ones. at_most: of the open ones, whose cost nobody has said yet.
    unpriced:       calls that cost something unknown, in neither sum.
    """

    calls: int
    usage: Usage
    dollars: Decimal
    open: int
    at_most: Decimal
    unpriced: int

    @property
    def committed(self) -> Decimal:
        """What is spent, in the worst case."""
        return self.dollars + self.at_most


@dataclass(frozen=True)
class Book:
    """The ledger as it was at one moment, in the order of the calls."""

    entries: tuple[Entry, ...] = ()
    torn: tuple[Torn, ...] = ()

    def of(self, lineage: str) -> Book:
        """The calls for one lineage; "" for all."""
        return Book(tuple(e for e in self.entries if lineage in ("", e.call.lineage)), self.torn)

    def entry(self, call_id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.call.id == call_id), None)

    def total(self) -> Total:
        return total(self.entries)

    def by(self, what: By) -> dict[str, Total]:
        """Totals by call id, step (``lineage:kernel hash``), lineage or day (UTC), in the order of their first calls."""
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault(_key(entry, what), []).append(entry)
        return {key: total(entries) for key, entries in groups.items()}


def total(entries: Iterable[Entry]) -> Total:
    """The sum over some entries; released ones count for nothing, since nothing was sent."""
    sent = [entry for entry in entries if entry.state != "released"]
    done = [entry for entry in sent if entry.state == "settled"]
    open_ = [entry for entry in sent if entry.state == "open"]
    return Total(
        calls=len(sent),
        usage=sum((entry.usage for entry in done), Usage()),
        dollars=sum((entry.dollars or ZERO for entry in done), ZERO),
        open=len(open_),
        at_most=sum((entry.at_most or ZERO for entry in open_), ZERO),
        unpriced=sum(entry.unpriced for entry in sent),
    )


def marks(before: Decimal, after: Decimal, limit: Limit) -> tuple[int, ...]:
    """The marks (50, 80, 100 per cent) of a limit that spending has passed between two sums."""
    return tuple(mark for mark in MARKS if before * 100 < limit.dollars * mark <= after * 100)


def _key(entry: Entry, what: By) -> str:
    call = entry.call
    if what == "day":
        return call.when.astimezone(UTC).date().isoformat()
    return {"call": call.id, "step": f"{call.lineage}:{call.step}", "lineage": call.lineage}[what]
