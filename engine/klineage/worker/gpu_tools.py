"""A GPU kernel once under NVIDIA's tools: compute-sanitizer for faults, ncu for counters.

Both follow a program of its own, which loads the kernel and runs it once. Every buffer is an allocation of its own there,
made without torch's cache, so that memcheck sees where it ends.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from klineage.worker import buffers, limits
from klineage.worker.check import confinement
from klineage.worker.faults import KernelFault, Unsupported
from klineage.worker.jobs import Context, Result, single
from klineage.worker.problem import Problem
from klineage.worker.process import Channel
from klineage.worker.runners import load_entry, problem_of

TOOLS = ("memcheck", "racecheck")
METRICS = {
    "gpu__time_duration.sum": "ncu_ns",
    "dram__bytes_read.sum": "dram_bytes_read",
    "dram__bytes_write.sum": "dram_bytes_written",
    "smsp__inst_executed.sum": "warp_instructions",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_percent",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_percent",
}
_FOUND = 86
_KEPT = 16000
_PROGRAM = "from klineage.worker.gpu_tools import inner; inner({path!r})"


def inner(path: str) -> None:
    """The program under the tool: run the request's kernel once, on the GPU."""
    import torch

    request = json.loads(Path(path).read_text(encoding="utf-8"))
    problem, dims, kernel = problem_of(request), request["dims"], request["kernel"]
    tensors = _tensors(problem, dims, problem.inputs(request["seed"], dims))
    if kernel["surface"] == "triton":
        load_entry(kernel, "gpu")({**dims, **problem.scalars, **tensors})
    else:
        _launch(kernel, problem, dims, tensors)
    torch.cuda.synchronize()


def _tensors(problem: Problem, dims: dict[str, int], inputs: dict[str, Any]) -> dict[str, Any]:
    """One allocation a buffer; outputs hold poison."""
    import torch

    made = {}
    for name, (type_, shape) in problem.tensors(dims).items():
        if name in inputs:
            array = np.ascontiguousarray(inputs[name])
        else:
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(buffers.poison(type_) * count, buffers.STORAGE[type_]).reshape(shape)
        flat = torch.from_numpy(array.reshape(-1).view(np.uint8).copy()).cuda()
        made[name] = flat.view(_dtype(type_)).view(shape)
    return made


def _dtype(type_: str) -> Any:
    from klineage.worker import on_device

    return on_device.dtype(type_)


def _launch(kernel: dict[str, Any], problem: Problem, dims: dict[str, int], tensors: dict[str, Any]) -> None:
    import torch

    from klineage.worker import cuda_plan
    from klineage.worker.cuda_runner import CudaRunner

    runner = CudaRunner(kernel, problem)
    held = dict(tensors)
    for name, (type_, shape) in cuda_plan.scratch(kernel, dims).items():
        held[name] = torch.empty(shape, dtype=_dtype(type_), device="cuda")
    addresses = {name: tensor.data_ptr() for name, tensor in held.items()}
    for step in cuda_plan.plan(kernel, problem.tensors(dims), dims, problem.scalars):
        runner.module.launcher(step, addresses)()


