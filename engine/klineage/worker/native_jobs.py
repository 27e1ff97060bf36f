"""Jobs of C kernels: compile, and time."""

from __future__ import annotations

import mmap
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from klineage.worker import buffers, c_build, c_native, limits, timing
from klineage.worker.check import confinement
from klineage.worker.jobs import Context, Result, single, verdict
from klineage.worker.process import Channel
from klineage.worker.runners import CRunner, problem_of, source_of, use_threads

NOISY_SPREAD = 1.2


def compile_c(request: dict[str, Any], context: Context) -> Result:
    """Build the kernel, then bind its parameters. The result names the library."""
    kernel = request["kernel"]
    c_build.compiler()  # in the server, so that its version is asked for once

    def build(channel: Channel) -> None:
        cache = c_build.open_cache(request["cache"])
        held = limits.apply(confinement(request, "compiler"))  # a source can make a compiler eat the machine
        flags = tuple(kernel["flags"])
        done = c_build.build(source_of(kernel), kernel["filename"], flags, cache)
        problem = problem_of(request)
        c_native.bind([tuple(p) for p in kernel["parameters"]], problem, request["dims"])
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "layers": held, **done})

    return single(context, build, request["limits"]["compile_seconds"], "to compile")


def _region(slots: tuple[buffers.Slot, ...], total: int, inputs: dict[str, Any]) -> Any:
    region = np.frombuffer(mmap.mmap(-1, total), np.uint8)
    buffers.fill(region, slots, inputs)
    return region


def _pin() -> None:
    """Stay on the processor that gave this thread most of a millisecond: its neighbours are the quietest."""
    if not hasattr(os, "sched_setaffinity"):
        return
    shares = {}
    for cpu in sorted(os.sched_getaffinity(0))[-8:]:
        os.sched_setaffinity(0, {cpu})
        wall, used = time.perf_counter_ns(), time.thread_time_ns()
        while time.perf_counter_ns() - wall < 1_000_000:
            pass
        shares[cpu] = (time.thread_time_ns() - used) / (time.perf_counter_ns() - wall)
    os.sched_setaffinity(0, {max(shares, key=lambda cpu: shares[cpu])})


def _twin(library: str) -> str:
    """A copy of a library, which the loader therefore maps a second time."""
    return shutil.copy(library, str(Path(os.environ["KLINEAGE_SCRATCH"]) / "twin.so"))


def _measure(request: dict[str, Any], channel: Channel) -> None:
    """Body of the measuring child: both kernels and a twin of the baseline, on the same buffers.

    Buffers of their own would make equal kernels differ by 5 %: it matters which physical pages one gets.
    """
    problem, dims = problem_of(request), request["dims"]
    plan = timing.Plan(**request["plan"])
    inputs = problem.inputs(request["seed"], dims)
    slots, total = buffers.layout(problem.tensors(dims))
    kernels = [request["kernel"], *([request["baseline"]] if request.get("baseline") else [])]
    timer = "clock_monotonic"
    if not use_threads(*kernels):
        timer = "thread_cpu_time"
        _pin()
    clock = timing.CLOCKS[timer]
    cost = problem.cost(dims)
    region = _region(slots, total, inputs)
    held = limits.apply(confinement(request, "native"))
    if len(kernels) > 1:
        kernels.append({**kernels[1], "library": _twin(kernels[1]["library"])})
    calls = []
    for kernel in kernels:
        loaded = CRunner({**kernel, "flags": [f for k in kernels for f in k["flags"]]}, problem, dims)
        calls.append(_call(loaded, region, slots, dims))
    channel.send(progress={"detail": "warming up"})
    for attempt in range(request["attempts"]):
        channel.send(
            progress={"detail": "measuring" if attempt == 0 else f"noisy, measuring again ({attempt + 1})"}
        )
        if len(calls) == 1:
            times = timing.alone(calls[0], plan, clock)
            channel.send(result={"alone": times, "cost": cost, "layers": held, "timer": timer})
            return
        raw = timing.paired(calls[0], calls[1], calls[2], plan, clock)
        found = timing.estimate(raw["candidate_ms"], raw["baseline_ms"], (raw["aa_ms"][0], raw["aa_ms"][1]))
        if settled(found):
            break
    channel.send(result={**raw, "cost": cost, "layers": held, "timer": timer, "attempts": attempt + 1})


def _call(loaded: CRunner, region: Any, slots: tuple[buffers.Slot, ...], dims: dict[str, int]) -> timing.Call:
    arguments = loaded.function.arguments(region, slots, dims, loaded.scalars)
    pointer = loaded.function.pointer
    return lambda: pointer(*arguments)


def time_c(request: dict[str, Any], context: Context) -> Result:
    """Time a kernel, interleaved with a baseline when there is one."""
    answer = single(
        context, lambda c: _measure(request, c), request["limits"]["total_seconds"], "while it was timed"
    )
    return answer if "verdict" in answer else settle(answer)


def settled(found: timing.Estimate) -> bool:
    """Whether the rounds agree well enough for a number, or all of them are far from 1."""
    return found.spread <= NOISY_SPREAD or found.low > 1.5 or found.high < 1 / 1.5


def settle(raw: Result) -> Result:
    """Raw rounds to numbers and a verdict: pass with a ratio, or noisy without one."""
    extra = {"timer": raw["timer"], "cost": raw.get("cost"), "layers": raw.get("layers", {})}
    if "alone" in raw:
        return verdict(
            "pass", "ok", "", candidate_ms=float(np.median(raw["alone"])), rounds=len(raw["alone"]), **extra
        )
    found = timing.estimate(raw["candidate_ms"], raw["baseline_ms"], (raw["aa_ms"][0], raw["aa_ms"][1]))
    numbers = {
        "rounds": found.rounds,
        "spread": found.spread,
        "noise": found.noise,
        "attempts": raw.get("attempts", 1),
    }
    if not settled(found):
        return verdict("noisy", "noisy", "", **numbers, **extra)
    medians = {
        "candidate_ms": float(np.median(raw["candidate_ms"])),
        "baseline_ms": float(np.median(raw["baseline_ms"])),
    }
    ratio = {"ratio": found.ratio, "low": found.low, "high": found.high, "effect": found.effect}
    return verdict("pass", "ok", "", **medians, **ratio, **numbers, **extra)
