"""One face for every surface: load a kernel in this child, run it on a region of buffers."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from klineage.worker import buffers, c_native
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.problem import Problem, load

Region = np.ndarray[Any, Any]
Slots = tuple[buffers.Slot, ...]
_MODES = {"interpreter": "interpret", "compiler": "compile", "ahead": "ahead", "gpu": "gpu"}


class Runner(Protocol):
    """A loaded kernel."""

    def run(self, region: Region, slots: Slots, dims: dict[str, int]) -> dict[str, int]:
        """Run once on the buffers; outputs end up in ``region``. Returns exact counts, if it has any."""
        ...


def problem_of(request: dict[str, Any]) -> Problem:
    """The request's workload, executed."""
    workload = request["workload"]
    return load(base64.b64decode(workload["source"]), workload["path"], workload["element"])


def source_of(kernel: dict[str, Any]) -> bytes:
    return base64.b64decode(kernel["source"])


def runner(kind: str, kernel: dict[str, Any], problem: Problem, dims: dict[str, int]) -> Runner:
    """Load the kernel of a request for the worker kind. ``dims`` are any valid ones, to bind names."""
    if kernel["surface"] == "c":
        return CRunner(kernel, problem, dims)
    if kernel["surface"] == "cuda":
        from klineage.worker.cuda_runner import CudaRunner

        return CudaRunner(kernel, problem)
    return TritonRunner(kernel, problem, kind)


class CRunner:
    """A C kernel runs directly on the region."""

    def __init__(self, kernel: dict[str, Any], problem: Problem, dims: dict[str, int]) -> None:
        use_threads(kernel)
        self.artifact = _artifact(kernel)
        bindings = c_native.bind([tuple(p) for p in kernel["parameters"]], problem, dims)
        self.function = c_native.Function(kernel["library"], kernel["entry"], bindings)
        self.scalars = problem.scalars

    def run(self, region: Region, slots: Slots, dims: dict[str, int]) -> dict[str, int]:
        self.function(*self.function.arguments(region, slots, dims, self.scalars))
        return {}


def _artifact(kernel: dict[str, Any]) -> str:
    """The sha256 of the library that is about to be loaded. Raises WorkerError when another was compiled."""
    found = hashlib.sha256(Path(kernel["library"]).read_bytes()).hexdigest()
    if found != kernel.get("sha256", found):
        raise WorkerError("artifact", f"{kernel['library']} is not what was compiled; gate again")
    return found


def use_threads(*kernels: dict[str, Any]) -> bool:
    """OpenMP uses every CPU where a kernel declares it, and one thread otherwise. Returns which."""
    threaded = any("-fopenmp" in kernel.get("flags", ()) for kernel in kernels)
    os.environ["OMP_NUM_THREADS"] = str(cpus() if threaded else 1)
    return threaded


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_entry(kernel: dict[str, Any], kind: str) -> Any:
    """Write a Triton file where ``inspect`` can read it, and load its entry."""
    from klineage.worker import triton_compile, triton_load

    if kind != "interpreter":
        triton_compile.prepare_environment()  # so that equal kernels have equal code, and share a cache
    folder = Path(tempfile.mkdtemp(prefix="kernel-", dir=os.environ.get("KLINEAGE_SCRATCH")))
    path = folder / Path(kernel["filename"]).name
    path.write_bytes(source_of(kernel))
    return triton_load.load(str(path), kernel["entry"], dict(kernel.get("config", ())), _MODES[kind])


class TritonRunner:
    """A Triton kernel, in the interpreter or on a GPU."""

    def __init__(self, kernel: dict[str, Any], problem: Problem, kind: str) -> None:
        self.kind, self.problem = kind, problem
        self.name = kernel["entry"]
        self.entry = load_entry(kernel, kind)
        self.entry.oob_read = problem.oob_read
        self._left: tuple[Any, dict[str, Any]] | None = None

    def run(self, region: Region, slots: Slots, dims: dict[str, int]) -> dict[str, int]:
        """Interpret the kernel on the region itself."""
        import torch

        from klineage.worker import triton_interpreter

        triton_interpreter.reset_counts()
        self._on(torch.from_numpy(region), slots, dims)
        counts = dict(triton_interpreter.counts())
        self.finish()
        return counts

    def run_on(self, memory: Any, slots: Slots, dims: dict[str, int]) -> dict[str, int]:
        """Run once on buffers inside ``memory``, a tensor of bytes on the device; ``finish`` belongs to it."""
        import torch

        self._on(memory, slots, dims)
        torch.cuda.synchronize()
        return {}

    def _on(self, memory: Any, slots: Slots, dims: dict[str, int]) -> None:
        self._left = None
        tensors = {slot.name: view(memory, slot) for slot in slots}
        returned = self._enter({**dims, **self.problem.scalars, **tensors})
        if returned is not None:
            self._left = returned, tensors

    def finish(self) -> None:
        """Bring what the last run returned into its buffers, apart from it: these copies are not the kernel's."""
        if self._left is not None:
            self._take(*self._left)
            self._left = None

    def _enter(self, values: dict[str, Any]) -> Any:
        try:
            return self.entry(values)
        except (KernelFault, MemoryError):
            raise
        except Exception as error:
            if "allocate memory" in str(error):
                raise MemoryError from error
            raise KernelFault("raised", f"{self.name}() raised {type(error).__name__}: {error}") from error

    def _take(self, returned: Any, tensors: dict[str, Any]) -> None:
        """Copy returned outputs into their buffers, exactly as typed: a wrong type is no rounding error."""
        outputs = self.problem.outputs
        values = returned if isinstance(returned, (tuple, list)) else (returned,)
        if len(values) != len(outputs):
            raise KernelFault(
                "outputs",
                f"{self.name}() returned {len(values)} values; the workload has {len(outputs)} outputs",
            )
        for name, value in zip(outputs, values):  # noqa: B905 - strict= is of Python 3.10
            target = tensors[name]
            got, wanted = _nature(value), _nature(target)
            if got != wanted:
                raise KernelFault(
                    "outputs", f"{self.name}() returned {name} as {got}; the workload says {wanted}"
                )
            if value.data_ptr() != target.data_ptr():
                target.copy_(value)


def _nature(value: Any) -> str:
    """What a returned output is: exact class, type, shape, strides and device, as words."""
    import torch

    if type(value) is not torch.Tensor:
        return type(value).__name__
    order = "" if value.is_contiguous() else f" with strides {tuple(value.stride())}"
    return f"{value.dtype} {tuple(value.shape)}{order} on {value.device.type}"


def view(device: Any, slot: buffers.Slot) -> Any:
    """The torch tensor of one slot inside a byte tensor."""
    import torch

    dtypes = {
        "fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
        "int64": torch.int64, "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8,
    }  # fmt: skip
    if slot.type not in dtypes:
        raise WorkerError("workload", f"no torch type for {slot.type}")
    return device[slot.offset : slot.end].view(dtypes[slot.type]).view(slot.shape)
