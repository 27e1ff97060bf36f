"""Contenders for one workload on a GPU: made on the same inputs, checked once, and timed call beside call.

Needs the standard library, numpy, torch and triton, as they are beside a GPU; nothing here is imported by klineage.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.resources import shipped
from klineage.worker import on_device
from klineage.worker.problem import Problem, load

from benchmarks import references

Call = Callable[[], Any]
Tensors = dict[str, Any]
ROUNDS = 30
_BATCH = 5  # rounds under one profiler, which takes a while to start
_OPTIONS = ("num_warps", "num_stages", "maxnreg")  # of every launch, whether an autotuner names them or not


@dataclass(frozen=True)
class Arena:
    """One size of a workload on the device: its inputs, and its right answer in 64 bits."""

    problem: Problem
    dims: dict[str, int]
    inputs: Tensors
    expected: Tensors
    device: str = "cuda"

    def outputs(self) -> Tensors:
        """Buffers for one contender's outputs, all ones in their bits."""
        import torch

        tensors = self.problem.tensors(self.dims)
        made = {}
        for name in self.problem.outputs:
            type_, shape = tensors[name]
            made[name] = torch.empty(shape, dtype=on_device.dtype(type_), device=self.device)
            made[name].view(torch.uint8).fill_(255)
        return made

    def complaint(self, outputs: Tensors) -> str:
        """What is wrong with the outputs, by the workload's tolerance; empty when nothing is."""
        if self.problem.compares:
            said = self.problem.complaint(outputs, self.expected, self.inputs, self.dims, self.device)
            return said or ""
        tensors = self.problem.tensors(self.dims)
        for name, got in outputs.items():
            type_ = tensors[name][0]
            same = got.to(on_device.dtype(type_)).contiguous()
            rtol = self.problem.rtol(type_, self.dims)
            right, _, _ = on_device.errors(same, self.expected[name], type_, rtol, False)
            if not right:
                return f"{name} is off by {_worst(same, self.expected[name]):.2g} (tolerance {rtol:.2g})"
        return ""


@dataclass
class Contender:
    """``call`` runs it once. ``problem`` says why it cannot be timed, ``note`` what else is to be known."""

    name: str
    call: Call | None = None
    problem: str = ""
    note: str = ""
    checked: bool = False
    settings: dict[str, int] = field(default_factory=dict)


def arena(folder: Path, surface: str, size: str = "paper", device: str = "cuda") -> Arena:
    """The workload of a folder, with inputs drawn on the device."""
    path = folder / "workload.py"
    namespace: dict[str, Any] = {}
    exec(compile(path.read_bytes(), str(path), "exec"), namespace)
    problem = load(path.read_bytes(), str(path), namespace["ELEMENT"][surface])
    dims = namespace["SIZES"][size]
    inputs = problem.inputs(1, dims, "normal", device)
    return Arena(problem, dims, inputs, problem.reference(inputs, dims, device), device)


def vendors(workload: str, where: Arena, slow: bool = False) -> list[Contender]:
    """The references that run here, and the others with the reason."""
    found = []
    given = references.Problem(where.inputs, where.dims, where.problem.scalars)
    for reference in references.REFERENCES.get(workload, ()):
        if reference.slow and not slow:
            found.append(Contender(reference.name, problem="slow to build; --slow includes it"))
            continue
        contender = Contender(reference.name, note=reference.note)
        try:
            call, read = reference.make(given)
            raw = call()
            if read is not None:
                contender.checked, wrong = True, where.complaint(read(raw))
                contender.note = "; ".join(filter(None, [contender.note, wrong]))
            contender.call = call
        except Exception as error:
            contender.problem = _first_line(error)
        found.append(contender)
    return found


