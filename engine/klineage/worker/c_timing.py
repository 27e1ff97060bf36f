"""Time a C kernel against its baseline: in several processes, each with its own placement of code and data.

The child that the server watches draws the inputs and never runs kernel code. For every group of rounds it forks a
process that loads the kernels and times them; afterwards it judges outputs that were left in the middle of the timed rounds.
"""

from __future__ import annotations

import mmap
import os
import random
import shutil
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from klineage.worker import buffers, effect, limits, processor, timing
from klineage.worker.check import confinement
from klineage.worker.examine import Case, examine
from klineage.worker.faults import KernelFault
from klineage.worker.nested import nested
from klineage.worker.problem import Problem
from klineage.worker.process import Channel
from klineage.worker.runners import CRunner, problem_of, use_threads

VERIFIED = 3  # processes that leave an output for the judge
FRESH = 2  # processes that also time single calls on empty outputs
FRESH_CALLS = 5
COLD_CALLS = 3
_MOST_WALKED = 256 << 20  # bytes, to empty the caches
_PAGES = 64  # of padding between what a process maps


@dataclass
class _Job:
    """What all processes of one measurement share."""

    request: dict[str, Any]
    problem: Problem
    dims: dict[str, int]
    inputs: dict[str, Any]
    slots: tuple[buffers.Slot, ...]
    total: int
    timer: str
    plan: timing.Plan
    left: list[mmap.mmap] = field(default_factory=list)  # regions as timed runs left them

    @property
    def kernels(self) -> list[dict[str, Any]]:
        return [self.request["kernel"], *([self.request["baseline"]] if self.request.get("baseline") else [])]


def measure(request: dict[str, Any], channel: Channel) -> None:
    """Body of the watched child. Sends the raw rounds of every process, and what was verified."""
    problem, dims = problem_of(request), request["dims"]
    inputs = problem.inputs(request["seed"], dims)
    slots, total = problem.layout(dims)
    threaded = use_threads(*(k for k in (request["kernel"], request.get("baseline")) if k))
    job = _Job(
        request, problem, dims, inputs, slots, total,
        "clock_monotonic" if threaded else "thread_cpu_time", timing.Plan(**request["plan"]),
    )  # fmt: skip
    cost = problem.cost(dims)
    channel.send(progress={"detail": "warming up"})
    processes = _processes(job, channel)
    channel.send(progress={"detail": "verifying what the timed runs wrote"})
    verified = _verify(job)
    cold = nested(lambda: _cold(job)) if request.get("cold", True) else {}
    channel.send(
        result={
            "processes": processes,
            "cost": cost,
            "layers": processes[0]["layers"],
            "timer": job.timer,
            "verified": verified,
            **cold,
        }
    )


def _processes(job: _Job, channel: Channel) -> list[dict[str, Any]]:
    """Processes one after the other, until the effect is decided or the time is used up."""
    done: list[dict[str, Any]] = []
    end = time.monotonic() + job.request["most_seconds"]
    floor = job.request.get("floor", effect.FLOOR)
    while True:
        if len(done) < VERIFIED:
            job.left.append(mmap.mmap(-1, job.total))
        leaves = job.left[-1] if len(done) < VERIFIED else None
        number = len(done)
        done.append(nested(lambda: _process(job, number, leaves)))  # noqa: B023 (called before the next turn)
        late = time.monotonic() >= end
        if len(job.kernels) == 1:
            enough = len(done) >= 2
        else:
            found = effect.estimate([effect.group_of(raw) for raw in done], floor)
            enough = found.decided
            channel.send(
                progress={
                    "detail": f"process {len(done)}: {found.ratio:.3f}x ±{found.high - found.ratio:.1%}"
                }
            )
        if enough or late:
            return done


def _process(job: _Job, number: int, leaves: mmap.mmap | None) -> dict[str, Any]:
    """Body of one timing process: both kernels and a copy of the baseline, on the same buffers.

    Buffers of their own would make equal kernels differ by 5 %: it matters which physical pages one gets.
    """
    held, calls, region, arguments = _loaded(job, number)
    clock = timing.CLOCKS[job.timer]
    before = _restoring(job, region) if job.problem.mutates else None
    overhead = timing.overhead_ms(arguments, clock)
    watch = timing.Stopwatch(clock, overhead, before)
    sampled = _Sampled(job, region, calls[0], watch, leaves) if leaves is not None else None
    between = sampled.between if sampled else None
    if len(calls) == 1:
        raw: dict[str, Any] = {"alone": timing.alone(calls[0], job.plan, watch, between)}
    else:
        raw = timing.paired(calls[0], calls[1], calls[2], job.plan, watch, between)
        if number < FRESH:
            everyone = [*calls[:2], timing.nothing(arguments)]
            singles = timing.single_calls(everyone, FRESH_CALLS, _emptying(job, region), clock)
            # The least of each: a busy machine makes calls longer, and no call on emptied outputs can rest.
            least = [min(taken) for taken in singles]
            raw["fresh_ms"] = [max(taken - least[2], 1e-6) for taken in least[:2]]
            calls[0]()
            kept = timing.single_calls(calls[:1], FRESH_CALLS, _rewriting(job, region), clock)
            raw["kept_ms"] = max(min(kept[0]) - least[2], 1e-6)
    if sampled:
        sampled.finish()
    return {**raw, "overhead_ms": overhead, "layers": held}


Loaded = tuple[dict[str, bool], "list[timing.Call]", Any, tuple[Any, ...]]


