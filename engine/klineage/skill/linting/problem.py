"""What lint finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from klineage.skill.card import Card

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """Something that a curator should mend.

    field:    as ``klineage.skill.file.lines`` names it: ``preconditions.p1.text``, ``effects.0``.
    severity: ``error``: the card says what it cannot show, or what cannot be read; ``warning``: look at it.
    text:     one sentence: what, and what to do.
    rule:     the name of what was looked for, ``dangling-evidence``.
    line:     of the file, where its text was given.
    """

    field: str
    severity: Severity
    text: str
    rule: str
    line: int | None = None


Look = Callable[[Card], Iterator[Problem]]
