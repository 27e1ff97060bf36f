"""Interleaved times of a kernel and its baseline, taken in one process. What they mean is for ``effect`` to say.

A round is baseline, candidate, candidate, baseline, or the other way round, and keeps the faster of
each two. Between the rounds a second copy of the baseline runs against the first.
"""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[[], None]
Clock = Callable[[], int]  # nanoseconds

MOST_REPEATS = 1 << 16
_LEAST_PART = 0.02  # of a sample that is left when the cost of calling is taken off

# A kernel on one thread is timed by what its thread used: a neighbour that takes the processor away
# costs nothing then. Threads of OpenMP wait for one another, so there only the wall clock is right.
CLOCKS: dict[str, Clock] = {"thread_cpu_time": time.thread_time_ns, "clock_monotonic": time.perf_counter_ns}


@dataclass(frozen=True)
class Plan:
    """How long one process measures. Every sample repeats its kernel until it lasts ``sample_seconds``."""

    rounds: int = 8
    least_rounds: int = 2
    seconds: float = 0.05  # after this, ``least_rounds`` must do
    sample_seconds: float = 0.0005


class Stopwatch:
    """Takes samples by one clock and, beside it, by the wall clock.

    ``overhead`` is what an empty call costs, in milliseconds; it is taken off every call.
    ``before`` runs before every sample, off the clock: it puts back what a kernel changes in place.
    """

    def __init__(self, clock: Clock, overhead: float = 0.0, before: Call | None = None) -> None:
        self.clock, self.overhead, self.before = clock, overhead, before
        self.wall = 0.0  # milliseconds of one call of the last sample, by the wall clock

    def sample(self, call: Call, repeats: int) -> float:
        """Milliseconds of one call, averaged over ``repeats`` calls back to back."""
        if self.before is not None:
            self.before()
        wall, begin = time.perf_counter_ns(), self.clock()
        for _ in range(repeats):
            call()
        taken = (self.clock() - begin) / repeats / 1e6
        self.wall = self._net((time.perf_counter_ns() - wall) / repeats / 1e6)
        return self._net(taken)

    def _net(self, taken: float) -> float:
        return max(taken - self.overhead, _LEAST_PART * taken, 1e-7)

    def repeats(self, call: Call, seconds: float) -> int:
        """Warm up, and find how many calls make one sample of ``seconds``. A slow kernel is called once."""
        repeats = 1
        while True:
            elapsed = (self.sample(call, repeats) + self.overhead) * repeats / 1e3
            if elapsed >= seconds or repeats >= MOST_REPEATS:
                return repeats
            repeats = min(MOST_REPEATS, max(repeats * 2, math.ceil(repeats * seconds / max(elapsed, 1e-7))))


def nothing(arguments: tuple[Any, ...]) -> Call:
    """A call with these arguments of a foreign function that does nothing (``abs`` of libc)."""
    pointer = ctypes.CDLL(None).abs
    pointer.restype = None
    pointer.argtypes = [type(argument) for argument in arguments]
    return lambda: pointer(*arguments)


def overhead_ms(arguments: tuple[Any, ...], clock: Clock) -> float:
    """What it costs to call a foreign function with these arguments."""
    watch, call = Stopwatch(clock), nothing(arguments)
    return statistics.median(watch.sample(call, 100) for _ in range(7))


def paired(
    candidate: Call, baseline: Call, twin: Call, plan: Plan, watch: Stopwatch, between: Call | None = None
) -> dict[str, Any]:
    """Measure both, interleaved, with A/A rounds between. Returns lists of milliseconds, one a round.

    ``twin`` is a second copy of the baseline: what differs between the two is the noise of the process,
    the luck of where code was placed included. ``between`` is called between rounds, off the clock.
    """
    many_c, many_b = (watch.repeats(call, plan.sample_seconds) for call in (candidate, baseline))
    if max(many_c, many_b) <= 4 * min(many_c, many_b):
        many_c = many_b = max(many_c, many_b)  # a call that follows its own is warmer: be fair
    times_c: list[float] = []
    times_b: list[float] = []
    walls: list[Timed] = []
    same: tuple[list[float], list[float]] = ([], [])
    begin = time.perf_counter()
    while True:
        mine, base = (candidate, many_c), (baseline, many_b)
        if len(times_c) % 2:  # so that neither is always the one between two of the other
            c, b = _round(mine, base, watch)
        else:
            b, c = _round(base, mine, watch)
        times_c.append(c[0])
        times_b.append(b[0])
        walls.append((c[1], b[1]))
        # Every second round, and every round where the baseline costs little beside the candidate.
        if len(times_c) % 2 or times_b[-1] * many_b < 0.5 * times_c[-1] * many_c:
            first, second = _round((baseline, many_b), (twin, many_b), watch)
            same[0].append(first[0])
            same[1].append(second[0])
        if len(times_c) >= plan.rounds or (
            len(times_c) >= plan.least_rounds and time.perf_counter() - begin >= plan.seconds
        ):
            return {
                "candidate_ms": times_c,
                "baseline_ms": times_b,
                "aa_ms": [same[0], same[1]],
                "wall_ms": [min(wall[0] for wall in walls), min(wall[1] for wall in walls)],
                "repeats": [many_c, many_b],
            }
        if between is not None:
            between()


Timed = tuple[float, float]  # by the clock, by the wall


def _round(first: tuple[Call, int], second: tuple[Call, int], watch: Stopwatch) -> tuple[Timed, Timed]:
    """First, second, second, first; the faster of each two."""
    taken = []
    for call, many in (first, second, second, first):
        taken.append((watch.sample(call, many), watch.wall))
    return min(taken[0], taken[3]), min(taken[1], taken[2])


def alone(call: Call, plan: Plan, watch: Stopwatch, between: Call | None = None) -> list[float]:
    """Measure one kernel by itself: milliseconds, one a round."""
    many = watch.repeats(call, plan.sample_seconds)
    times: list[float] = []
    begin = time.perf_counter()
    while True:
        times.append(min(watch.sample(call, many), watch.sample(call, many)))
        if len(times) >= plan.least_rounds and (
            len(times) >= plan.rounds or time.perf_counter() - begin >= plan.seconds
        ):
            return times
        if between is not None:
            between()


def single_calls(calls: list[Call], count: int, before: Call, clock: Clock) -> list[list[float]]:
    """Milliseconds of single calls, taken in turns, with ``before`` off the clock ahead of each."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(count):
        for number, call in enumerate(calls):
            before()
            begin = clock()
            call()
            taken[number].append((clock() - begin) / 1e6)
    return taken
