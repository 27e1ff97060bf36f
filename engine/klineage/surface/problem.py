"""One thing that a static check found wrong with a kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """``reason`` is a machine-readable code, ``message`` one sentence, ``line`` from 1 (0: the file)."""

    reason: str
    message: str
    line: int = 0
