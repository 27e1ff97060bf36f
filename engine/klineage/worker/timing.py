"""From interleaved times to a ratio that can be believed, or to none.

A round is baseline, candidate, candidate, baseline, or the other way round, and keeps the faster of
each two. The effect is the median of the rounds' log ratios with a bootstrap interval. An interval alone calls a quarter of
all A/A runs an effect, so a verdict also needs a minimum effect: the larger of 2 % and three times
the half-width of an A/A measurement taken in the same session.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 1000
FEW_ROUNDS = 20  # below this many rounds, only an effect of 10 % counts


@dataclass(frozen=True)
class Plan:
    """How long to measure. Every sample repeats its kernel until it lasts ``sample_seconds``."""

    rounds: int = 20
    least_rounds: int = 5
    seconds: float = 0.15  # after this, and ``rounds``, it is enough
    most_seconds: float = 4.0  # after this, ``least_rounds`` must do
    sample_seconds: float = 0.0005


@dataclass(frozen=True)
class Estimate:
    """A paired comparison. ``ratio`` is candidate over baseline; ``noise`` the A/A half-width."""

    ratio: float
    low: float
    high: float
    noise: float
    spread: float  # p90 / p10 of the rounds' ratios
    rounds: int
    effect: str  # "slower", "neutral", "faster"


def _interval(logs: np.ndarray[Any, Any]) -> tuple[float, float]:
    """95 % bootstrap interval of the median; the seed is fixed so that equal samples give equal verdicts."""
    picks = np.random.Generator(np.random.PCG64(0)).integers(0, logs.size, (RESAMPLES, logs.size))
    medians = np.median(logs[picks], axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(low), float(high)


def estimate(
    candidate: list[float], baseline: list[float], same: tuple[list[float], list[float]]
) -> Estimate:
    """Compare paired rounds (equal units). ``same`` holds pairs of the baseline against itself."""
    logs = np.log(np.asarray(candidate) / np.asarray(baseline))
    low, high = _interval(logs)
    same_logs = np.log(np.asarray(same[0]) / np.asarray(same[1]))
    same_low, same_high = _interval(same_logs)
    noise = max(abs(same_low), abs(same_high))
    middle = float(np.median(logs))
    least = max(math.log(1.02 if logs.size >= FEW_ROUNDS else 1.10), 3 * noise)
    effect = "neutral"
    if low > 0 and middle > least:
        effect = "slower"
    elif high < 0 and -middle > least:
        effect = "faster"
    p10, p90 = np.quantile(logs, (0.1, 0.9))
    return Estimate(
        math.exp(middle),
        math.exp(low),
        math.exp(high),
        math.expm1(noise),
        math.exp(p90 - p10),
        int(logs.size),
        effect,
    )


Call = Callable[[], None]
Clock = Callable[[], int]  # nanoseconds

# A kernel on one thread is timed by what its thread used: a neighbour that takes the processor away
# costs nothing then. Threads of OpenMP wait for one another, so there only the wall clock is right.
CLOCKS: dict[str, Clock] = {"thread_cpu_time": time.thread_time_ns, "clock_monotonic": time.perf_counter_ns}


def sample(call: Call, repeats: int, clock: Clock) -> float:
    """Milliseconds of one call, averaged over ``repeats`` calls back to back."""
    begin = clock()
    for _ in range(repeats):
        call()
    return (clock() - begin) / repeats / 1e6


def calibrate(call: Call, plan: Plan, clock: Clock) -> int:
    """Warm up, and find how many calls make one sample. A slow kernel is called once."""
    repeats = 1
    while True:
        elapsed = sample(call, repeats, clock) * repeats / 1e3
        if elapsed >= plan.sample_seconds or repeats >= 1 << 16:
            return repeats
        repeats = min(
            1 << 16, max(repeats * 2, math.ceil(repeats * plan.sample_seconds / max(elapsed, 1e-7)))
        )


def paired(candidate: Call, baseline: Call, twin: Call, plan: Plan, clock: Clock) -> dict[str, Any]:
    """Measure both, interleaved, with A/A rounds between. Returns lists of milliseconds, one a round.

    ``twin`` is a second copy of the baseline: what differs between the two is the noise of the session,
    the luck of where code was placed included.
    """
    many_c, many_b = calibrate(candidate, plan, clock), calibrate(baseline, plan, clock)
    if max(many_c, many_b) <= 4 * min(many_c, many_b):
        many_c = many_b = max(many_c, many_b)  # a call that follows its own is warmer: be fair
    times_c: list[float] = []
    times_b: list[float] = []
    same: tuple[list[float], list[float]] = ([], [])
    begin = time.perf_counter()
    while True:
        pair = [(baseline, many_b), (candidate, many_c)]
        if len(times_c) % 2:
            pair.reverse()  # so that neither is always the one between two of the other
        first, second = pair
        f1, s1, s2, f2 = (sample(call, many, clock) for call, many in (first, second, second, first))
        outer, inner = min(f1, f2), min(s1, s2)
        times_b.append(outer if first[0] is baseline else inner)
        times_c.append(inner if first[0] is baseline else outer)
        # Every second round, and every round where the baseline costs little beside the candidate.
        if len(times_c) % 2 or times_b[-1] * many_b < 0.5 * times_c[-1] * many_c:
            a1, x1, x2, a2 = (sample(call, many_b, clock) for call in (baseline, twin, twin, baseline))
            same[0].append(min(a1, a2))
            same[1].append(min(x1, x2))
        if _enough(times_c, times_b, time.perf_counter() - begin, plan):
            return {"candidate_ms": times_c, "baseline_ms": times_b, "aa_ms": [same[0], same[1]]}


def _enough(candidate: list[float], baseline: list[float], elapsed: float, plan: Plan) -> bool:
    rounds = len(candidate)
    if rounds < plan.least_rounds or elapsed < plan.seconds:
        return False
    if rounds >= plan.rounds or elapsed >= plan.most_seconds:
        return True
    # Every round beyond 1.5x in one direction: more rounds would add time, not knowledge.
    ratios = [c / b for c, b in zip(candidate, baseline, strict=True)]
    return min(ratios) > 1.5 or max(ratios) < 1 / 1.5


def alone(call: Call, plan: Plan, clock: Clock) -> list[float]:
    """Measure one kernel by itself: milliseconds, one a round."""
    many = calibrate(call, plan, clock)
    times: list[float] = []
    begin = time.perf_counter()
    while True:
        times.append(min(sample(call, many, clock), sample(call, many, clock)))
        elapsed = time.perf_counter() - begin
        if len(times) >= plan.least_rounds and elapsed >= plan.seconds / 2:
            return times
