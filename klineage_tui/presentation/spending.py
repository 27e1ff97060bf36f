"""Money and tokens as rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, ROUND_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klineage.ledger import Entry, Reading, Total

_CENT, _FINE = Decimal("0.01"), Decimal("0.0001")
_COARSE = Decimal(10)
_BAR_CELLS = 10


def money(dollars: Decimal, *, at_most: bool = False) -> str:
    """``$0.0123``, ``$12.35``: four decimals below ten dollars, then two. ``at_most`` never rounds down."""
    step = _FINE if dollars < _COARSE else _CENT
    return f"${dollars.quantize(step, ROUND_UP if at_most else ROUND_HALF_UP)}"


def limit_text(dollars: Decimal) -> str:
    """A limit as a person would write it: ``$5``, ``$2.50``."""
    whole = dollars == dollars.to_integral_value()
    return f"${dollars.to_integral_value()}" if whole else f"${max(dollars, dollars.quantize(_CENT)):f}"


def cost(entry: Entry) -> str:
    """What one call cost: ``$0.0123``, ``at most $0.4200`` while nobody knows, ``unpriced``, ``nothing sent``."""
    if entry.state == "released":
        return "nothing sent"
    if entry.dollars is not None:
        return money(entry.dollars)
    return "unpriced" if entry.at_most is None else f"at most {money(entry.at_most, at_most=True)}"


def sum_of(total: Total) -> str:
    """What some calls cost together, with what is not known of it."""
    parts = [money(total.dollars)]
    if total.at_most:
        parts.append(f"and at most {money(total.at_most, at_most=True)} for what is not settled")
    if total.unpriced:
        parts.append(f"and {total.unpriced} without a price")
    return " ".join(parts)


def spend_line(reading: Reading) -> str:
    """The spend bar as a sentence: ``$0.42 of $10``, with how much of it may still be spent by open calls."""
    spent = sum_of(reading.total)
    if reading.limit is None:
        return spent
    return f"{spent}, of {limit_text(reading.limit.dollars)} ({reading.percent} %)"


@dataclass(frozen=True)
class SpendBar:
    """What the calls for a lineage have cost, in the fewest words: ``$0.42 of $10``; ``percent`` of the limit, if there is one."""

    words: str = ""
    percent: int | None = None

    def text(self, wide: bool) -> str:
        """The words, on a wide screen behind a bar; a bar that is full is a limit that is reached."""
        if not wide or self.percent is None:
            return self.words
        full = min(_BAR_CELLS, self.percent * _BAR_CELLS // 100)
        return f"{'━' * full}{'╌' * (_BAR_CELLS - full)} {self.words}"


def spend_bar(reading: Reading) -> SpendBar:
    """``$0.42 of $10``, ``≤$0.74`` while a call is open, ``+1 unpriced``; empty where there was no call."""
    total = reading.total
    if not total.calls:
        return SpendBar()
    may = "≤" if total.at_most else ""
    spent = f"{may}{money(total.committed, at_most=total.open > 0)}"
    spent += f" +{total.unpriced} unpriced" if total.unpriced else ""
    words = spent if reading.limit is None else f"{spent} of {limit_text(reading.limit.dollars)}"
    return SpendBar(words, reading.percent)


def table(rows: Sequence[Sequence[str]], right: frozenset[int]) -> list[str]:
    """Rows of cells as lines with aligned columns; the columns in ``right`` are numbers."""
    from klineage_tui.text.columns import pad, widest

    columns = [widest(list(column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if index in right else pad(text, width)
            for index, (text, width) in enumerate(zip(row, columns, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
