"""What a gate is asked, what it says on the way, and how both are put to a worker."""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from klineage.gate import prepared
from klineage.gate.policy import Phase, Policy
from klineage.gate.verdict import StageResult
from klineage.kernel import Kernel
from klineage.workload import DISTRIBUTIONS, Workload

COUNT_SEED = 1  # counts of two kernels compare only on the same inputs


@dataclass(frozen=True)
class GateRequest:
    """Judge ``kernel`` for ``workload`` on ``platform``, and profile it against ``baseline``.

    ``phase`` says how much is demanded. ``seeds`` replays a gate, and marks its report; by default they
    are fresh and secret.
    """

    kernel: Kernel
    workload: Workload
    platform: str = "nvidia-sm90"
    baseline: Kernel | None = None
    seeds: tuple[int, ...] | None = None
    phase: Phase = "acceptance"
    counters: bool = False  # instruction counts of a profiler, as evidence
    sanitize: bool = False  # compute-sanitizer too, which takes seconds; ASan and UBSan run anyway


@dataclass(frozen=True)
class GateEvent:
    """Progress of one stage. ``result`` comes with "done"."""

    stage: str
    state: Literal["running", "done"]
    detail: str = ""
    result: StageResult | None = None


OnEvent = Callable[[GateEvent], None]


def fresh_seeds(policy: Policy, phase: Phase = "acceptance") -> tuple[int, ...]:
    """Seeds that no kernel can have known; their remainders take the distributions in turn."""
    many = len(DISTRIBUTIONS)
    return tuple(secrets.randbits(59) * many + i % many for i in range(policy.seeds_of(phase)))


def checked_sizes(workload: Workload, names: tuple[str, ...]) -> list[tuple[str, dict[str, int]]]:
    """The named sizes that the workload has, and its hidden one, smallest first."""
    sizes = [(name, workload.sizes[name]) for name in names if name in workload.sizes]
    if workload.hidden:
        sizes.append(("hidden", workload.hidden))
    return sorted(sizes, key=lambda item: math.prod(item[1].values()))


def case(
    size: str, dims: dict[str, int], seed: int, number: int, recipe: str, **more: bool
) -> dict[str, Any]:
    """One case as a worker gets it. ``number``: which seed of the gate, 0 for the fixed one of the counts.

    ``variant``, where it is not "", is what is done to the case before it: "again" (other addresses, other poison),
    "perturbed" (part of the inputs replaced), "ghost" (empty kernels).
    """
    told = {"size": size, "dims": dims, "seed": seed, "number": number, "recipe": recipe}
    return {**told, "variant": "", **more}


def recipe_of(seed: int, allowed: tuple[str, ...]) -> str:
    """The distribution that a seed stands for, where the workload allows it."""
    found = DISTRIBUTIONS[seed % len(DISTRIBUTIONS)]
    return found if found in allowed else allowed[0]


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
