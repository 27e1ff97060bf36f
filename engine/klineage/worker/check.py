"""Correctness: one child runs the kernel, another judges what it wrote. They share bytes, nothing else.

The candidate child regenerates the inputs from the seed, lays them out beside poisoned outputs in a
shared region, and runs the kernel on it. The judge regenerates the same inputs, computes the
reference, and reads the region: guards, inputs, outputs. The candidate never sees a reference, and
nothing that it says counts but the bytes. Regions alternate, so that both work at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from klineage.worker import buffers, gpu_errors, launches, limits, on_device
from klineage.worker.examine import Case, examine
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.problem import Problem
from klineage.worker.process import Channel
from klineage.worker.runners import problem_of, runner, source_of

REGIONS = 2


def open_arena() -> int:
    """A file without a name, to be mapped by both children."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("klineage-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _layout(problem: Problem, case: dict[str, Any]) -> tuple[tuple[buffers.Slot, ...], int]:
    return problem.layout(case["dims"], case["variant"] == "again")


def _span(problem: Problem, cases: list[dict[str, Any]]) -> int:
    return max(_layout(problem, case)[1] for case in cases)


def _give_up(arena: int) -> None:
    """The candidate keeps the mapping alone: it can no longer shrink what the judge reads, nor map it elsewhere."""
    seals = [getattr(fcntl, f"F_SEAL_{name}", 0) for name in ("SHRINK", "GROW", "SEAL")]
    if all(seals) and hasattr(os, "memfd_create"):
        fcntl.fcntl(arena, fcntl.F_ADD_SEALS, sum(seals))
    os.close(arena)


def _regions(arena: int, span: int) -> list[np.ndarray[Any, Any]]:
    """The regions that cases take turns in, mapped once: fresh pages cost more than what is done with them."""
    return [np.frombuffer(mmap.mmap(arena, span, offset=span * i), np.uint8) for i in range(REGIONS)]


def _check_dims(problem: Problem, cases: list[dict[str, Any]]) -> None:
    for case in cases:
        complaint = problem.unsupported(case["dims"])
        if complaint:
            raise WorkerError(
                "workload",
                f"{problem.path}: size {case['size']} is one that it calls unsupported: {complaint}",
            )


def prepare_torch(kind: str) -> None:
    """What a fresh child does before it is confined: one thread, and the GPU's driver, which needs sockets."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
        if kind == "gpu":
            torch.zeros(1, device="cuda")


def candidate(request: dict[str, Any], kind: str, arena: int, channel: Channel) -> None:
    """Body of the child that runs the kernel, case by case, as far as the server lets it run ahead."""
    prepare_torch(kind)
    if kind == "gpu" and any(case.get("watched") for case in request["cases"]):
        launches.open_profiler()
    channel.send(phase="workload")
    problem, cases = problem_of(request), request["cases"]
    _check_dims(problem, cases)
    span = _span(problem, cases)
    os.ftruncate(arena, span * REGIONS)
    regions = _regions(arena, span)
    _give_up(arena)
    held = limits.apply(confinement(request, kind))
    channel.send(layers=held, phase="load")
    with gpu_errors.blamed(request["kernel"]["entry"]):
        _run_cases(request, kind, problem, regions, channel)


def _run_cases(
    request: dict[str, Any],
    kind: str,
    problem: Problem,
    regions: list[np.ndarray[Any, Any]],
    channel: Channel,
) -> None:
    cases = request["cases"]
    loaded = runner(kind, request["kernel"], problem, cases[0]["dims"])
    unordered = _unordered(request, problem)
    channel.send(artifact=getattr(loaded, "artifact", ""), unordered=unordered)
    place = _place(kind, loaded, problem, _span(problem, cases))
    for number, case in enumerate(cases):
        channel.receive()
        channel.send(phase="inputs", case=number)
        slots, total = _layout(problem, case)
        region = regions[number % REGIONS][:total]
        run = place.prepare(case, region, slots)
        channel.send(phase="kernel", case=number)
        with launches.surroundings(kind, loaded, case, not unordered) as seen:
            counts = _ghost(run) if case["variant"] == "ghost" else run()
        place.finish(region, slots)
        channel.send(ready=number, counts=counts, kernels=seen.kernels)


def _unordered(request: dict[str, Any], problem: Problem) -> bool:
    """Whether two runs may differ by rounding."""
    return problem.atomics or launches.unordered(source_of(request["kernel"]))


def _ghost(run: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Run with empty kernels. Host code may stumble over that; only what it leaves in the outputs counts."""
    with contextlib.suppress(KernelFault):
        run()
    return {}


