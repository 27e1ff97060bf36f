"""Which gate results a step can be made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.gate import Report, StageResult, Trust, Verdict
from klineage.resources import shipped
from klineage.walk import Walk, new_lineage, open_workspace

PASSED = tuple(StageResult(name, Verdict.PASS, "ok", "fine") for name in ("static", "compile", "correctness"))


def test_only_an_acceptance_with_secret_seeds_makes_a_step(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w", create=True)
    try:
        name = new_lineage(workspace, shipped("experts") / "gemm/c/kernel.c", "gemm")
        walk = Walk(workspace, name)
        state = walk.state()
        candidate = walk.candidates()[0]
        report = Report(
            state.kernel_of(candidate).hash, walk.workload.hash, state.meta.platform, "2", Trust.MEASURED_CPU,
            PASSED, baseline=state.kernel.hash, seeds=(1, 2, 3, 4, 5), phase="acceptance",
        )  # fmt: skip
        for weak, said in (
            (replace(report, phase="screening"), "is a screening"),
            (replace(report, fixed_seed=True), "replays fixed seeds"),
        ):
            with pytest.raises(KlineageError, match=said):
                walk.accept(candidate, weak)
        assert walk.accept(candidate, report).number == 1
    finally:
        workspace.close()
