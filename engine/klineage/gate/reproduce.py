"""The one command that repeats a gate, with the seed that failed when one did."""

from __future__ import annotations

import shlex
from pathlib import Path

from klineage.errors import KlineageError
from klineage.gate.request import GateRequest
from klineage.gate.verdict import StageResult
from klineage.resources import shipped


def reproduce(request: GateRequest, seeds: tuple[int, ...], stages: tuple[StageResult, ...]) -> str:
    """``klineage gate ... --seed ...`` for the kernel's file in the current folder.

    The seed of the smallest failing case when there is one, else all of them: the seeds of a failure that no
    seed decides (a compiler's, say) are left out.
    """
    kernel = request.kernel
    words = [
        "klineage",
        "gate",
        kernel.filename,
        "--workload",
        workload_word(request.workload.path, request.workload.name),
    ]
    words += ["--surface", kernel.surface, "--platform", request.platform, "--phase", request.phase]
    if kernel.surface != "cuda":
        words += ["--entry", kernel.entry]
    failing = [result.case.seed for result in stages if result.case is not None]
    reached = any(result.stage == "correctness" and result.verdict != "skipped" for result in stages)
    for seed in failing[:1] or (seeds if reached else ()):
        words += ["--seed", str(seed)]
    if request.counters:
        words.append("--counters")
    return shlex.join([*words, "--fresh"])


def workload_word(path: Path, name: str) -> str:
    """What ``--workload`` takes for it: its name when it is a shipped one, else its path."""
    try:
        ours = shipped("experts").resolve()
    except KlineageError:  # a batch file has no experts with it; its paths are such words already
        return str(path)
    return name if ours in path.resolve().parents else str(path)