class _Here:
    """Cases whose kernel works on the region itself."""

    def __init__(self, loaded: Any, problem: Problem) -> None:
        self.loaded, self.problem = loaded, problem
        self.kept: dict[str, Any] = {}

    def prepare(self, case: dict[str, Any], region: Any, slots: Any) -> Callable[[], dict[str, int]]:
        inputs = self.kept
        if case["variant"] not in ("again", "ghost") or not inputs:
            inputs = self.problem.inputs(case["seed"], case["dims"], case["recipe"])
        if case.get("keep"):
            self.kept = inputs
        buffers.fill(region, slots, inputs, case["variant"] == "again")
        return lambda: dict(self.loaded.run(region, slots, case["dims"]))

    def finish(self, region: Any, slots: Any) -> None:
        """The region is as the kernel left it."""


class _OnDevice:
    """Cases that live on the GPU; what the judge needs of them comes back to the region."""

    def __init__(self, loaded: Any, problem: Problem, span: int) -> None:
        import torch

        self.loaded, self.problem = loaded, problem
        self.memory = torch.empty(span, dtype=torch.uint8, device="cuda")
        self.written = (*problem.outputs, *problem.mutates)

    def prepare(self, case: dict[str, Any], region: Any, slots: Any) -> Callable[[], dict[str, int]]:
        inputs = self.problem.inputs(case["seed"], case["dims"], case["recipe"], "cuda")
        self.used = self.memory[: region.size]
        on_device.fill(self.used, slots, inputs, case["variant"] == "again")
        return lambda: dict(self.loaded.run_on(self.used, slots, case["dims"]))

    def finish(self, region: Any, slots: Any) -> None:
        self.loaded.finish()
        on_device.download(self.used, region, slots, self.written)


def _place(kind: str, loaded: Any, problem: Problem, span: int) -> _Here | _OnDevice:
    return _OnDevice(loaded, problem, span) if kind == "gpu" else _Here(loaded, problem)


def confinement(request: dict[str, Any], kind: str) -> limits.Limits:
    """The limits of a child that runs kernel code. A GPU maps far more than it uses, and compiles."""
    wanted = request["limits"]
    kernels = (request.get("kernel"), request.get("baseline"))
    return limits.Limits(
        cpu_seconds=int(wanted["total_seconds"] * 4) + 5,
        memory=None if kind == "gpu" else int(wanted["memory_bytes"]),
        processes=kind in ("gpu", "compiler"),
        devices=kind == "gpu",
        open_files=4096 if kind == "gpu" else 256,
        reads=tuple(str(k["library"]) for k in kernels if k and "library" in k),
        writes=(str(request["cache"]),) if "cache" in request else (),
    )


def judge(request: dict[str, Any], kind: str, arena: int, channel: Channel) -> None:
    """Body of the child that knows the answers. Sends one ``judged`` message a case."""
    prepare_torch(kind)
    if kind == "gpu":
        on_device.rehearse("cuda")  # it waits for the candidate anyway
    channel.send(phase="reference")
    problem, cases = problem_of(request), request["cases"]
    _check_dims(problem, cases)
    span = _span(problem, cases)
    limits.apply(confinement(request, kind))
    regions: list[np.ndarray[Any, Any]] = []
    base: Case | None = None
    atomics, device = _unordered(request, problem), "cuda" if kind == "gpu" else None
    for number, told in enumerate(cases):
        channel.send(phase="reference", case=number)
        case = _known(problem, told, base, device, atomics)
        channel.send(phase="waiting", case=number)
        if channel.receive()["ready"] != number:
            raise WorkerError("protocol", "the cases came out of order")
        regions = regions or _regions(arena, span)  # the candidate has sized the arena by now
        region = regions[number % REGIONS][: _layout(problem, told)[1]]
        channel.send(judged=number, **examine(case, region, base))
        if told.get("keep"):
            base = case


def _known(
    problem: Problem, told: dict[str, Any], base: Case | None, device: str | None, atomics: bool
) -> Case:
    """The case with its answers. A second run on the same inputs has the answers of the first."""
    if told["variant"] in ("again", "ghost") and base is not None:
        inputs, expected = base.inputs, base.expected
    else:
        inputs = problem.inputs(told["seed"], told["dims"], told["recipe"], device)
        expected = problem.reference(inputs, told["dims"], device)
    return Case(problem, told, inputs, expected, _layout(problem, told)[0], device, atomics)
