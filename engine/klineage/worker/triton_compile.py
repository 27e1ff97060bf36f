"""Compile the kernels that an entry launches for a GPU that need not be here."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Any

from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.triton_cubin import inspect_cubin
from klineage.worker.triton_load import Entry


def prepare_environment() -> None:
    """Make artefacts depend on code alone: no line information, multiply-add contraction stated.

    Call before the first compile; a value that is already set is kept, and reported as ``fp_fusion``.
    """
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


def compile_entry(
    entry: Entry, values: dict[str, object], target: str = "nvidia-sm90"
) -> list[dict[str, Any]]:
    """Compile every kernel that ``entry`` launches on ``values``, for ``target``, without running any.

    values: tensors (on "meta" or "cpu"), dimensions and scalars by name; they specialise the code.
    Returns one dict per distinct compiled kernel, in order of first launch: name, target, launches,
    programs, registers, spill_bytes, stack_bytes, shared_bytes, num_warps, num_stages, instructions
    (SASS opcode -> count, and "total"), artifact (sha256 of the PTX), fp_fusion.
    No limit of the device is checked here: Triton compiles what no device can launch.
    Raises KernelFault("compile_error") with the line, or "no_launch".
    """
    return recorded(compiled(entry, values, target), target)


def recorded(launched: list[tuple[Any, int]], target: str) -> list[dict[str, Any]]:
    """What ``compile_entry`` tells of what ``compiled`` made."""
    records: dict[str, dict[str, Any]] = {}
    for kernel, programs in launched:
        ptx = kernel.asm["ptx"]
        artifact = hashlib.sha256(ptx.encode()).hexdigest()
        if artifact not in records:
            records[artifact] = {
                **_record(kernel, ptx, target),
                "artifact": artifact,
                "launches": 0,
                "programs": 0,
            }
        records[artifact]["launches"] += 1
        records[artifact]["programs"] += programs
    return list(records.values())


def compiled(entry: Entry, values: dict[str, object], target: str) -> list[tuple[Any, int]]:
    """As ``compile_entry``, but nobody looks at what came of it: each launch's kernel, and its number of programs."""
    if entry.mode not in ("compile", "ahead"):
        raise WorkerError("mode", "an entry that is to be compiled must be loaded with mode='compile'")
    prepare_environment()
    entry.target = target
    with _capture() as launches:
        entry(values)
    if not launches:
        raise KernelFault("no_launch", f"the entry {entry.function.__name__} launches no Triton kernel")
    return launches


def _record(kernel: Any, ptx: str, target: str) -> dict[str, Any]:
    metadata = kernel.metadata
    fused = bool(getattr(metadata, "enable_fp_fusion", True))
    return {
        "name": metadata.name,
        "target": target,
        "shared_bytes": int(metadata.shared),
        "num_warps": int(metadata.num_warps),
        "num_stages": int(metadata.num_stages),
        "fp_fusion": fused,
        **inspect_cubin(kernel.asm["cubin"], ptx, fused),
    }


@contextlib.contextmanager
def _capture() -> Iterator[list[tuple[Any, int]]]:
    """Inside, a launch compiles and is noted (compiled kernel, number of programs) but never runs."""
    from triton.runtime.jit import JITFunction

    launches: list[tuple[Any, int]] = []
    original = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = original(self, *args, grid=grid, warmup=True, **kwargs)
        launches.append((kernel, _programs(self, grid, args, kwargs)))
        return kernel

    JITFunction.run = run
    try:
        yield launches
    finally:
        JITFunction.run = original


def _programs(function: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many programs the grid asks for."""
    if callable(grid):
        names = function.signature.parameters
        bound = function.signature.bind_partial(*args, **{k: v for k, v in kwargs.items() if k in names})
        bound.apply_defaults()
        grid = grid(dict(bound.arguments))
    total = 1
    for extent in grid if isinstance(grid, (tuple, list)) else (grid,):
        total *= int(extent)
    return total
