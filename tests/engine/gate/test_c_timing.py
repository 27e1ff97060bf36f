"""Timing C kernels for real: what stands beside the ratio, and what makes a ratio worthless."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from klineage.gate import Effect, Policy, Report, StageResult, Verdict
from klineage.gate import calibration as calibration_
from klineage.kernel import Kernel
from klineage.worker import nested, processor
from klineage.worker.faults import KernelFault, Unsupported
from klineage.workload import Workload

Gate = Callable[..., Report]
MakeC = Callable[..., Kernel]
PATIENT = Policy(most_profile_seconds=60.0)  # until the effect stands, however busy the machine


def profile(report: Report) -> StageResult:
    found = report.stage("profile")
    assert found is not None
    return found


def test_outputs_are_verified_and_a_cold_time_stands_beside(judge: Gate, c: MakeC) -> None:
    result = profile(judge(c(), baseline=c("/* the same */"), policy=PATIENT))
    assert result.numbers["verified"] == 3
    assert result.numbers["cold_ms"] > 0
    assert result.numbers["groups"] >= 4
    assert result.numbers["drift"] >= 1
    alone = profile(judge(c()))
    assert alone.numbers["verified"] == 2
    assert alone.numbers["cold_ms"] > 0


@pytest.mark.parametrize("after", ["return;", "rows /= 2;"])
def test_a_kernel_that_rests_after_some_calls_is_wrong(judge: Gate, c: MakeC, after: str) -> None:
    resting = c(f"if (++calls > 60) {{ {after} }}", before="static int calls;")
    report = judge(resting, baseline=c())
    result = profile(report)
    assert (result.verdict, result.reason) == (Verdict.FAIL, "timed_output"), result
    assert result.case is not None
    assert result.case.size == "bench"
    assert report.verdict is Verdict.FAIL


def test_a_planted_effect_is_found_both_ways(judge: Gate, rows: Workload) -> None:
    workload = calibration_.workload()
    equal, more = calibration_.kernel(0, "a"), calibration_.kernel(100, "b")  # ten per cent
    slower = profile(judge(more, workload, baseline=equal, policy=PATIENT))
    assert slower.effect is Effect.SLOWER, slower
    assert slower.measurement is not None
    assert slower.measurement.low is not None
    assert slower.measurement.high is not None
    assert slower.measurement.low < 1.10 < slower.measurement.high + 0.03
    faster = profile(judge(equal, workload, baseline=more, policy=PATIENT))
    assert faster.effect is Effect.FASTER, faster


def test_a_calibration_counts_what_was_said(executor: object) -> None:
    quick = replace(PATIENT, most_profile_seconds=0.3, profile_seconds=0.02)
    found = calibration_.calibrate(2, 1, policy=quick, executor=executor)  # type: ignore[arg-type]
    assert [line.plant for line in found.lines] == [0.0, 0.005, 0.01, 0.02, 0.05]
    assert [line.runs for line in found.lines] == [2, 1, 1, 1, 1]
    for line in found.lines:
        assert line.slower + line.faster + line.neutral + line.noisy == line.runs
    assert 0 <= found.false_rate <= 1
    counts = [line.instructions for line in found.lines]
    if None not in counts:
        assert counts == sorted(counts, key=lambda count: count or 0)
        assert (counts[-1] or 0) / (counts[0] or 1) == pytest.approx(1.05, abs=0.004)


def test_the_cache_of_this_processor_is_known() -> None:
    assert processor.last_level_cache() >= 1 << 20


def test_a_nested_process_answers_or_faults() -> None:
    assert nested.nested(lambda: {"number": 3}) == {"number": 3}

    def refuse() -> dict[str, object]:
        raise Unsupported("no_way", "not here", place="x")

    with pytest.raises(Unsupported) as fault:
        nested.nested(refuse)
    assert (fault.value.reason, fault.value.details) == ("no_way", {"place": "x"})

    def wrong() -> dict[str, object]:
        raise KernelFault("mismatch", "no")

    with pytest.raises(KernelFault, match="no"):
        nested.nested(wrong)
