"""The gate panel as text: words first, the number that decided, what to do next; nothing jumps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from klineage.gate import GateEvent
from klineage.gate.verdict import (
    Effect,
    FailingCase,
    Measurement,
    Report,
    StageResult,
    Trust,
    Verdict,
)

from klineage_tui.actions import keymap
from klineage_tui.presentation.gate import GateView, gate_heading, gate_lines

STATIC = StageResult("static", Verdict.PASS, "ok", "parses; the entry is gemm")
COMPILE = StageResult("compile", Verdict.PASS, "ok", "sm_90 122 registers, 96.0 KiB shared, 0 spills")
NUMBERS = {"worst": 2.1e-3, "rtol": 1.6e-2, "cases": 12.0}
CORRECT = StageResult(
    "correctness", Verdict.PASS, "ok", "3 seeds at small, ragged and hidden", numbers=NUMBERS
)
TIMES = Measurement(0.342, "clock", 27, "bench", 0.193, 1.77, 1.75, 1.79, 0.0176, 0.1)
PROFILE = StageResult("profile", Verdict.PASS, "ok", "slower", effect=Effect.SLOWER, measurement=TIMES)
WRONG = StageResult(
    "correctness",
    Verdict.FAIL,
    "mismatch",
    "y differs",
    case=FailingCase("ragged", {"M": 63, "K": 33}, 7, "y", (3, 17), "nan", 0.0123),
    log="one\x1b[31m\ntwo",
)


def _view(*stages: StageResult) -> GateView:
    report = Report("k", "w", "cpu", "1", Trust.MEASURED_CPU, stages, baseline="h")
    return GateView("current", report, keys=keymap())


def _text(view: GateView, width: int = 64) -> list[str]:
    return [line.text for line in gate_lines(view, width)]


def test_words_come_first_and_the_ratio_before_the_times() -> None:
    lines = _text(_view(STATIC, COMPILE, CORRECT, PROFILE))
    assert lines[0].split()[:2] == ["static", "PASS"]
    assert lines[2].split()[:2] == ["correct", "PASS"]
    assert "error 0.0021, allowed 0.016, 12 cases" in lines[2]
    assert lines[3].split()[:5] == ["profile", "SLOWER", "1.77x", "[1.75,", "1.79]"]
    assert "0.193 → 0.342 ms" in lines[3], "before, then after"
    assert any("noise ±1.76 %" in line and "29.2 % of the floor" in line for line in lines)
    assert lines.index("a accepts it, x rejects it, e edits it") == 7, "in sight at 80x24"


def test_the_failing_case_and_the_way_on() -> None:
    lines = _text(_view(STATIC, COMPILE, WRONG))
    assert lines[2].split()[:2] == ["correct", "FAIL"]
    assert "smallest failing case  ragged  M=63 K=33  seed 7" in lines
    assert "  y[3, 17]  got nan  expected 0.0123" in lines
    assert "one␛[31m" in lines, "a log is shown, never obeyed"
    assert "x keeps it as a rejected attempt, e edits it" in lines


def test_a_case_that_failed_as_a_whole_names_no_element() -> None:
    hung = StageResult(
        "correctness",
        Verdict.TIMEOUT,
        "timeout",
        "ran longer than 60 s at size hidden",
        case=FailingCase("hidden", {}, 9, "", (), "", ""),
    )
    lines = _text(_view(STATIC, COMPILE, hung))
    assert "smallest failing case  hidden  seed 9" in lines
    assert not any("expected" in line for line in lines)


def test_a_long_log_keeps_the_end_that_explains_it() -> None:
    frames = [f"frame {number}" for number in range(20)]
    for log, kept, lost in (
        ("\n".join(["kernel.c:3: error: first", *frames]), "kernel.c:3: error: first", "frame 19"),
        ("\n".join(["Traceback (most recent call last):", *frames, "KeyError: 1"]), "KeyError: 1", "frame 0"),
    ):
        lines = _text(_view(STATIC, StageResult("compile", Verdict.ERROR, "x", "it broke", log=log)))
        assert kept in lines
        assert lost not in lines
        assert any(line.startswith("… ") for line in lines)


def test_stages_stay_in_their_rows_while_results_arrive() -> None:
    view = GateView("running", keys=keymap())
    rows = []
    for result in (STATIC, COMPILE, CORRECT, PROFILE):
        view = view.after(GateEvent(result.stage, "running", "size ragged"))
        assert "running     size ragged" in _text(view)[len(rows)]
        view = view.after(GateEvent(result.stage, "done", "", result))
        rows.append(result.stage)
        assert [line.split()[0] for line in _text(view)[:4]] == ["static", "compile", "correct", "profile"]
    assert gate_heading(replace(view, elapsed=1.5))[0] == "GATE  running 1.50 s"


def test_stale_evidence_is_grey_and_says_so() -> None:
    view = replace(_view(STATIC, COMPILE, CORRECT, PROFILE), status="stale")
    assert "stale" in gate_heading(view)[0]
    assert {span.role for line in gate_lines(view, 64) for span in line.spans} == {"muted"}
    assert "g gates this proposal" in _text(view)
    assert not any("accepts" in line for line in _text(view))


@pytest.mark.parametrize("verdict", [Verdict.ERROR, Verdict.UNSUPPORTED])
def test_what_says_nothing_of_the_kernel_is_not_called_its_fault(verdict: Verdict) -> None:
    lines = _text(_view(STATIC, StageResult("compile", verdict, "no_compiler", "gcc is missing")))
    assert any("klineage doctor" in line for line in lines)
    assert not any("rejected" in line for line in lines)


def test_what_was_not_run_is_not_offered_to_be_run_again() -> None:
    for verdict, shown in ((Verdict.UNSUPPORTED, False), (Verdict.FAIL, True)):
        view = _view(STATIC, COMPILE, StageResult("correctness", verdict, "x", "no GPU"))
        assert view.report is not None
        view = replace(view, report=replace(view.report, reproduce="klineage gate kernel.cu"))
        assert any(line.startswith("reproduce: ") for line in _text(view)) is shown


def test_counts_are_not_called_a_time() -> None:
    counted = StageResult(
        "profile", Verdict.PASS, "ok", "counts, not time: bytes 1.50x", effect=Effect.MORE_WORK
    )
    assert _text(_view(STATIC, COMPILE, CORRECT, counted))[3].split()[:3] == ["profile", "MORE", "WORK"]
