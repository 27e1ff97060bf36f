"""What is known of a target without running it: the facts that the check of a precondition may ask for.

Shapes come from the text of the workload's ``tensors()``, constants from the text of the kernel, resources from the
reports of gates that were made. What is in none of them is unknown, which is an answer and never a guess.
"""

from __future__ import annotations

import ast
import math
import os
import platform as platform_of_python
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.gate import Report
from klineage.kernel import Kernel, Surface
from klineage.platform import Platform, limits, parse
from klineage.proposer.features import Finding, audit
from klineage.skill.checks.constants import constants
from klineage.workload import Workload
from klineage.workload.constants import Unknown, evaluate
from klineage.workload.drawing import local_values

ITEMSIZE = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1}
#: What gates align a buffer's first byte to (docs/workloads.md); a Triton kernel gets torch's allocations.
BASE_ALIGNMENT: dict[Surface, int] = {"c": 4096, "cuda": 512, "triton": 64}
#: Bytes of a vector register, and how many there are, of the levels of x86-64 (System V psABI) and of AArch64 with NEON.
_VECTORS = {
    "x86-64": (16, 16), "x86-64-v2": (16, 16), "x86-64-v3": (32, 16), "x86-64-v4": (64, 32), "aarch64": (16, 32),
}  # fmt: skip
_RESOURCES = ("registers", "shared_bytes", "spill_bytes", "instructions", "num_warps", "num_stages")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Tensor:
    """One buffer at one size. ``alignment``: bytes that its first address is a multiple of."""

    name: str
    type: str
    shape: tuple[int, ...]
    alignment: int

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, axis by axis; buffers of a workload are contiguous."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * ITEMSIZE[self.type]

    @property
    def row_bytes(self) -> int:
        """Bytes of an innermost row."""
        return (self.shape[-1] if self.shape else 1) * ITEMSIZE[self.type]

    @property
    def row_alignment(self) -> int:
        """Bytes that the first address of every innermost row is a multiple of, at most 4096."""
        if len(self.shape) < 2:
            return self.alignment
        return math.gcd(self.alignment, self.row_bytes)


@dataclass(frozen=True)
class Facts:
    """Everything that a check may ask about a kernel, a workload and a platform.

    main:      the size that a gate times, which a check speaks of unless it says ``every_size(...)``.
    sizes:     name -> dimensions, without the hidden one.
    tensors:   size -> buffers by name; empty where their shapes cannot be read, and ``shapeless`` says why.
    constants: integer constants of the kernel's text and its pinned configuration.
    settings:  the numbers of the card that is asked about; they belong to its instance.
    findings:  every mechanism, present, absent or unknown.
    numbers:   what is known by a name alone: resources, limits, vectors, caches, cores.
    """

    surface: Surface
    workload: str
    platform: Platform
    element: str
    main: str
    sizes: Mapping[str, Mapping[str, int]]
    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    shapeless: str = ""
    constants: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.sizes[self.main])


def facts(
    kernel: Kernel,
    workload: Workload,
    platform: str,
    *,
    reports: Iterable[Report] = (),
    settings: Mapping[str, str] | None = None,
    machine: Mapping[str, int] | None = None,
) -> Facts:
    """What is known of a target.

    reports: gates of it, whose compile stages know its resources; those of other kernels are left out.
    settings: of the card that is asked about. machine: ``cores`` and ``cache_1`` ... in bytes, of the machine that the
    platform stands for; for a CPU platform it defaults to this one, which gates measure on.
    Raises KlineageError for a workload that has no element type for the kernel's surface, or an unknown platform.
    """
    if kernel.surface not in workload.element:
        raise KlineageError(
            f"{workload.path} gives no element type for {kernel.surface}; add it to ELEMENT to ask about such a kernel"
        )
    target = parse(platform)
    own = [report for report in reports if report.kernel == kernel.hash]
    known = machine if machine is not None else (this_machine() if _stands_for(target) else {})
    tensors, shapeless = _all_tensors(workload, kernel.surface)
    return Facts(
        surface=kernel.surface,
        workload=workload.name,
        platform=target,
        element=workload.element[kernel.surface],
        main=_main_size(workload, kernel.surface),
        sizes=workload.sizes,
        tensors=tensors,
        shapeless=shapeless,
        constants=constants(kernel),
        settings=dict(settings or {}),
        findings=audit(kernel, report=own[-1] if own else None),
        numbers={**known, **_of_platform(target), **_resources(own, platform)},
    )


