"""Sealing: the accepted backward steps turned round into a forward lineage, naive form first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.gate import Effect, GateRequest, Report, Verdict, gate, report_to_json
from klineage.kernel import Kernel
from klineage.lineage import ForwardRecord, Step, StepRecord
from klineage.walk import records

if TYPE_CHECKING:
    from klineage.walk.session import Walk

#: Profile effects under which a derived kernel counts as matching the state it should reproduce.
_MATCHES = (Effect.NEUTRAL, Effect.FASTER, Effect.SAME_WORK, Effect.LESS_WORK)


def seal(
    walk: Walk, on_progress: Callable[[str], None] | None = None, cancel: threading.Event | None = None
) -> tuple[Step, ...]:
    """Write ``lineage/<id>``.

    Each transition is derived again on the simpler state by the rule that knows it, without looking
    at the backward diff; where that reproduces the state (the same bytes, or bytes that pass the
    gate against it), the transition is ``derived``, otherwise it is ``replayed``: the recorded
    inverse, kept and marked. Each forward state is gated against the one before it.

    Raises KlineageError when nothing was accepted yet, a state fails its gate, or on cancel.
    """
    steps = walk.workspace.history(walk.id)
    if len(steps) < 2:
        raise KlineageError(f"{walk.id} has no accepted step yet; accept at least one before sealing")
    backward = list(reversed(steps))  # simplest first
    naive = walk.kernel_at(backward[0].commit)
    report = _gated(walk, naive, None, "K0", on_progress, cancel)
    forward = [_naive_record(walk, backward[0], naive, report)]
    for number, (simpler, richer) in enumerate(zip(backward, backward[1:], strict=False), start=1):
        # The backward step that led from `richer` to `simpler` is recorded on `simpler`.
        before, after = walk.kernel_at(simpler.commit), walk.kernel_at(richer.commit)
        how = _how_derived(walk, simpler, before, after, cancel)
        report = _gated(walk, after, before, f"K{number} adds {simpler.action}", on_progress, cancel)
        forward.append(_transition(walk, simpler, richer, report, how))
    return tuple(walk.workspace.seal(walk.id, forward, expected_head=steps[-1].commit))


def _gated(
    walk: Walk,
    kernel: Kernel,
    baseline: Kernel | None,
    what: str,
    on_progress: Callable[[str], None] | None,
    cancel: threading.Event | None,
) -> Report:
    if on_progress is not None:
        on_progress(what)
    meta = walk.workspace.meta(walk.id)
    report = gate(GateRequest(kernel, walk.workload, meta.platform, baseline=baseline), None, cancel)
    if cancel is not None and cancel.is_set():
        raise KlineageError("sealing was cancelled; nothing was written")
    if report.verdict is not Verdict.PASS:
        raise KlineageError(f"cannot seal {walk.id}: {what} does not pass the gate: {report.why}")
    return report


def _how_derived(
    walk: Walk, step: Step, before: Kernel, after: Kernel, cancel: threading.Event | None
) -> str:
    """``derived`` when the rule's own forward edit reproduces ``after``, else ``replayed``."""
    from klineage.proposer import rules

    if not step.proposer.startswith("rules"):
        return "replayed"
    try:
        derived = rules.derive(step.proposer, before, step.locus, dict(step.settings))
    except rules.NotApplicable:
        return "replayed"
    if derived.source == after.source and derived.config == after.config:
        return "derived"
    meta = walk.workspace.meta(walk.id)
    report = gate(GateRequest(derived, walk.workload, meta.platform, baseline=after), None, cancel)
    matches = report.verdict is Verdict.PASS and report.effect in _MATCHES
    restored = set(rules.features(derived)) == set(rules.features(after))
    return "derived" if matches and restored else "replayed"


def _naive_record(walk: Walk, step: Step, kernel: Kernel, report: Report) -> ForwardRecord:
    meta = walk.workspace.meta(walk.id)
    record = StepRecord(
        subject=f"Start from the naive {meta.workload}",
        body="The simplest form that the walk reached; every later commit adds one optimization.",
        direction="forward",
        action="",
        locus="",
        removes=(),
        settings={},
        proposer="",
        decision="sealed",
        why="",
        kernel=report.kernel,
        platform=report.platform,
        **records.gate_fields(report),
    )
    return ForwardRecord(record, walk.workspace.read(step.commit), report_to_json(report))


def _transition(walk: Walk, simpler: Step, richer: Step, report: Report, how: str) -> ForwardRecord:
    """The forward commit that adds what the backward step recorded on ``simpler`` removed."""
    record = StepRecord(
        subject=forward_title(simpler.subject),
        body=simpler.body,
        direction="forward",
        action=simpler.action,
        locus=simpler.locus,
        removes=(),
        settings=dict(simpler.settings),
        proposer=simpler.proposer,
        decision="sealed",
        why=simpler.why,
        kernel=report.kernel,
        platform=report.platform,
        forward=how,
        **records.gate_fields(report),
    )
    record = replace(record, adds=simpler.removes)
    return ForwardRecord(record, walk.workspace.read(richer.commit), report_to_json(report))


def forward_title(backward: str) -> str:
    """``Remove software pipelining`` becomes ``Add software pipelining``; other titles are quoted as undone."""
    if backward.startswith("Remove "):
        return "Add " + backward.removeprefix("Remove ")
    return f"Undo: {backward}"
