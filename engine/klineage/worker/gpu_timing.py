"""Times on a GPU: runs queued behind a wait, flushed, interleaved; by CUPTI where launches matter, else by events.

An event pair around a run of a few microseconds measures the launch as much as the kernel. CUPTI, through
torch's profiler, gives the span from the start of the first kernel of a run to the end of its last.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Protocol

from klineage.worker import gpu_state
from klineage.worker.faults import KernelFault, WorkerError

Launch = Callable[[], Any]

SHORT_MS = 0.1  # below this the cost of a launch shows in events
VERIFIED = 3  # rounds, beside the last
_WARM_UP = 3
_SLACK = 2.0  # the device waits this many times the host's launch time before a run starts
_BATCH = 10  # rounds queued between two looks at the clocks
_MARK = "spin_kernel"  # what torch.cuda._sleep launches; it stands before and after every run


class Check(Protocol):
    """Judges what the candidate leaves in a set of buffers. ``run`` takes one run on that set."""

    def begin(self, run: Launch) -> None: ...

    def check(self, turn: int, run: Launch) -> None: ...


class Sampler:
    """Queues flushed, timed runs. The device idles while the host gets ahead, so launches cost no time."""

    def __init__(self, host_seconds: float) -> None:
        import torch

        self.torch = torch
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.scratch = torch.empty(2 * properties.L2_cache_size, dtype=torch.uint8, device="cuda")
        self.wait_cycles = int(_SLACK * host_seconds * 2e9)  # at most 2 GHz
        self.watcher = gpu_state.Watcher(str(getattr(properties, "uuid", "")))

    def run(self, calls: list[Launch]) -> list[float]:
        """Milliseconds of each call, in order, by events."""
        events = []
        for call in calls:
            begin = self.torch.cuda.Event(enable_timing=True)
            end = self.torch.cuda.Event(enable_timing=True)
            self._ahead()
            begin.record()
            call()
            end.record()
            events.append((begin, end))
        self.watcher.sample()
        self.torch.cuda.synchronize()
        return _positive([float(begin.elapsed_time(end)) for begin, end in events])

    def run_marked(self, calls: list[Launch]) -> None:
        """Queue every call between two marks, for CUPTI to see."""
        for call in calls:
            self._ahead()
            call()
            self.torch.cuda._sleep(1)
        self.watcher.sample()
        self.torch.cuda.synchronize()

    def _ahead(self) -> None:
        self.scratch.zero_()
        self.torch.cuda._sleep(self.wait_cycles)


def _positive(taken: list[float]) -> list[float]:
    if min(taken) <= 0:
        raise KernelFault("impossible_time", "the device reports that the entry took no time")
    return taken


def measure_calls(
    calls: list[tuple[Launch, Launch]], rounds: int, *, paired: bool, check: Check | None = None
) -> dict[str, Any]:
    """Time (candidate, baseline) launches, interleaved, and the baseline against itself.

    calls: one pair a set of buffers; rounds take them in turn, so that no cache can help. Each queues its
    kernels on the default stream. Each round runs candidate, baseline, baseline, candidate and four times
    the baseline, every run after the level-2 cache was flushed. Returns candidate_ms and baseline_ms (one
    number a round: the faster of two runs), aa_ms (two such lists for the baseline alone), "timer" ("cupti"
    or "cuda-event"), "clocks" (see gpu_state), "verified". Without ``paired`` the candidate is compared with itself and
    baseline_ms is empty. ``check`` sees
    the first run of all, on the first set, and runs between rounds that nobody can foresee.
    Raises WorkerError when there is no GPU.
    """
    import torch

    if not torch.cuda.is_available():
        raise WorkerError("no_gpu", "this machine has no GPU that torch can use")
    if not calls or rounds < 1:
        raise WorkerError("measure", "measuring needs at least one set of values and one round")
    if check is not None:
        check.begin(calls[0][0])
    sampler = Sampler(max(_warm_up(call) for pair in calls for call in pair))
    taken = _Rounds(calls, rounds, check)
    short = max(min(sampler.run([calls[0][1]] * 3)), min(sampler.run([calls[0][0]] * 3))) < SHORT_MS
    samples, note = _by_cupti(sampler, taken) if short else ([], "")
    timer = "cupti" if samples else "cuda-event"
    if not samples:
        samples = taken.by(sampler, sampler.run)
    return {
        "candidate_ms": [s[0] for s in samples],
        "baseline_ms": [s[1] for s in samples] if paired else [],
        "aa_ms": [[s[2] for s in samples], [s[3] for s in samples]],
        "timer": timer,
        "timer_note": note,
        "clocks": sampler.watcher.summary(),
        "verified": taken.verified,
    }


def _warm_up(call: Launch) -> float:
    """Seconds that the host needs to launch ``call`` once it is compiled."""
    import torch

    for _ in range(_WARM_UP):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken


Round = tuple[float, float, float, float]  # candidate, baseline, and the baseline twice more


class _Rounds:
    """The rounds of one measurement, and the checks between them."""

    def __init__(self, calls: list[tuple[Launch, Launch]], rounds: int, check: Check | None) -> None:
        self.calls, self.rounds, self.check = calls, rounds, check
        self.verified = 0
        # The last one always: what rests after so many calls rests by then.
        self.due = {rounds - 1, *random.SystemRandom().sample(range(rounds - 1), min(VERIFIED, rounds - 1))}

    def orders(self, number: int) -> list[Launch]:
        candidate, baseline = self.calls[number % len(self.calls)]
        return [candidate, baseline, baseline, candidate, *[baseline] * 4]

    def by(self, sampler: Sampler, run: Callable[[list[Launch]], list[float]]) -> list[Round]:
        done = []
        for number in range(self.rounds):
            done.append(folded(run(self.orders(number))))
            self.between(number, sampler)
        return done

    def between(self, number: int, sampler: Sampler) -> None:
        if self.check is not None and number in self.due:
            turn = number % len(self.calls)
            self.check.check(turn, lambda: sampler.run([self.calls[turn][0]]))
            self.verified += 1


def folded(t: list[float]) -> Round:
    """The eight runs of a round to its four numbers: the faster of each two."""
    return min(t[0], t[3]), min(t[1], t[2]), min(t[4], t[7]), min(t[5], t[6])


def _by_cupti(sampler: Sampler, taken: _Rounds) -> tuple[list[Round], str]:
    """All rounds under torch's profiler. No samples, and why, where CUPTI does not give every run."""
    done: list[Round] = []
    for first in range(0, taken.rounds, _BATCH):
        numbers = range(first, min(first + _BATCH, taken.rounds))
        times, note = by_cupti(sampler, [call for number in numbers for call in taken.orders(number)])
        if note:
            return [], note
        done += [folded(times[i : i + 8]) for i in range(0, len(times), 8)]
        for number in numbers:
            taken.between(number, sampler)
    return done, ""


