"""Sealing: the accepted backward steps turned round into a forward lineage, naive form first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.gate import Effect, GateRequest, Report, Verdict, gate, report_to_json
from klineage.kernel import Kernel
from klineage.lineage import ForwardRecord, Step, StepRecord
from klineage.walk import records
from klineage.workload import WORKLOAD_FILE

if TYPE_CHECKING:
    from klineage.walk.session import Walk

#: Profile effects under which a derived kernel counts as matching the state that it should reproduce.
_MATCHES = (Effect.NEUTRAL, Effect.FASTER, Effect.SAME_WORK, Effect.LESS_WORK)


@dataclass(frozen=True)
class _Sealing:
    """What every transition of one seal shares."""

    walk: Walk
    platform: str
    on_progress: Callable[[str], None] | None
    cancel: threading.Event | None

    def gated(self, kernel: Kernel, baseline: Kernel, what: str) -> Report:
        if self.on_progress is not None:
            self.on_progress(what)
        report = gate(
            GateRequest(kernel, self.walk.workload, self.platform, baseline=baseline), None, self.cancel
        )
        if self.cancel is not None and self.cancel.is_set():
            raise KlineageError("sealing was cancelled; nothing was written")
        return report


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
    head = steps[-1].commit
    sealing = _Sealing(walk, walk.workspace.meta(head).platform, on_progress, cancel)
    backward = list(reversed(steps))  # the simplest first
    forward = [
        _transition(sealing, number, simpler, richer)
        for number, (simpler, richer) in enumerate(pairwise(backward), start=1)
    ]
    return tuple(walk.workspace.seal(walk.id, forward, expected_head=head))


def _transition(sealing: _Sealing, number: int, simpler: Step, richer: Step) -> ForwardRecord:
    """The forward edge that puts back what the backward step, recorded on ``simpler``, removed."""
    walk = sealing.walk
    before, after = walk.kernel_at(simpler.commit), walk.kernel_at(richer.commit)
    what = f"K{number} adds {simpler.action}"
    report = sealing.gated(after, before, what)
    if report.verdict is not Verdict.PASS:
        raise KlineageError(f"cannot seal {walk.id}: {what} does not pass the gate: {report.why}")
    record = StepRecord(
        subject=_title(simpler),
        body=simpler.body,
        action=simpler.action,
        locus=simpler.locus,
        adds=simpler.removes,
        settings=simpler.settings,
        proposer=simpler.proposer,
        who=simpler.who,
        why=simpler.why,
        kernel=after.hash,
        platform=sealing.platform,
    )
    return ForwardRecord(
        records.with_gate(record, report),
        {after.filename: after.source, WORKLOAD_FILE: walk.workload.source},
        forward=_how(sealing, simpler, before, after),
        reverses=simpler.commit,
        report_json=report_to_json(report),
        meta=walk.workspace.meta(richer.commit),
    )


def _how(sealing: _Sealing, step: Step, before: Kernel, after: Kernel) -> str:
    """``derived`` when the rule's own forward edit reproduces ``after``, else ``replayed``."""
    from klineage.proposer import rules

    rule = _rule(step)
    if rule is None:
        return "replayed"
    try:
        source = rules.derive(rule, before, step.locus, dict(step.settings))
    except rules.NotApplicable:
        return "replayed"
    derived = replace(after, source=source)
    if derived == after:
        return "derived"
    if set(rules.features(derived)) != set(rules.features(after)):
        return "replayed"
    report = sealing.gated(derived, after, f"the derived {step.action} against the recorded one")
    matches = report.verdict is Verdict.PASS and report.effect in _MATCHES
    return "derived" if matches else "replayed"


def _title(step: Step) -> str:
    """The imperative of the forward step: the rule's own, else that of a person's step turned round."""
    from klineage.proposer import rules

    rule = _rule(step)
    return (rule and rules.forward_title(rule)) or f"Undo: {step.subject}"


def _rule(step: Step) -> str | None:
    """The rule behind a step, also where a person went over its proposal; None where there is none."""
    _, found, name = step.proposer.rpartition("rules:")
    return f"rules:{name}" if found else None
