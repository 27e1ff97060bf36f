"""The lines of the ledger, as they are written, and what is known of each call when they are read again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from klineage.errors import KlineageError
from klineage.ledger.model import ZERO, Call, Usage
from klineage.ledger.prices import Price, Prices

VERSION = 1

State = Literal["open", "settled", "released"]


@dataclass(frozen=True)
class Entry:
    """What is known of a call now.

    state:   "open" until somebody has said what it cost ("at most ``at_most``"), "settled", or "released"
             where nothing was sent.
    usage:   settled: what was used; open: the worst case; released: nothing.
    price:   at which it was reserved, else of the present table.
    dollars: of a settled call; None where its model has no price, and for an open one.
    at_most: of an open call, likewise.
    """

    call: Call
    state: State
    usage: Usage
    price: Price | None
    dollars: Decimal | None
    at_most: Decimal | None
    outcome: str = ""
    ended: datetime | None = None

    @property
    def unpriced(self) -> bool:
        """Whether it costs something that nobody can say."""
        known = self.at_most if self.state == "open" else self.dollars
        return self.state != "released" and known is None


@dataclass(frozen=True)
class Torn:
    """A line that cannot be read, most likely the last one before a cut of power. ``number`` is from 1."""

    number: int
    text: str


def opened(call: Call, price: Price | None) -> Entry:
    """A call that has just been reserved."""
    return Entry(call, "open", call.worst, price, None, price.at_most(call.worst) if price else None)


def reserved(call: Call, price: Price | None) -> bytes:
    """The line that says a call is about to be made. It carries its price: later tables do not change it."""
    record = asdict(call) | {"when": _time(call.when), "price": price.to_json() if price else None}
    return _line("reserve", record)


def settled(call_id: str, usage: Usage, dollars: Decimal | None, outcome: str, when: datetime) -> bytes:
    """The line that says what a call has used and cost (None: nobody knows its price)."""
    record = {
        "id": call_id,
        "when": _time(when),
        "usage": asdict(usage),
        "dollars": None if dollars is None else str(dollars),
        "outcome": outcome,
    }
    return _line("settle", record)


def released(call_id: str, why: str, when: datetime) -> bytes:
    """The line that says nothing was sent."""
    return _line("release", {"id": call_id, "when": _time(when), "outcome": why})


def replay(lines: Iterable[bytes], prices: Prices, where: str) -> tuple[dict[str, Entry], list[Torn]]:
    """What the lines add up to: an entry for each call, in order, and the lines that cannot be read.

    Raises KlineageError for a line of a newer version, whose spending nobody here could count.
    """
    entries: dict[str, Entry] = {}
    torn: list[Torn] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            version = record["v"]
            if version != VERSION:
                raise KlineageError(
                    f"{where}, line {number}: its version is {version!r}, this klineage reads {VERSION}; use a newer one"
                )
            _apply(entries, record, prices)
        except (ValueError, KeyError, TypeError, ArithmeticError):
            torn.append(Torn(number, line[:200].decode("utf-8", "replace")))
    return entries, torn


def after(entry: Entry, line: bytes, prices: Prices) -> Entry:
    """What is known of a call after one more line about it."""
    entries = {entry.call.id: entry}
    _apply(entries, json.loads(line), prices)
    return entries[entry.call.id]


def _apply(entries: dict[str, Entry], record: dict[str, Any], prices: Prices) -> None:
    event, call_id = record["event"], record["id"]
    if event == "reserve":
        call = _call(record)
        price = Price.from_json(record["price"]) if record["price"] else prices.find(call.model)
        entries.setdefault(call_id, opened(call, price))
        return
    entry = entries[call_id]
    ended = replace(entry, at_most=None, outcome=str(record["outcome"]), ended=_moment(record["when"]))
    if event == "settle":
        usage = Usage(**record["usage"])
        known = record["dollars"]
        now = entry.price.cost(usage) if entry.price else None
        dollars = now if known is None else Decimal(known)
        if entry.state != "settled":
            entries[call_id] = replace(ended, state="settled", usage=usage, dollars=dollars)
    elif event == "release":
        if entry.state == "open":
            entries[call_id] = replace(ended, state="released", usage=Usage(), dollars=ZERO)
    else:
        raise ValueError(f"no such event: {event!r}")


def _call(record: dict[str, Any]) -> Call:
    names = ("id", "lineage", "step", "proposer", "model", "prompt")
    texts = {name: str(record[name]) for name in names}
    return Call(**texts, when=_moment(record["when"]), worst=Usage(**record["worst"]))


def _line(event: str, record: dict[str, Any]) -> bytes:
    return json.dumps({"v": VERSION, "event": event, **record}, ensure_ascii=True).encode()


def _time(when: datetime) -> str:
    return when.astimezone(UTC).isoformat()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