def by_cupti(sampler: Sampler, calls: list[Launch]) -> tuple[list[float], str]:
    """Milliseconds of each call, in order, under torch's profiler. None, and why, where CUPTI misses a run."""
    import torch

    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            sampler.run_marked(calls)
        seen = [(e.name(), e.start_ns(), e.duration_ns()) for e in _device_events(profiler)]
    except (RuntimeError, AttributeError, AssertionError) as error:
        return [], f"CUPTI is not available ({type(error).__name__}), so the launch is part of the time"
    spans = spans_of(seen)
    if len(spans) != len(calls):
        return [], f"CUPTI saw {len(spans)} of {len(calls)} runs, so the launch is part of the time"
    return _positive(spans), ""


def _device_events(profiler: Any) -> list[Any]:
    from torch.autograd import DeviceType

    return [e for e in profiler.profiler.kineto_results.events() if e.device_type() == DeviceType.CUDA]


def spans_of(seen: list[tuple[str, int, int]]) -> list[float]:
    """Milliseconds from the start of a run's first activity to the end of its last.

    seen: (name, start, duration) in nanoseconds. A run lies between two marks; between the second mark of one
    and the first of the next the cache is flushed.
    """
    spans: list[float] = []
    inside: list[tuple[int, int]] = []
    marks = 0
    for name, start, duration in sorted(seen, key=lambda event: event[1]):
        if _MARK in name and "::" in name:  # no kernel of Triton or of extern "C" has such a name
            marks += 1
            if marks % 2 == 0 and inside:
                spans.append((max(end for _, end in inside) - min(begin for begin, _ in inside)) / 1e6)
            inside = []
        elif marks % 2:
            inside.append((start, start + duration))
    return spans
