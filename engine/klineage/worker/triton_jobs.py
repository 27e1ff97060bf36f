"""Jobs of Triton kernels: compile for a platform, count in the interpreter, time on a GPU."""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from typing import Any

import numpy as np

from klineage.worker import buffers, effect, gpu_errors, launches, limits, on_device
from klineage.worker.check import confinement, prepare_torch
from klineage.worker.faults import WorkerError
from klineage.worker.jobs import Context, Result, single
from klineage.worker.native_jobs import settle
from klineage.worker.problem import Problem
from klineage.worker.process import Channel, Task
from klineage.worker.runners import load_entry, problem_of, runner, view


def compile_triton(request: dict[str, Any], context: Context) -> Result:
    """Compile at the given dimensions for ``target``; the result lists one record a launched kernel.

    ``also``: further dimensions, compiled beside it for Triton's cache only, where a GPU will want them.
    """
    body = functools.partial(_compile, request, request["dims"], True)
    # What goes wrong beside it goes wrong again where it matters, and is told there.
    beside = tuple(functools.partial(_compile, request, dims, False) for dims in request.get("also", ()))
    return single(context, body, request["limits"]["compile_seconds"], "to compile", beside)


def _compile(request: dict[str, Any], dims: dict[str, int], told: bool, channel: Channel) -> None:
    """Body of a child that compiles at ``dims``. ``told``: it also says what came of it."""
    import torch

    from klineage.worker import triton_compile

    prepare_torch("compiler")
    problem = problem_of(request)
    placed, _ = problem.layout(dims)
    held = limits.apply(confinement(request, "compiler"))
    entry = load_entry(request["kernel"], "compiler")
    # Memory is reserved, never touched: host code may look at shapes and addresses only.
    slots = [replace(slot, offset=slot.offset % buffers.PAGE) for slot in placed]
    empty = {slot.name: view(torch.empty(slot.end, dtype=torch.uint8), slot) for slot in slots}
    values = {**dims, **problem.scalars, **empty}
    if not told:
        triton_compile.compiled(entry, values, request["target"])
        return
    kernels = triton_compile.compile_entry(entry, values, request["target"])
    channel.send(
        result={"verdict": "pass", "reason": "ok", "summary": "", "kernels": kernels, "layers": held}
    )


def _region(
    problem: Problem, request: dict[str, Any], dims: dict[str, int]
) -> tuple[Any, tuple[buffers.Slot, ...]]:
    slots, total = problem.layout(dims)
    region = np.empty(total, np.uint8)
    buffers.fill(region, slots, problem.inputs(request["seed"], dims))
    return region, slots


def count(request: dict[str, Any], context: Context) -> Result:
    """Run once in the interpreter and return the exact counts."""

    def body(channel: Channel) -> None:
        prepare_torch(context.kind)
        problem, dims = problem_of(request), request["dims"]
        region, slots = _region(problem, request, dims)
        limits.apply(confinement(request, context.kind))
        counts = runner(context.kind, request["kernel"], problem, dims).run(region, slots, dims)
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "counts": counts})

    return single(context, body, request["limits"]["run_seconds"], "while its work was counted")


def time_triton(request: dict[str, Any], context: Context) -> Result:
    """Time on the GPU, interleaved with a baseline when there is one."""
    answer = single(
        context, Task(_time, (request,)), request["limits"]["total_seconds"], "while it was timed"
    )
    return answer if "verdict" in answer else settle(answer, request.get("floor", effect.GPU_FLOOR))


def _time(request: dict[str, Any], channel: Channel) -> None:
    """Body of a child that times."""
    import torch

    from klineage.worker import gpu_verify, triton_gpu

    problem, dims = problem_of(request), request["dims"]
    prepare_torch("gpu")
    launches.open_profiler()  # a confined process may be refused it
    slots, total = problem.layout(dims)
    cost = problem.cost(dims)
    first = torch.empty(total, dtype=torch.uint8, device="cuda")
    inputs = problem.inputs(request["seed"], dims, "normal", "cuda")
    on_device.fill(first, slots, inputs)
    sets, memories = [], [first, *(first.clone() for _ in range(request["buffer_sets"] - 1))]
    for copy in memories:
        sets.append({**dims, **problem.scalars, **{slot.name: view(copy, slot) for slot in slots}})
    held = limits.apply(confinement(request, "gpu"))
    with gpu_errors.blamed(request["kernel"]["entry"]):
        entry = load_entry(request["kernel"], "gpu")
        baseline = load_entry(request["baseline"], "gpu") if request.get("baseline") else None
        check = gpu_verify.TimedOutputs(problem, dims, inputs, memories, slots)
        raw = triton_gpu.measure(entry, baseline, sets, request["plan"]["rounds"], check)
        if baseline is None:
            raw["alone"] = raw["candidate_ms"]
        seen = launches.Seen()  # after all that was timed: what rested or changed by then shows
        with launches.recorded(seen), launches.named(seen):
            entry.function(**entry.bind(sets[0]))
    raw["launched"] = seen.launched
    channel.send(result={**raw, "cost": cost, "device": triton_gpu.device(), "layers": held})


def device(request: dict[str, Any], context: Context) -> Result:
    """Facts of the GPU, asked for in a child: the parent must never touch the driver."""

    def body(channel: Channel) -> None:
        from klineage.worker import triton_gpu

        found = triton_gpu.device()
        if found is None:
            raise WorkerError(
                "no_gpu",
                f"no usable GPU (CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')})",
            )
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "device": found})

    return single(context, body, 60, "to ask the GPU driver")