def triton_expert(
    path: Path, workload: str, where: Arena, settings: dict[str, int] | None = None
) -> Contender:
    """A Triton kernel with some settings of its launch; a wrong answer is a problem, it is not timed."""
    from klineage.worker import triton_load

    settings = settings or {}
    contender = Contender(label(path, settings), settings=settings)
    try:
        source = configured(path.read_text(encoding="utf-8"), settings)
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False, encoding="utf-8") as file:
            file.write(source)
        entry = triton_load.load(file.name, workload, settings, mode="gpu")
        outputs = where.outputs()
        arguments = entry.bind({**where.dims, **where.problem.scalars, **where.inputs, **outputs})
        returned = entry.function(**arguments)
        if returned is not None:
            values = returned if isinstance(returned, (tuple, list)) else (returned,)
            outputs = dict(zip(where.problem.outputs, values, strict=True))
        contender.checked, contender.problem = True, where.complaint(outputs)
        contender.call = None if contender.problem else lambda: entry.function(**arguments)
    except Exception as error:
        contender.problem = _first_line(error)
    return contender


def cuda_expert(path: Path, workload: str, where: Arena, settings: dict[str, int] | None = None) -> Contender:
    """A CUDA kernel with other values of some constants, built for this GPU, with its declared launches."""
    from klineage.worker import triton_gpu

    settings = settings or {}
    contender = Contender(
        "expert in CUDA" if path.name == "kernel.cu" else label(path, settings), settings=settings
    )
    try:
        source = with_constants(path.read_text(encoding="utf-8"), settings).encode()
        platform = str((triton_gpu.device() or {})["platform"])
        call, outputs = _cuda_call(source, path.name, workload, where, platform)
        call()
        contender.checked, contender.problem = True, where.complaint(outputs)
        contender.call = None if contender.problem else call
    except Exception as error:
        contender.problem = _first_line(error)
    return contender


def with_constants(source: str, settings: dict[str, int]) -> str:
    """The source with other values of ``constexpr int`` constants; ValueError for one that it has not, or twice."""
    for name, value in settings.items():
        source, found = re.subn(rf"\b(constexpr int {name} = )\d+;", rf"\g<1>{value};", source)
        if found != 1:
            raise ValueError(f"the kernel has {found} lines 'constexpr int {name} = NUMBER;'")
    return source


def _cuda_call(source: bytes, name: str, folder: str, where: Arena, platform: str) -> tuple[Call, Tensors]:
    """The launches as one call, and the outputs that it writes."""
    import torch
    from klineage.gate.request import kernel_job
    from klineage.kernel import Kernel
    from klineage.surface.dispatch import entry_of, flags_of
    from klineage.worker import buffers, cuda_build
    from klineage.worker.cuda_runner import CudaRunner, packed
    from klineage.workload import load as read

    workload = read(shipped("experts") / folder)
    entry = entry_of("cuda", name, source, workload)
    job = kernel_job(Kernel("cuda", name, entry, source, flags=flags_of("cuda", source)))
    with tempfile.TemporaryDirectory() as cache:
        built = cuda_build.build(source, name, tuple(job["flags"]), platform, Path(cache))
        job |= {"cubin": packed(Path(built["cubin"]).read_bytes()), "sha256": built["sha256"]}
    slots, total = buffers.layout(where.problem.tensors(where.dims))
    memory = torch.empty(total, dtype=torch.uint8, device="cuda")
    on_device.fill(memory, slots, where.inputs)
    runner = CudaRunner(job, where.problem)
    launch = runner.call(memory, slots, where.dims)
    held = (
        runner,
        memory,
    )  # launches know addresses only: what is there must live as long as they may be called

    def call() -> Any:
        launch()
        return held

    return call, {s.name: on_device.stored(memory, s) for s in slots if s.name in where.problem.outputs}


def label(path: Path, settings: dict[str, int]) -> str:
    """How a kernel with settings is called in tables: its name, then what differs from how it is written."""
    name = "expert" if path.name == "kernel.py" else path.stem
    return " ".join([name, *(f"{key}={value}" for key, value in settings.items())])


def configured(source: str, settings: dict[str, int]) -> str:
    """The source with settings written over the numbers of a launch; an autotuner's are pinned by the loader.

    ``kernel.name=value`` is for the launch of one kernel of several. Raises ValueError where a launch does not
    say the number.
    """
    for key, value in settings.items():
        kernel, _, name = key.rpartition(".")
        named = re.search(rf"triton\.Config\(.*\b{name}\b", source) is not None
        if not kernel and (named or (name in _OPTIONS and "triton.Config(" in source)):
            continue
        begin = source.find(f"{kernel}[") if kernel else 0
        head, rest = source[: max(begin, 0)], source[max(begin, 0) :]
        rest, times = re.subn(rf"\b{name}=\d+", f"{name}={value}", rest, count=1 if kernel else 0)
        if begin < 0 or not times:
            raise ValueError(f"no launch says {key} as a number")
        source = head + rest
    return source


