"""What a gate is asked, what it says on the way, and how both are put to a worker."""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from klineage.gate import prepared
from klineage.gate.policy import Policy
from klineage.gate.verdict import StageResult
from klineage.kernel import Kernel
from klineage.workload import Workload

COUNT_SEED = 1  # counts of two kernels compare only on the same inputs


@dataclass(frozen=True)
class GateRequest:
    """Judge ``kernel`` for ``workload`` on ``platform``, and profile it against ``baseline``.

    ``seeds`` replays a gate; by default they are fresh and secret.
    """

    kernel: Kernel
    workload: Workload
    platform: str = "nvidia-sm90"
    baseline: Kernel | None = None
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True)
class GateEvent:
    """Progress of one stage. ``result`` comes with "done"."""

    stage: str
    state: Literal["running", "done"]
    detail: str = ""
    result: StageResult | None = None


OnEvent = Callable[[GateEvent], None]


def fresh_seeds(policy: Policy) -> tuple[int, ...]:
    """Seeds that no kernel can have known."""
    return tuple(secrets.randbits(62) for _ in range(policy.seeds))


def checked_sizes(workload: Workload, names: tuple[str, ...]) -> list[tuple[str, dict[str, int]]]:
    """The named sizes that the workload has, and its hidden one, smallest first."""
    sizes = [(name, workload.sizes[name]) for name in names if name in workload.sizes]
    if workload.hidden:
        sizes.append(("hidden", workload.hidden))
    return sorted(sizes, key=lambda item: math.prod(item[1].values()))


def cases(sizes: list[tuple[str, dict[str, int]]], seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """Every size with every seed, so that the first failure is the smallest."""
    return [
        {"size": name, "dims": dims, "seed": seed, "number": i}
        for name, dims in sizes
        for i, seed in enumerate(seeds, 1)
    ]


def workload_job(workload: Workload, surface: str) -> dict[str, Any]:
    """The workload as a worker gets it."""
    source = base64.b64encode(workload.source).decode()
    return {"source": source, "path": str(workload.path), "element": workload.element[surface]}


def kernel_job(kernel: Kernel) -> dict[str, Any]:
    """The kernel as a worker gets it."""
    known = prepared.get(kernel.hash)
    if known is not None:
        return dict(known.job)
    job: dict[str, Any] = {
        "surface": kernel.surface,
        "filename": kernel.filename,
        "entry": kernel.entry,
        "source": base64.b64encode(kernel.source).decode(),
        "config": list(kernel.config),
        "flags": list(kernel.flags),
    }
    if kernel.surface == "c":
        from klineage.surface.c_static import declared_flags, signature

        declared = [flag for flag in declared_flags(kernel.source) if flag not in kernel.flags]
        job["flags"] += declared
        job["parameters"] = [list(parameter) for parameter in signature(kernel)]
    elif kernel.surface == "cuda":
        from klineage.surface.c_static import declared_flags
        from klineage.surface.cuda_launch import launch_job

        declared = [flag for flag in declared_flags(kernel.source) if flag not in kernel.flags]
        job["flags"] += declared
        job.update(launch_job(kernel, tuple(declared)))
    return job
