"""The times of a lineage, where there are any. Counts are never times and never come through here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klineage.lineage import Step

_TIMES = re.compile(
    r"(?P<after>[0-9.e+-]+) ms(?: of (?P<before>[0-9.e+-]+) ms)? \((?P<timer>[^,()]*), (?P<size>[^()]*)\)"
)


@dataclass(frozen=True)
class Latency:
    """One measured latency. Only those of equal ``clock`` (timer and size) may be compared."""

    milliseconds: float
    clock: str  # "cuda-event, paper"


def latencies(steps: Sequence[Step]) -> dict[str, Latency]:
    """Commit -> latency, as the steps' own profiles record it.

    The first state has no profile of its own against another one; its latency is the baseline of the
    step after it. Steps that were not timed are absent.
    """
    timed = ((step.commit, latency_of(steps, index)) for index, step in enumerate(steps))
    return {commit: latency for commit, latency in timed if latency is not None}


def latency_of(steps: Sequence[Step], index: int) -> Latency | None:
    """The latency of one state, as in ``latencies``."""
    if found := _times(steps[index]):
        return Latency(float(found["after"]), _clock(found))
    before = _times(steps[1]) if index == 0 and len(steps) > 1 else None
    if before is None or not before["before"]:
        return None
    return Latency(float(before["before"]), _clock(before))


def _times(step: Step) -> re.Match[str] | None:
    return _TIMES.search(step.profile) if step.trust.startswith("measured") else None


def _clock(found: re.Match[str]) -> str:
    return f"{found['timer']}, {found['size']}"


def comparable(found: Mapping[str, Latency]) -> tuple[dict[str, float], str]:
    """The milliseconds of the most frequent clock, and its name; the others cannot share an axis."""
    if not found:
        return {}, ""
    clock, _ = Counter(latency.clock for latency in found.values()).most_common(1)[0]
    return {commit: item.milliseconds for commit, item in found.items() if item.clock == clock}, clock
