"""From a candidate and its gate report to the metadata of a step."""

from __future__ import annotations

from dataclasses import replace

from klineage.gate import Effect, Measurement, Report, StageResult
from klineage.kernel import Kernel
from klineage.lineage import Meta, StepRecord
from klineage.numbers import three
from klineage.proposer.candidate import Candidate


def of_candidate(
    candidate: Candidate, kernel: Kernel, meta: Meta, report: Report | None, *, why: str, edited: bool = False
) -> StepRecord:
    """The record of a backward step, or of a rejected one that may never have been gated."""
    record = StepRecord(
        subject=candidate.title,
        body=candidate.rationale,
        action=candidate.action,
        locus=candidate.locus,
        removes=candidate.removes,
        settings=candidate.settings,
        proposer=candidate.proposer,
        edited=edited,
        why=why,
        kernel=kernel.hash,
        platform=meta.platform,
    )
    return with_gate(record, report)


def with_gate(record: StepRecord, report: Report | None) -> StepRecord:
    """The record with what the gate said; "not run" where it did not."""
    if report is None:
        return replace(record, gate="not run")
    return replace(
        record,
        gate=f"{report.verdict.value}; policy {report.policy}",
        compile=_stage_text(report.stage("compile")),
        correctness=_stage_text(report.stage("correctness")),
        profile=_profile_text(report.stage("profile")),
        trust=report.trust.value,
        effect=report.effect.value if report.effect else "",
        ratio=_ratio(report),
    )


def _stage_text(stage: StageResult | None) -> str:
    return f"{stage.verdict.value}, {stage.summary}" if stage else ""


def _profile_text(stage: StageResult | None) -> str:
    if stage is None:
        return ""
    if stage.measurement is not None and stage.effect is not None:
        return measurement_text(stage.measurement)
    return stage.summary


def measurement_text(m: Measurement) -> str:
    """Interval, both latencies, the clock: ``[1.75, 1.79] 0.342 ms of 0.193 ms (cuda-event, paper)``."""
    if m.baseline_ms is None or m.low is None or m.high is None:
        return f"{three(m.candidate_ms)} ms ({m.timer}, {m.size})"
    return f"[{three(m.low)}, {three(m.high)}] {three(m.candidate_ms)} ms of {three(m.baseline_ms)} ms ({m.timer}, {m.size})"


def _ratio(report: Report) -> float | None:
    profile = report.stage("profile")
    if profile is None or profile.measurement is None or profile.effect is None:
        return None
    if profile.effect not in (Effect.SLOWER, Effect.NEUTRAL, Effect.FASTER):
        return None
    return profile.measurement.ratio