def _loaded(job: _Job, number: int) -> Loaded:
    """Confine this process, place everything anew, and load the kernels in a random order."""
    luck = random.Random(int.from_bytes(os.urandom(8), "little"))
    padding = [mmap.mmap(-1, mmap.PAGESIZE * luck.randrange(1, _PAGES)) for _ in range(3)]
    region = np.frombuffer(mmap.mmap(-1, job.total), np.uint8)
    buffers.fill(region, job.slots, job.inputs)
    if job.timer == "thread_cpu_time":
        processor.pin()
    held = limits.apply(confinement(job.request, "native"), f"timing-{number}")
    kernels = job.kernels
    if len(kernels) > 1:
        kernels.append({**kernels[1], "library": _twin(kernels[1]["library"])})
    flags = [flag for kernel in kernels for flag in kernel["flags"]]
    runners: dict[int, CRunner] = {}
    for place in luck.sample(range(len(kernels)), len(kernels)):
        padding.append(mmap.mmap(-1, mmap.PAGESIZE * luck.randrange(1, _PAGES)))
        runners[place] = CRunner({**kernels[place], "flags": flags}, job.problem, job.dims)
    every = [
        runners[i].function.arguments(region, job.slots, job.dims, job.problem.scalars)
        for i in sorted(runners)
    ]
    calls = [_call(runners[i].function.pointer, every[i]) for i in sorted(runners)]
    return held, calls, region, every[0]


def _call(pointer: Any, arguments: tuple[Any, ...]) -> timing.Call:
    return lambda: pointer(*arguments)


def _twin(library: str) -> str:
    """A copy of a library, which the loader therefore maps a second time."""
    return shutil.copy(library, str(Path.cwd() / "twin.so"))


def _restoring(job: _Job, region: Any) -> timing.Call:
    """Put back the inputs that a kernel changes in place."""
    places = [
        (region[s.offset : s.end], job.inputs[s.name]) for s in job.slots if s.name in job.problem.mutates
    ]
    pieces = [(place, np.ascontiguousarray(value).reshape(-1).view(np.uint8)) for place, value in places]

    def restore() -> None:
        for place, value in pieces:
            place[:] = value

    return restore


def _emptying(job: _Job, region: Any) -> timing.Call:
    """Poison the outputs and restore what is changed in place: nothing of an earlier call is left to reuse."""
    pieces = []
    for slot in _outputs(job):
        count = slot.size // buffers.ITEMSIZE[slot.type]
        pieces.append(
            (region[slot.offset : slot.end], np.frombuffer(buffers.poison(slot.type) * count, np.uint8))
        )
    return _writing(job, region, pieces)


def _rewriting(job: _Job, region: Any) -> timing.Call:
    """Write to the outputs what is there already: the caches are as after emptying them, and the work is done."""
    places = [region[slot.offset : slot.end] for slot in _outputs(job)]
    return _writing(job, region, [(place, place.copy()) for place in places])


def _outputs(job: _Job) -> list[buffers.Slot]:
    """The outputs that are no inputs too."""
    return [s for s in job.slots if s.name in job.problem.outputs and s.name not in job.inputs]


def _writing(job: _Job, region: Any, pieces: list[tuple[Any, Any]]) -> timing.Call:
    restore = _restoring(job, region)

    def write() -> None:
        restore()
        for place, value in pieces:
            place[:] = value

    return write


class _Sampled:
    """Once, between two rounds that nobody can foresee, lays all out anew, takes a sample, and keeps what it left."""

    def __init__(self, job: _Job, region: Any, call: timing.Call, watch: timing.Stopwatch, leaves: mmap.mmap):
        self.job, self.region, self.call, self.watch, self.leaves = job, region, call, watch, leaves
        self.due = random.Random(int.from_bytes(os.urandom(8), "little")).randrange(job.plan.rounds - 1)
        self.turn = 0

    def between(self) -> None:
        if self.turn == self.due:
            self.take()
        self.turn += 1

    def take(self) -> None:
        buffers.fill(self.region, self.job.slots, self.job.inputs)
        self.watch.sample(self.call, 1 if self.job.problem.mutates else 3)
        self.leaves[:] = self.region.tobytes()

    def finish(self) -> None:
        """Slow kernels have few rounds: the one that was due may never have come."""
        if self.turn <= self.due:
            self.take()


def _verify(job: _Job) -> int:
    """Judge what timed runs left behind. Returns how many; raises KernelFault("timed_output", ...)."""
    told = {"size": job.request["size"], "dims": job.dims, "seed": job.request["seed"], "number": 0}
    told |= {"recipe": "normal", "variant": ""}
    expected = job.problem.reference(job.inputs, job.dims)
    case = Case(job.problem, told, job.inputs, expected, job.slots)
    seen: list[bytes] = []
    for left in job.left:
        region = np.frombuffer(left, np.uint8)
        if left[:] in seen:
            continue
        seen.append(left[:])
        found = examine(case, region, None)
        if "failure" in found:
            wrong = dict(found["failure"])
            summary = f"wrong while it was timed, though right when it was checked: {wrong.pop('summary')}"
            wrong.pop("reason")
            raise KernelFault("timed_output", summary, **wrong)
    return len(job.left)


def _cold(job: _Job) -> dict[str, Any]:
    """Single calls with empty caches, in a process of its own."""
    _, calls, region, arguments = _loaded(job, VERIFIED + 1)
    clock = timing.CLOCKS[job.timer]
    size = min(2 * processor.last_level_cache(), _MOST_WALKED)
    walked = processor.walkable(size)
    empty = _emptying(job, region)

    def before() -> None:
        empty()
        np.add.reduce(walked)

    for call in calls[:2]:
        empty()
        call()
    taken = timing.single_calls(calls[:2], COLD_CALLS, before, clock)
    overhead = timing.overhead_ms(arguments, clock)
    return {"cold_ms": [max(statistics.median(part) - overhead, 1e-6) for part in taken], "cold_bytes": size}
