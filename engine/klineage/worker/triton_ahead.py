"""Compile before torch is there: a first gate's kernels are in Triton's cache by the time its workers have imported torch.

Nothing is judged here. Host code runs on stand-ins for tensors, and whatever goes wrong is dropped: the compile stage
does all of it again, with tensors and under the watch over them, and finds in the cache what this left there.
"""

from __future__ import annotations

import functools
import importlib
import math
import time
from dataclasses import dataclass
from typing import Any

from klineage.worker import limits
from klineage.worker.buffers import PAGE, Slot
from klineage.worker.check import confinement
from klineage.worker.jobs import Context, Result, verdict
from klineage.worker.process import Channel, Child, end, spawn
from klineage.worker.runners import load_entry, problem_of
from klineage.worker.watch import watch

_DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "int64": "int64", "int32": "int32", "int8": "int8", "uint8": "uint8",
}  # fmt: skip


def compile_ahead(request: dict[str, Any], context: Context) -> Result:
    """Compile at ``dims`` and at each of ``also`` for ``target``, with what Triton launches it by: in its cache afterwards."""
    bodies = [functools.partial(_compile, request, dims) for dims in (request["dims"], *request["also"])]
    deadline = [time.monotonic() + request["limits"]["compile_seconds"]]
    children: list[Child] = []
    told: dict[
        int, dict[str, bool]
    ] = {}  # the walls of each child, which it tells before it reads the kernel
    try:
        for body in (functools.partial(_open_driver, request), *bodies):
            children.append(spawn("ahead", body))
        for child, message in watch(children, deadline, context.control, context.job):
            if "flood" in message:
                break
            if child is not None and "layers" in message:
                told.setdefault(child.pid, message["layers"])
    finally:
        end(children)
    names = {name for held in told.values() for name in held}
    layers = {name: all(held.get(name, True) for held in told.values()) for name in names}
    return {**verdict("pass", "ok", ""), "layers": layers}


def _open_driver(request: dict[str, Any], channel: Channel) -> None:
    """Body of a child that has Triton build its module for NVIDIA's driver, as it does once on each machine."""
    importlib.import_module("triton")
    channel.send(layers=limits.apply(confinement(request, "compiler")))
    importlib.import_module("triton.backends.nvidia.driver").CudaUtils()


def _compile(request: dict[str, Any], dims: dict[str, int], channel: Channel) -> None:
    """Body of a child that compiles at ``dims``."""
    importlib.import_module("triton")
    from klineage.worker import triton_compile

    problem = problem_of(request)
    slots, _total = problem.layout(dims)
    channel.send(layers=limits.apply(confinement(request, "compiler")))
    entry = load_entry(request["kernel"], "ahead")
    values = {**dims, **problem.scalars, **{slot.name: StandIn(slot) for slot in slots}}
    launched = triton_compile.compiled(entry, values, request["target"])
    if dims == request["dims"]:
        triton_compile.recorded(launched, request["target"])
    driver = importlib.import_module("triton.backends.nvidia.driver")
    if hasattr(driver, "make_launcher"):  # up to Triton 3.6 every signature has a launcher of its own, in C
        for kernel, _programs in launched:
            driver.CudaLauncher(kernel.src, kernel.metadata)


class StandIn:
    """What Triton asks a tensor for when it is an argument, and what host code may ask for its launch."""

    def __init__(self, slot: Slot) -> None:
        self.shape = tuple(slot.shape)
        self.dtype = _Name(f"torch.{_DTYPES[slot.type]}")
        self.device = _Name("cuda:0")
        self.ndim, self._size = len(self.shape), slot.size // max(1, math.prod(self.shape))
        self._at = PAGE + slot.offset % PAGE

    def data_ptr(self) -> int:
        return self._at

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        return self._size

    def dim(self) -> int:
        return self.ndim

    def size(self, at: int | None = None) -> Any:
        return self.shape if at is None else self.shape[at]

    def stride(self, at: int | None = None) -> Any:
        strides = tuple(math.prod(self.shape[n + 1 :]) for n in range(self.ndim))
        return strides if at is None else strides[at]

    def is_contiguous(self) -> bool:
        return True


@dataclass(frozen=True)
class _Name:
    """A dtype or a device, as far as its text goes."""

    text: str

    def __str__(self) -> str:
        return self.text