def timed(contenders: list[Contender], rounds: int = ROUNDS) -> tuple[dict[str, list[float]], str]:
    """Milliseconds of every contender that runs, round by round, and the timer.

    A round calls each, then each again in the other order, every time after the cache was flushed and with the
    device kept waiting until the launches are queued; the faster of the two counts. CUPTI measures, from the
    start of a call's first kernel to the end of its last; events do where CUPTI does not see every run.
    """
    import torch
    from klineage.worker.gpu_timing import Sampler, by_cupti

    calls = {c.name: c.call for c in contenders if c.call is not None}
    if not calls:
        return {}, ""
    names, order = list(calls), [*calls.values(), *reversed(calls.values())]
    host = 0.0
    for call in calls.values():
        host = max(host, _host_seconds(call, torch))
    sampler, timer = Sampler(host), "cupti"
    taken: dict[str, list[float]] = {name: [] for name in names}
    while len(taken[names[0]]) < rounds:
        batch = min(_BATCH, rounds - len(taken[names[0]]))
        times, note = by_cupti(sampler, order * batch) if timer == "cupti" else ([], "")
        if note:  # all rounds by one timer
            timer, taken = f"events ({note})", {name: [] for name in names}
            continue
        times = times or sampler.run(order * batch)
        for name, found in zip(names, rounds_of(times, len(names)), strict=True):
            taken[name] += found
    return taken, timer


def rounds_of(times: list[float], contenders: int) -> list[list[float]]:
    """The times of runs in order, there and back in every round, to the faster of two for each contender and round."""
    begins = range(0, len(times), 2 * contenders)
    return [[min(times[b + c], times[b + 2 * contenders - 1 - c]) for b in begins] for c in range(contenders)]


def _host_seconds(call: Call, torch: Any) -> float:
    import time

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds


def ratio(theirs: list[float], ours: list[float]) -> float:
    """The median over the rounds of theirs / ours: above 1, ours is faster."""
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


def ceilings() -> dict[str, float]:
    """What this device reaches: bytes a second (read and written) of a copy, and operations a second in bf16."""
    import torch
    from klineage.worker.gpu_timing import Sampler

    left, right = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    for _ in range(3):
        right.copy_(left)
        torch.mm(a, b)
    sampler = Sampler(1e-4)
    copies = sampler.run([lambda: right.copy_(left)] * 10)
    products = sampler.run([lambda: torch.mm(a, b)] * 10)
    return {
        "bytes_per_second": 2 * left.numel() / statistics.median(copies) * 1e3,
        "operations_per_second": 2 * 8192**3 / statistics.median(products) * 1e3,
    }


def floor_ms(cost: dict[str, float], limits: dict[str, float]) -> float:
    """The larger of bytes / bandwidth and operations / rate."""
    slowest = max(
        cost["bytes"] / limits["bytes_per_second"], cost["operations"] / limits["operations_per_second"]
    )
    return 1e3 * slowest


def machine() -> str:
    """The device, the versions and the date, in one line."""
    import importlib.metadata
    from datetime import UTC, datetime

    import torch
    import triton

    versions = [f"PyTorch {torch.__version__}", f"Triton {triton.__version__}"]
    for name, package in (("FlashInfer", "flashinfer-python"), ("FLA", "flash-linear-attention")):
        try:
            versions.append(f"{name} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return f"{torch.cuda.get_device_name()}; {', '.join(versions)}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _worst(got: Any, expected: Any) -> float:
    """The largest error, as a part of the element and the root mean square of all."""
    wanted = expected.double()
    return float(((got.double() - wanted).abs() / (wanted.abs() + wanted.square().mean().sqrt())).max())


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:160]}" if text else type(error).__name__
