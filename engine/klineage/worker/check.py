"""Correctness: one child runs the kernel, another judges what it wrote. They share bytes, nothing else.

The candidate child regenerates the inputs from the seed, lays them out beside poisoned outputs in a
shared region, and runs the kernel on it. The judge regenerates the same inputs, computes the
reference, and reads the region: guards, inputs, outputs. The candidate never sees a reference, and
nothing that it says counts but the bytes. Regions alternate, so that both work at the same time.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from typing import Any

import numpy as np

from klineage.worker import buffers, limits
from klineage.worker.compare import compare
from klineage.worker.faults import WorkerError
from klineage.worker.problem import Problem
from klineage.worker.process import Channel
from klineage.worker.runners import problem_of, runner

REGIONS = 2


def open_arena() -> int:
    """A file without a name, to be mapped by both children."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("klineage-arena")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _span(problem: Problem, cases: list[dict[str, Any]]) -> int:
    return max(buffers.layout(problem.tensors(case["dims"]))[1] for case in cases)


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
    channel.send(phase="workload")
    problem, cases = problem_of(request), request["cases"]
    _check_dims(problem, cases)
    span = _span(problem, cases)
    os.ftruncate(arena, span * REGIONS)
    regions = _regions(arena, span)
    held = limits.apply(confinement(request, kind))
    channel.send(layers=held, phase="load")
    loaded = runner(kind, request["kernel"], problem, cases[0]["dims"])
    for number, case in enumerate(cases):
        channel.receive()
        channel.send(phase="inputs", case=number)
        inputs = problem.inputs(case["seed"], case["dims"])
        slots, total = buffers.layout(problem.tensors(case["dims"]))
        region = regions[number % REGIONS][:total]
        buffers.fill(region, slots, inputs)
        channel.send(phase="kernel", case=number)
        counts = loaded.run(region, slots, case["dims"])
        channel.send(ready=number, counts=counts)


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
    channel.send(phase="reference")
    problem, cases = problem_of(request), request["cases"]
    _check_dims(problem, cases)
    span = _span(problem, cases)
    limits.apply(confinement(request, kind))
    regions: list[np.ndarray[Any, Any]] = []
    for number, case in enumerate(cases):
        channel.send(phase="reference", case=number)
        inputs = problem.inputs(case["seed"], case["dims"])
        expected = problem.reference(inputs, case["dims"], "cuda" if kind == "gpu" else None)
        slots, total = buffers.layout(problem.tensors(case["dims"]))
        channel.send(phase="waiting", case=number)
        if channel.receive()["ready"] != number:
            raise WorkerError("protocol", "the cases came out of order")
        regions = regions or _regions(arena, span)  # the candidate has sized the arena by now
        region = regions[number % REGIONS][:total]
        channel.send(judged=number, **examine(problem, case, region, slots, inputs, expected))


def examine(
    problem: Problem,
    case: dict[str, Any],
    region: np.ndarray[Any, Any],
    slots: tuple[buffers.Slot, ...],
    inputs: dict[str, Any],
    expected: dict[str, Any],
) -> dict[str, Any]:
    """What is in the region after the kernel: ``{"worst", "rtol"}``, plus a failure if there is one."""
    broken = buffers.broken_guard(region, slots)
    if broken:
        name, side, distance = broken
        return _failure(
            case,
            "out_of_bounds",
            f"wrote {distance} bytes {side} the end of {name}"
            if side == "after"
            else f"wrote {distance} bytes before the start of {name}",
            output=name,
        )
    by_name = {slot.name: slot for slot in slots}
    for name, original in inputs.items():
        if name in problem.mutates or name in problem.outputs:
            continue
        slot = by_name[name]
        bits = np.dtype(f"<u{buffers.ITEMSIZE[slot.type]}")  # as bits: a NaN equals itself
        changed = buffers.stored(region, slot).reshape(-1).view(bits) != original.reshape(-1).view(bits)
        if changed.any():
            element = int(np.argmax(changed))
            index = [int(i) for i in np.unravel_index(element, slot.shape)] if slot.shape else []
            return _failure(
                case,
                "input_changed",
                f"changed its input {name}, which it may only read",
                output=name,
                index=index,
            )
    worst, tolerance = 0.0, 0.0
    for name in problem.outputs:
        slot = by_name[name]
        rtol = problem.rtol(slot.type, case["dims"])
        found = compare(buffers.stored(region, slot), expected[name], slot.type, rtol)
        if not found.ok:
            return _mismatch(case, name, found)
        if rtol and (tolerance == 0 or found.worst / rtol > worst / tolerance):
            worst, tolerance = found.worst, rtol
    return {"worst": worst, "rtol": tolerance}


def _mismatch(case: dict[str, Any], name: str, found: Any) -> dict[str, Any]:
    numbers = {
        "wrong": found.wrong,
        "unwritten": found.unwritten,
        "total": found.total,
        "worst": found.worst,
        "rtol": found.rtol,
    }
    where = {"output": name, "index": list(found.index or ()), "got": found.got, "expected": found.expected}
    if found.unwritten and found.unwritten == found.wrong:
        text = f"never wrote {found.unwritten:,} of {found.total:,} elements of {name}"
        return _failure(case, "unwritten", text, numbers=numbers, **where)
    place = ", ".join(str(i) for i in where["index"])
    values = f"{name}[{place}] is {_short(found.got)}, not {_short(found.expected)}"
    text = f"{values}; {found.wrong:,} of {found.total:,} elements are wrong"
    return _failure(case, "mismatch", text, numbers=numbers, **where)


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _failure(case: dict[str, Any], reason: str, text: str, **details: Any) -> dict[str, Any]:
    place = {"index": [], "output": "", "got": "", "expected": "", **details}
    return {"failure": {"reason": reason, "summary": f"{text} (size {case['size']})", "case": case, **place}}
