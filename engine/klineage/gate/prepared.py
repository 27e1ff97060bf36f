"""What is known of a kernel's text before it travels: its static stage, and the kernel as workers get it.

Parsing needs tree-sitter, which the machine that runs a batch does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from klineage.gate.verdict import StageResult


@dataclass(frozen=True)
class Prepared:
    """``job`` is empty when ``static`` did not pass."""

    static: StageResult
    job: dict[str, Any]


_known: dict[str, Prepared] = {}


def put(kernel: str, prepared: Prepared) -> None:
    """Remember what is known of the kernel with this hash, for this process."""
    _known[kernel] = prepared


def get(kernel: str) -> Prepared | None:
    return _known.get(kernel)
