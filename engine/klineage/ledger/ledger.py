"""The ledger of a workspace: a call is written down before it is made, and its cost once it is known."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from pathlib import Path

from klineage.errors import KlineageError
from klineage.ledger import record
from klineage.ledger.book import Book
from klineage.ledger.file import LineFile
from klineage.ledger.model import ZERO, Call, Limit, OverBudget, Usage
from klineage.ledger.prices import Price, Prices, load_prices
from klineage.ledger.record import Entry


def _now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """``<git dir>/klineage/ledger.jsonl``: one line an event, on the disk before the method returns.

    Nothing is remembered between calls but the prices; any number of processes may use one ledger.
    """

    def __init__(self, path: Path, prices: Prices) -> None:
        self.path = path
        self.prices = prices
        self._file = LineFile(path)

    @classmethod
    def of(cls, git_dir: Path, prices: Prices | None = None) -> Ledger:
        """The ledger of the workspace whose git directory is ``git_dir``."""
        return cls(git_dir / "klineage" / "ledger.jsonl", prices or load_prices())

    def reserve(self, call: Call, *limits: Limit) -> Entry:
        """Write a call down before it is made, at its worst case. Returns it as it now stands: open.

        Raises OverBudget, with nothing written, when the worst case is more than what is left of one of the
        limits, or has no price under one. Limits of other lineages do not count.
        """
        price = self.prices.find(call.model)
        with self._file.appending() as file:
            book = self._book(file.lines())
            if book.entry(call.id) is not None:
                raise KlineageError(
                    f"the call {call.id} is in {self.path} already; give each call an id of its own"
                )
            for limit in limits:
                if limit.lineage in ("", call.lineage):
                    _check(limit, book.of(limit.lineage), call, price)
            file.append(record.reserved(call, price))
            return record.opened(call, price)

    def settle(self, call_id: str, usage: Usage, outcome: str = "", dollars: Decimal | None = None) -> Entry:
        """Write down what a call has used; the first who says so is believed, and again changes nothing.

        It costs ``dollars`` where the one who was paid says so, else it is priced as it was when it was
        reserved. Raises KlineageError when it was never reserved.
        """
        with self._file.appending() as file:
            entry = self._reserved(file.lines(), call_id)
            if entry.state != "settled":
                if dollars is None and entry.price is not None:
                    dollars = entry.price.cost(usage)
                line = record.settled(call_id, usage, dollars, outcome, _now())
                file.append(line)
                entry = record.after(entry, line, self.prices)
            return entry

    def release(self, call_id: str, why: str) -> Entry:
        """Write down that nothing was sent for a reserved call, so that it costs nothing; again changes nothing.

        Raises KlineageError when it was never reserved, or has been settled.
        """
        with self._file.appending() as file:
            entry = self._reserved(file.lines(), call_id)
            if entry.state == "settled":
                raise KlineageError(
                    f"the call {call_id} was made and has been settled; it cannot be released"
                )
            if entry.state == "open":
                line = record.released(call_id, why, _now())
                file.append(line)
                entry = record.after(entry, line, self.prices)
            return entry

    def read(self) -> Book:
        """Everything in the ledger, in the order of the reservations."""
        return self._book(self._file.read())

    def _book(self, lines: list[bytes]) -> Book:
        entries, torn = record.replay(lines, self.prices, str(self.path))
        return Book(tuple(entries.values()), tuple(torn))

    def _reserved(self, lines: list[bytes], call_id: str) -> Entry:
        entry = self._book(lines).entry(call_id)
        if entry is None:
            raise KlineageError(
                f"the call {call_id} was never reserved in {self.path}; reserve it before it is made"
            )
        return entry


def _check(limit: Limit, book: Book, call: Call, price: Price | None) -> None:
    """Raises OverBudget unless the worst case of ``call`` is within ``limit``."""
    way_out = "give it a price in prices.toml beside config.toml, or walk without a budget"
    if price is None:
        raise OverBudget(
            f"{call.model} has no price, so it cannot be used under a limit of {limit}; {way_out}"
        )
    total = book.total()
    # A command is the person's own tool, under their own contract: what it does not tell is theirs to know.
    unknown = (e.call.model for e in book.entries if e.unpriced and not e.call.model.startswith("command:"))
    if model := next(unknown, ""):
        raise OverBudget(
            f"earlier calls of {model} have no price, so nobody knows what is left of {limit}; {way_out}"
        )
    worst, left = price.at_most(call.worst), max(limit.dollars - total.committed, ZERO)
    if worst > limit.dollars - total.committed:
        raise OverBudget(
            f"the next call may cost up to ${_short(worst, ROUND_UP)}, but of {limit} only ${_short(left, ROUND_DOWN)} "
            "is left; a higher --budget allows it"
        )


def _short(dollars: Decimal, rounding: str) -> str:
    """Four decimals, never nearer to the limit than it is."""
    return str(dollars.quantize(Decimal("0.0001"), rounding))
