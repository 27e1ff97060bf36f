"""Jobs of C kernels: compile, and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from klineage.worker import c_build, c_native, c_timing, effect, limits
from klineage.worker.check import confinement
from klineage.worker.jobs import Context, Result, single, verdict
from klineage.worker.process import Channel
from klineage.worker.runners import problem_of, source_of

CONTRADICTION = 1.5  # two ways of measuring one ratio that differ by more say that neither is to be believed
SHORT_MS, CRASS = 0.02, 4.0  # single calls shorter than this scatter, so there it takes a factor of four
_CARRIED = ("cold_ms", "cold_bytes", "verified", "timer_note", "clocks", "device", "launched")


def compile_c(request: dict[str, Any], context: Context) -> Result:
    """Build the kernel, then bind its parameters. The result names the library."""
    kernel = request["kernel"]
    c_build.compiler()  # in the server, so that its version is asked for once

    def build(channel: Channel) -> None:
        held = limits.apply(confinement(request, "compiler"))  # a source can make a compiler eat the machine
        flags = tuple(kernel["flags"])
        done = c_build.build(source_of(kernel), kernel["filename"], flags, Path(request["cache"]))
        problem = problem_of(request)
        c_native.bind([tuple(p) for p in kernel["parameters"]], problem, request["dims"])
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "layers": held, **done})

    return single(context, build, request["limits"]["compile_seconds"], "to compile")


def time_c(request: dict[str, Any], context: Context) -> Result:
    """Time a kernel, interleaved with a baseline when there is one."""
    answer = single(
        context,
        lambda c: c_timing.measure(request, c),
        request["limits"]["total_seconds"],
        "while it was timed",
    )
    return answer if "verdict" in answer else settle(answer, request.get("floor", effect.FLOOR))


def settle(raw: Result, floor: float = effect.FLOOR) -> Result:
    """Raw rounds to numbers and a verdict: pass with a ratio, or noisy without one.

    ``raw`` holds "processes" (C), or the rounds of one process: "candidate_ms", "baseline_ms" and "aa_ms",
    or "alone" for a kernel without a baseline.
    """
    extra = {"timer": raw["timer"], "cost": raw.get("cost"), "layers": raw.get("layers", {})}
    extra |= {name: raw[name] for name in _CARRIED if name in raw}
    processes = raw.get("processes", [raw])
    if "alone" in processes[0]:
        times = [float(np.median(process["alone"])) for process in processes]
        rounds = sum(len(process["alone"]) for process in processes)
        return verdict("pass", "ok", "", candidate_ms=float(np.median(times)), rounds=rounds, **extra)
    groups = [effect.group_of(one) for one in processes] if "processes" in raw else effect.blocks(raw)
    found = effect.estimate(groups, floor)
    numbers: dict[str, Any] = {
        "rounds": found.rounds,
        "spread": found.spread,
        "noise": found.noise,
        "groups": found.groups,
        "drift": _drift(groups),
    }
    if found.effect == "noisy":
        return verdict("noisy", "noisy", "", half=found.high / found.ratio - 1, **numbers, **extra)
    ratio: dict[str, Any] = {
        "ratio": found.ratio, "low": found.low, "high": found.high, "effect": found.effect
    }  # fmt: skip
    medians: dict[str, Any] = {
        "candidate_ms": float(np.median([np.median(group.candidate) for group in groups])),
        "baseline_ms": float(np.median([np.median(group.baseline) for group in groups])),
    }
    # Threads of OpenMP wait for one another, and longer on a busy machine: there two ways may well differ.
    doubt = _doubt(processes, found.ratio) if raw["timer"] == "thread_cpu_time" else None
    if doubt:
        word, reason, summary = doubt
        return verdict(word, reason, summary, **medians, **numbers, **extra)
    return verdict("pass", "ok", "", **medians, **ratio, **numbers, **extra)


def _drift(groups: list[effect.Group]) -> float:
    """How much the machine's speed changed while it was measured: slowest over fastest median of the baseline."""
    medians = [float(np.median(group.baseline)) for group in groups]
    return max(medians) / min(medians)


def _doubt(processes: list[dict[str, Any]], ratio: float) -> tuple[str, str, str] | None:
    """Why a clear ratio is not believed: the wall clock, or calls that find no earlier output, say otherwise."""
    fresh_too = [process for process in processes if "fresh_ms" in process]
    if fresh_too:
        singles = [process["fresh_ms"] for process in fresh_too]
        once, before = (min(times) for times in zip(*singles))  # noqa: B905 - strict= is of Python 3.10
        fresh = once / before
        # Writing to the outputs costs the caches something. What is written may be what was there: then a kernel
        # that rests still rests, and one that works takes as long as on emptied outputs.
        again = min(process["kept_ms"] for process in fresh_too)
        factor = CONTRADICTION if once > SHORT_MS else CRASS
        if once > factor * again and fresh > factor * ratio:
            return (
                "fail",
                "stale",
                f"{ratio:.3g}x over calls that find their output already there, but {fresh:.3g}x on empty outputs",
            )
    if "wall_ms" in processes[0]:
        # The shortest of all: a thread that had to wait for the processor every time is a thread that waits.
        wall = min(p["wall_ms"][0] for p in processes) / min(p["wall_ms"][1] for p in processes)
        used = min(min(p["candidate_ms"]) for p in processes) / min(min(p["baseline_ms"]) for p in processes)
        if wall > CONTRADICTION * used:
            return (
                "noisy",
                "clocks_disagree",
                f"the thread's time says {used:.3g}x and the wall clock {wall:.3g}x at best",
            )
    return None