def _main_size(workload: Workload, surface: Surface) -> str:
    """The size whose time counts (docs/workloads.md)."""
    order = ("bench", "small") if surface == "c" else ("paper", "bench", "small")
    return next(name for name in order if name in workload.sizes)


def _all_tensors(workload: Workload, surface: Surface) -> tuple[dict[str, dict[str, Tensor]], str]:
    try:
        return {size: tensors(workload, surface, dims) for size, dims in workload.sizes.items()}, ""
    except Unknown as error:
        return (
            {},
            f"{workload.path}: the shapes that tensors() gives cannot be read without running it ({error})",
        )


def tensors(workload: Workload, surface: Surface, dims: Mapping[str, int]) -> dict[str, Tensor]:
    """The buffers at these dimensions, from the text of ``tensors()``. Raises ``workload.constants.Unknown``."""
    tree = ast.parse(workload.source)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "tensors")
    if not function.args.args:
        raise Unknown("it takes no element type")
    names: dict[str, Any] = {**dims, function.args.args[0].arg: workload.element[surface]}
    local = local_values(function, names)
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Dict):
        raise Unknown("its last line is not return {...}")
    found = {}
    for key, value in zip(last.value.keys, last.value.values, strict=True):
        name, given = evaluate(key, local) if key is not None else None, evaluate(value, local)
        found[str(name)] = _tensor(name, given, _alignment(workload, surface, str(name)))
    return found


def _alignment(workload: Workload, surface: Surface, name: str) -> int:
    return math.gcd(BASE_ALIGNMENT[surface], workload.offsets.get(name, 0))


def _tensor(name: Any, given: Any, alignment: int) -> Tensor:
    match given:
        case (str() as type_, tuple() as shape) if type_ in ITEMSIZE and isinstance(name, str):
            if all(isinstance(extent, int) and extent > 0 for extent in shape):
                return Tensor(name, type_, shape, alignment)
    raise Unknown(f"{name!r} is given as {given!r}")


def _of_platform(target: Platform) -> dict[str, int]:
    if target.vendor == "cpu":
        bytes_, count = _VECTORS.get(target.architecture, (0, 0))
        return {"vector_bytes": bytes_, "vector_registers": count} if count else {}
    try:
        limit = limits(target)
    except KlineageError:
        return {}  # the table lacks it, so its limits are unknown
    return {
        "capability": target.capability,
        "shared_limit": limit.shared_bytes_per_block,
        "registers_limit": limit.registers_per_thread,
        "threads_limit": limit.threads_per_block,
    }


def _resources(reports: Iterable[Report], platform: str) -> dict[str, int]:
    """What compilers said of the kernel on this platform, the last report's word."""
    found: dict[str, int] = {}
    for report in reports:
        stage = report.stage("compile") if report.platform == platform else None
        if stage is not None:
            found |= {name: int(stage.numbers[name]) for name in _RESOURCES if name in stage.numbers}
    return found


def _stands_for(target: Platform) -> bool:
    """Whether this machine is of the processor family that the platform names."""
    arm = platform_of_python.machine() in ("arm64", "aarch64")
    return not target.is_gpu and (
        target.architecture == "native" or arm == (target.architecture == "aarch64")
    )


def this_machine() -> dict[str, int]:
    """``cores``, and ``cache_1`` ... in bytes (of data), as Linux tells them; without what it does not tell."""
    found = {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    }
    for index in sorted(_CACHES.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue  # a kernel that does not tell this cache: its size stays unknown
        if kind != "Instruction" and size.endswith("K") and size[:-1].isdigit():
            found[f"cache_{level}"] = int(size[:-1]) << 10
    return found
