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
    found: dict[str, Latency] = {}
    for index, step in enumerate(steps):
        match = _TIMES.search(step.profile) if step.trust.startswith("measured") else None
        if match is None:
            continue
        clock = f"{match['timer']}, {match['size']}"
        found[step.commit] = Latency(float(match["after"]), clock)
        if index == 1 and match["before"]:
            found.setdefault(steps[0].commit, Latency(float(match["before"]), clock))
    return found


def comparable(found: Mapping[str, Latency]) -> tuple[dict[str, float], str]:
    """The milliseconds of the most frequent clock, and its name; the others cannot share an axis."""
    if not found:
        return {}, ""
    clock, _ = Counter(latency.clock for latency in found.values()).most_common(1)[0]
    return {commit: item.milliseconds for commit, item in found.items() if item.clock == clock}, clock
