"""Jobs of CUDA kernels: compile for a platform, and time on a GPU."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from klineage.worker import buffers, cuda_build, cuda_plan, cuda_tools, limits, on_device
from klineage.worker.check import confinement, prepare_torch
from klineage.worker.cuda_runner import CudaRunner, packed
from klineage.worker.faults import KernelFault
from klineage.worker.jobs import Context, Result, single
from klineage.worker.process import Channel, Task
from klineage.worker.runners import problem_of, source_of


def compile_cuda(request: dict[str, Any], context: Context) -> Result:
    """Build for ``target`` and resolve the launches at ``dims``.

    The result has the cubin as it travels, its sha256, and ``kernels``: one record a launch, in order, with
    what the compiler says of its kernel, and grid, block, threads, programs, dynamic shared bytes.
    """
    kernel = request["kernel"]
    cuda_tools.compiler()  # in the server, so that it is looked for once
    cuda_tools.disassembler()

    def build(channel: Channel) -> None:
        problem, dims = problem_of(request), request["dims"]
        tensors = problem.tensors(dims)
        walls = confinement(request, "compiler")
        held = limits.apply(dataclasses.replace(walls, reads=(*walls.reads, *cuda_tools.folders())))
        done = cuda_build.build(
            source_of(kernel),
            kernel["filename"],
            tuple(kernel["flags"]),
            request["target"],
            Path(request["cache"]),
        )
        steps = cuda_plan.plan(kernel, tensors, dims, problem.scalars)
        if not steps:
            shown = ", ".join(f"{name}={value}" for name, value in dims.items())
            raise KernelFault("launch", f"no launch applies at {shown}: every when= is false")
        kernels = [_record(step, done["kernels"]) for step in steps]
        cubin = packed(Path(done["cubin"]).read_bytes())
        built = {**done, "cubin": cubin, "kernels": kernels, "layers": held}
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", **built})

    return single(context, build, request["limits"]["compile_seconds"], "to compile")


def _record(step: cuda_plan.Step, built: dict[str, Any]) -> dict[str, Any]:
    if step.kernel not in built:
        raise KernelFault("entry", f"the compiled file has no kernel {step.kernel}; is it inside #if?")
    return {
        "name": step.kernel,
        **built[step.kernel],
        "dynamic_bytes": step.shared,
        "grid": step.grid,
        "block": step.block,
        "threads": step.threads,
        "programs": step.programs,
    }


def time_cuda(request: dict[str, Any], context: Context) -> Result:
    """Time on the GPU, interleaved with a baseline when there is one."""
    from klineage.worker import effect
    from klineage.worker.native_jobs import settle

    answer = single(
        context, Task(_time, (request,)), request["limits"]["total_seconds"], "while it was timed"
    )
    return answer if "verdict" in answer else settle(answer, request.get("floor", effect.GPU_FLOOR))


def _time(request: dict[str, Any], channel: Channel) -> None:
    """Body of a child that times."""
    import torch

    from klineage.worker import gpu_timing, gpu_verify, launches, triton_gpu
    from klineage.worker.triton_errors import translated

    problem, dims = problem_of(request), request["dims"]
    prepare_torch("gpu")
    launches.open_profiler()  # a confined process may be refused it
    slots, memories, inputs = _buffers(request, problem)
    cost = problem.cost(dims)
    held = limits.apply(confinement(request, "gpu"))
    candidate = CudaRunner(request["kernel"], problem)
    baseline = CudaRunner(request["baseline"], problem) if request.get("baseline") else candidate
    calls = [(candidate.call(m, slots, dims), baseline.call(m, slots, dims)) for m in memories]
    paired = baseline is not candidate
    with translated(request["kernel"]["filename"], "crashed"):
        check = gpu_verify.TimedOutputs(problem, dims, inputs, memories, slots)
        raw = gpu_timing.measure_calls(calls, request["plan"]["rounds"], paired=paired, check=check)
        torch.cuda.synchronize()
    if not paired:
        raw["alone"] = raw["candidate_ms"]
    channel.send(result={**raw, "cost": cost, "device": triton_gpu.device(), "layers": held})


def _buffers(
    request: dict[str, Any], problem: Any
) -> tuple[tuple[buffers.Slot, ...], list[Any], dict[str, Any]]:
    """Several sets of buffers on the device, with the same values, and those."""
    import torch

    slots, total = problem.layout(request["dims"])
    first = torch.empty(total, dtype=torch.uint8, device="cuda")
    inputs = problem.inputs(request["seed"], request["dims"], "normal", "cuda")
    on_device.fill(first, slots, inputs)
    return slots, [first, *(first.clone() for _ in range(request["buffer_sets"] - 1))], inputs
