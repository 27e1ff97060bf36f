"""What a gate demands. A verdict belongs to the policy under which it was reached."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Literal

VERSION = "2"

Phase = Literal["screening", "acceptance", "admission"]
PHASES: tuple[Phase, ...] = ("screening", "acceptance", "admission")  # each demands more


@dataclass(frozen=True)
class Policy:
    """Numbers of one gate. Times are in seconds, memory in bytes."""

    seeds: tuple[int, int, int] = (3, 5, 10)  # of each phase: fresh, secret, for every size
    error_factor: float = 4.0  # a candidate's RMS error, beside its baseline's
    error_floor: float = 0.25  # of the tolerance: below it no RMS error is looked at
    compile_seconds: float = 120.0
    run_seconds: float = 60.0  # one run of the kernel, and loading it
    workload_seconds: float = 60.0  # one call into the workload
    total_seconds: float = 120.0  # one stage
    memory_bytes: int = 4 << 30  # beyond what a worker maps already
    rounds: int = 8  # in one timing process
    least_rounds: int = 2
    profile_seconds: float = 0.05  # of one process; after this, ``least_rounds`` must do
    most_profile_seconds: float = 3.0  # no further process begins after this
    floor: float = 0.01  # the least effect on a CPU that a verdict may speak of
    gpu_floor: float = 0.02
    gpu_rounds: int = 50
    gpu_buffer_sets: int = 4
    share_device: bool = (
        False  # may other gates check kernels on the GPU meanwhile? Small cases only: memory is shared too
    )

    @property
    def name(self) -> str:
        """``1``, or ``1+<hash>`` when a number is not the default."""
        if self == Policy():
            return VERSION
        text = repr([(f.name, getattr(self, f.name)) for f in fields(self)])
        return f"{VERSION}+{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def seeds_of(self, phase: Phase) -> int:
        """How many seeds a phase demands."""
        return self.seeds[PHASES.index(phase)]

    @property
    def limits(self) -> dict[str, float]:
        """What a worker is told."""
        names = (
            "compile_seconds", "run_seconds", "workload_seconds", "total_seconds", "memory_bytes", "share_device",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


POLICY = Policy()
