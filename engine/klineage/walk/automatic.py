"""Walking without a person: propose, gate, accept what passes, reject what does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.gate import GateEvent, Report, Verdict
from klineage.lineage import Step
from klineage.proposer.candidate import Candidate
from klineage.walk.session import Walk


@dataclass(frozen=True)
class WalkLimits:
    """When to stop early. ``steps`` counts accepted steps; None means no limit."""

    steps: int | None = None
    rejections_in_a_row: int = 20


@dataclass(frozen=True)
class WalkOutcome:
    """What an automatic walk did, and why it stopped."""

    accepted: tuple[Step, ...]
    rejected: tuple[Step, ...]
    stopped: str  # "simplest form", "step limit", "rejection limit", "cancelled"


def walk_automatically(
    walk: Walk,
    limits: WalkLimits = WalkLimits(),
    on_step: Callable[[Step], None] | None = None,
    on_event: Callable[[Candidate | None, GateEvent], None] | None = None,
    cancel: threading.Event | None = None,
) -> WalkOutcome:
    """Accept what passes until no proposal is left.

    Every decision is on disk before the next gate starts, so a killed walk resumes at the step it
    had reached. Raises KlineageError when the expert itself does not pass its gate, since a lineage
    of a wrong kernel teaches nothing.
    """
    _check_expert(walk, on_event, cancel)
    accepted: list[Step] = []
    rejected: list[Step] = []
    in_a_row = 0
    while True:
        if cancel is not None and cancel.is_set():
            return WalkOutcome(tuple(accepted), tuple(rejected), "cancelled")
        if limits.steps is not None and len(accepted) >= limits.steps:
            return WalkOutcome(tuple(accepted), tuple(rejected), "step limit")
        if in_a_row >= limits.rejections_in_a_row:
            return WalkOutcome(tuple(accepted), tuple(rejected), "rejection limit")
        state = walk.state()
        candidate = next((c for c in walk.candidates() if state.rejection_of(c) is None), None)
        if candidate is None:
            return WalkOutcome(tuple(accepted), tuple(rejected), "simplest form")
        report = walk.gate(candidate, _for_candidate(candidate, on_event), cancel)
        if cancel is not None and cancel.is_set():
            continue
        _stop_if_gate_is_broken(report)
        if report.verdict is Verdict.PASS:
            step = walk.accept(candidate, report)
            accepted.append(step)
            in_a_row = 0
        else:
            step = walk.reject(candidate, report, why=report.why)
            rejected.append(step)
            in_a_row += 1
        if on_step is not None:
            on_step(step)


def _for_candidate(
    candidate: Candidate | None, on_event: Callable[[Candidate | None, GateEvent], None] | None
) -> Callable[[GateEvent], None] | None:
    return None if on_event is None else lambda event: on_event(candidate, event)


def _check_expert(
    walk: Walk,
    on_event: Callable[[Candidate | None, GateEvent], None] | None,
    cancel: threading.Event | None,
) -> None:
    """Gate the head once before anything is built on it; a passing report in the notes is enough."""
    head = walk.state().head
    if any(r.verdict is Verdict.PASS and r.kernel == head.kernel for r in walk.reports(head.commit)):
        return
    report = walk.gate_commit(head.commit, _for_candidate(None, on_event), cancel)
    if cancel is not None and cancel.is_set():
        return
    _stop_if_gate_is_broken(report)
    if report.verdict is not Verdict.PASS:
        raise KlineageError(
            f"{walk.id}: the kernel does not pass its own gate, so it cannot be walked: {report.why}"
        )


def _stop_if_gate_is_broken(report: Report) -> None:
    """A gate that could not judge must not be taken for a rejection of the kernel."""
    if report.verdict in (Verdict.ERROR, Verdict.UNSUPPORTED):
        raise KlineageError(f"the gate could not judge this kernel: {report.why}")