def _under(
    request: dict[str, Any], channel: Channel, commands: list[tuple[str, list[str]]]
) -> list[tuple[str, Any]]:
    """Run the program under each command, confined but for sockets, which the tools speak through."""
    if not Path(__file__ or "").exists():
        raise Unsupported("no_tools", "the worker is one file here, which these tools cannot run again")
    held = limits.apply(replace(confinement(request, "gpu"), sockets=True), "tools")
    channel.send(progress={"detail": "under NVIDIA's tools"})
    Path("request.json").write_text(json.dumps(request), encoding="utf-8")
    package = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": package, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "LC_ALL": "C"}
    program = [sys.executable, "-c", _PROGRAM.format(path=str(Path.cwd() / "request.json"))]
    done: list[tuple[str, Any]] = [("layers", held)]
    for name, command in commands:
        try:
            found = subprocess.run(
                [*command, *program], env=environment, capture_output=True, text=True, errors="replace",
                timeout=request["limits"]["run_seconds"], check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Unsupported("slow", f"it takes too long under {name}") from None
        done.append((name, found))
    return done


def sanitize_gpu(request: dict[str, Any], context: Context) -> Result:
    """Run the kernel once under compute-sanitizer's memcheck and racecheck. Fails with "sanitizer"."""

    def body(channel: Channel) -> None:
        tool = _found("compute-sanitizer")
        start = [tool, "--error-exitcode", str(_FOUND), "--target-processes", "all", "--print-limit", "10"]
        held, *done = _under(request, channel, [(name, [*start, "--tool", name]) for name in TOOLS])
        for name, found in done:
            report = found.stdout + found.stderr
            if found.returncode == _FOUND or _ERROR.search(report):
                raise finding(name, report, request["size"])
            if found.returncode or "SUMMARY: 0 " not in report:
                raise Unsupported("no_sanitizer", f"{name} does not run here", log=report[-_KEPT:])
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "layers": held[1]})

    return single(context, body, request["limits"]["total_seconds"], "under compute-sanitizer")


_ERROR = re.compile(
    r"^=+ (Invalid __\w+__ \w+ of size \d+ bytes|Error: Race reported.*|Misaligned .*)$", re.M
)


def finding(tool: str, report: str, size: str) -> KernelFault:
    """What compute-sanitizer reports first, with the place in the source where it is known."""
    first = _ERROR.search(report)
    what = first[1].strip() if first else "an error"
    place = re.search(r"^=+ +at .*? in (\S+?):(\d+)", report, re.M) or re.search(
        r"(\S+\.(?:cu|py)):(\d+)", report
    )
    where = f"{Path(place[1]).name}:{place[2]}: " if place else ""
    kernel = re.search(r"^=+ +at (?:0x\w+ in )?([\w:]+)", report, re.M)
    inside = f" in {kernel[1]}" if kernel else ""
    return KernelFault("sanitizer", f"{where}{what}{inside} ({tool}, size {size})", log=report[:_KEPT])


def _found(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if path is None:
        raise Unsupported("no_tools", f"{name} is not installed; it comes with the CUDA toolkit")
    return path


def count_gpu(request: dict[str, Any], context: Context) -> Result:
    """Counters of ncu for the kernels of one run. Unsupported where the driver does not let it read them."""

    def body(channel: Channel) -> None:
        command = [_found("ncu"), "--csv", "--clock-control", "none", "--metrics", ",".join(METRICS)]
        if request["kernel"].get("names"):
            command += ["--kernel-name", "regex:^(" + "|".join(request["kernel"]["names"]) + ")$"]
        held, (_, found) = _under(request, channel, [("ncu", command)])
        if "ERR_NVGPUCTRPERM" in found.stdout + found.stderr:
            raise Unsupported("no_counters", "the driver lets only an administrator read the GPU's counters")
        counts = counters(found.stdout)
        if not counts:
            raise Unsupported(
                "no_counters", "ncu counted nothing", log=(found.stdout + found.stderr)[-_KEPT:]
            )
        channel.send(
            result={"verdict": "pass", "reason": "ok", "summary": "", "counts": counts, "layers": held[1]}
        )

    return single(context, body, request["limits"]["total_seconds"], "under ncu")


def counters(text: str) -> dict[str, float]:
    """ncu's CSV to sums over the launches, or for percentages to the largest, by our names."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return {}
    told: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[first:]))):
        name = METRICS.get(row.get("Metric Name") or "")
        try:
            value = float((row.get("Metric Value") or "").replace(",", ""))
        except ValueError:
            continue
        if name and "percent" in name:
            told[name] = max(told.get(name, 0.0), value)
        elif name:
            told[name] = told.get(name, 0.0) + value * _SCALES.get(row.get("Metric Unit") or "", 1.0)
    return told


_SCALES = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6,
}  # fmt: skip
