"""A verdict explains itself: what decided, what was said, and the one command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Report, StageResult, Trust, Verdict, gate
from klineage.kernel import Kernel
from klineage.workload import Workload, load

from klineage_tui.cli import main

MakeC = Callable[..., Kernel]


def report(*stages: StageResult) -> Report:
    return Report("k", "w", "cpu", "2", Trust.MEASURED_CPU, stages)


def stage(name: str, verdict: Verdict, reason: str = "ok") -> StageResult:
    return StageResult(name, verdict, reason, f"{name} says {verdict}")


PASSED = [stage(name, Verdict.PASS) for name in ("static", "compile", "correctness")]


@pytest.mark.parametrize("verdict", [Verdict.NOISY, Verdict.SKIPPED, Verdict.TIMEOUT, Verdict.UNSUPPORTED])
def test_a_profile_without_a_number_is_no_failure(verdict: Verdict) -> None:
    found = report(*PASSED, stage("profile", verdict))
    assert (found.verdict, found.decisive) == (Verdict.PASS, None)


def test_a_profile_that_fails_is_one() -> None:
    found = report(*PASSED, stage("profile", Verdict.FAIL, "impossible"))
    assert found.verdict is Verdict.FAIL
    assert found.why == "profile says fail"


def test_the_log_has_every_stage_in_order() -> None:
    broken = StageResult("compile", Verdict.FAIL, "compile", "no", log="line 1\nline 2", seconds=0.5)
    text = report(PASSED[0], broken).log
    assert text.splitlines() == [
        "[static] pass ok: static says pass (0.00 s)",
        "[compile] fail compile: no (0.50 s)",
        "    line 1",
        "    line 2",
    ]


def test_a_failure_is_repeated_by_its_command(
    executor: LocalExecutor, rows: Workload, c: MakeC, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = c("if (rows == 5) { y[7] = 3; return; }")
    failed = gate(GateRequest(kernel, rows, "cpu-native"), fresh=True, executor=executor)
    assert failed.verdict is Verdict.FAIL
    case = failed.decisive.case if failed.decisive else None
    assert case is not None
    words = shlex.split(failed.reproduce)
    assert words[:3] == ["klineage", "gate", "kernel.c"]
    assert words[words.index("--seed") + 1] == str(case.seed)
    assert words.count("--seed") == 1
    file = tmp_path / "kernel.c"
    file.write_bytes(kernel.source)
    assert main([*words[1:2], str(file), *words[3:]]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"seed {case.seed}" in said
    assert f"reproduce: klineage gate {file}" in said
    assert "fixed seed" in said


def test_a_shipped_workload_goes_by_its_name(executor: LocalExecutor, c: MakeC) -> None:
    kernel = Kernel("c", "kernel.c", "gemm", b"void gemm(float *y);")
    refused = gate(GateRequest(kernel, load("gemm"), "cpu-native"), fresh=True, executor=executor)
    assert "--workload gemm" in refused.reproduce
    assert "--seed" not in refused.reproduce  # no seed had to do with it


def test_the_panel_shows_the_command() -> None:
    from klineage_tui.presentation.gate import GateView, gate_lines

    command = "klineage gate kernel.c --workload gemm --seed 7 --fresh"
    failed = Report(
        "k", "w", "cpu", "2", Trust.MEASURED_CPU, (stage("static", Verdict.FAIL, "entry"),), reproduce=command
    )
    assert f"reproduce: {command}" in [line.text for line in gate_lines(GateView("current", failed), 100)]
