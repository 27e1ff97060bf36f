"""From a candidate and its gate report to the metadata of a step."""

from __future__ import annotations

from klineage.gate import Effect, Measurement, Report, StageResult
from klineage.lineage import StepRecord
from klineage.proposer import Candidate


def of_step(
    candidate: Candidate,
    report: Report | None,
    *,
    decision: str,
    why: str,
    kernel: str = "",
    platform: str = "",
) -> StepRecord:
    """The record of a backward step, or of a rejected one that may never have been gated."""
    return StepRecord(
        subject=candidate.title,
        body=candidate.rationale,
        direction="backward",
        action=candidate.action,
        locus=candidate.locus,
        removes=candidate.removes,
        settings=dict(candidate.settings),
        proposer=candidate.proposer,
        decision=decision,
        why=why,
        kernel=report.kernel if report else kernel,
        platform=report.platform if report else platform,
        **gate_fields(report),
    )


def gate_fields(report: Report | None) -> dict[str, object]:
    """The part of a step's metadata that the gate decides; empty words where it did not run."""
    if report is None:
        return {"gate": "not run", "compile": "", "correctness": "", "profile": "", "trust": "", "effect": "", "ratio": None}
    return {
        "gate": f"{report.verdict.value} ({report.policy})",
        "compile": _stage_text(report.stage("compile")),
        "correctness": _stage_text(report.stage("correctness")),
        "profile": _profile_text(report.stage("profile")),
        "trust": report.trust.value,
        "effect": report.effect.value if report.effect else "",
        "ratio": _ratio(report),
    }


def _stage_text(stage: StageResult | None) -> str:
    return f"{stage.verdict.value}, {stage.summary}" if stage else ""


def _profile_text(stage: StageResult | None) -> str:
    if stage is None:
        return ""
    if stage.measurement and stage.effect:
        return f"{stage.effect.value} {measurement_text(stage.measurement)}"
    return f"{(stage.effect or stage.verdict).value}, {stage.summary}"


def measurement_text(m: Measurement) -> str:
    """Ratio first, then its interval, both latencies and the timer: ``1.77x [1.75, 1.79] 0.342 ms of 0.193 ms (cuda-event)``."""
    return f"{m.ratio:.3g}x [{m.low:.3g}, {m.high:.3g}] {m.candidate_ms:.3g} ms of {m.baseline_ms:.3g} ms ({m.timer}, {m.size})"


def _ratio(report: Report) -> float | None:
    profile = report.stage("profile")
    if profile is None or profile.measurement is None or profile.effect is None:
        return None
    if profile.effect not in (Effect.SLOWER, Effect.NEUTRAL, Effect.FASTER):
        return None
    return profile.measurement.ratio
