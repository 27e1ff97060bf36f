"""What the ledger speaks of: usage, calls, limits. Money is ``Decimal``, in US dollars, never a float."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

from klineage.errors import KlineageError

ZERO = Decimal(0)
_UNHEARD_OF = 10**9  # dollars


class OverBudget(KlineageError):
    """A call that might cost more than is left of a limit, or whose cost under a limit nobody knows."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call by kind, each priced on its own.

    input:       of the prompt, neither read from nor written to a cache.
    cached:      of the prompt, read from a cache.
    cache_write: of the prompt, written to a cache.
    output:      of the answer, thinking included.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0

    def __post_init__(self) -> None:
        for name in ("input", "cached", "cache_write", "output"):
            if getattr(self, name) < 0:
                raise ValueError(f"a usage of {getattr(self, name)} {name} tokens")

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt, however they are priced."""
        return self.input + self.cached + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )


@dataclass(frozen=True)
class Call:
    """One paid call, as it is known before it is made.

    step:   hash of the kernel that it is asked about.
    prompt: hash of the request.
    worst:  more tokens than the call can use; of a prompt only the sum counts, since nobody knows before
            what a cache will hold.
    """

    id: str
    lineage: str
    step: str
    proposer: str
    model: str
    prompt: str
    when: datetime
    worst: Usage


def new_call_id(when: datetime) -> str:
    """An id that no other call has: a file name, in the order of time."""
    return f"{when:%Y%m%dT%H%M%S}-{secrets.token_hex(6)}"


@dataclass(frozen=True)
class Limit:
    """So many dollars for one lineage, over all its runs; ``lineage`` "" is the whole ledger."""

    dollars: Decimal
    lineage: str = ""

    def __str__(self) -> str:
        return f"${self.dollars} for {self.lineage or 'this workspace'}"


def parse_dollars(text: str, what: str = "an amount of dollars") -> Decimal:
    """A person's amount ("10", "$2.50"). Raises KlineageError unless it is a number from 0 to a thousand million."""
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite() or not 0 <= amount < _UNHEARD_OF:
        raise KlineageError(f"{what} cannot be {text!r}; write it like 10 or 2.50")
    return amount
