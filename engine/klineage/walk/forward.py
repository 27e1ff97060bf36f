"""Sealing: the accepted backward steps turned round into a forward lineage, naive form first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.gate import Verdict, report_to_json
from klineage.lineage import ForwardRecord, Step, StepRecord
from klineage.walk import deriving, records
from klineage.walk.deriving import Derivation, Deriving
from klineage.walk.putting_back import Ask, forward_title
from klineage.workload import WORKLOAD_FILE

if TYPE_CHECKING:
    from klineage.proposer.base import OnProposerEvent, Proposer
    from klineage.walk.session import Walk


def seal(
    walk: Walk,
    on_progress: Callable[[str], None] | None = None,
    cancel: threading.Event | None = None,
    ask: Ask | None = None,
) -> tuple[Step, ...]:
    """Write ``lineage/<id>``.

    Each forward state is gated against the one before it, and each transition is derived again on the simpler
    state (see ``deriving.derive``) by the rule, the model, the command or the person that can, without looking at
    the backward diff. Where none of them comes to the state, the transition is ``replayed``: the recorded inverse,
    kept and marked, with the reason. ``ask`` says who may be asked anew; by default nobody is.

    Raises KlineageError when nothing was accepted yet, a state fails its gate, or on cancel.
    """
    steps = _steps(walk)
    head = steps[-1].commit
    with Deriving(walk, walk.workspace.meta(head).platform, ask, None, on_progress, None, cancel) as shared:
        forward = [_transition(shared, *edge) for edge in _edges(steps)]
    return tuple(walk.workspace.seal(walk.id, forward, expected_head=head))


def derivations(
    walk: Walk,
    wanted: Step | None = None,
    *,
    ask: Ask | None = None,
    only: Proposer | None = None,
    source: bytes | None = None,
    renew: bool = False,
    on_progress: Callable[[str], None] | None = None,
    on_event: OnProposerEvent | None = None,
    cancel: threading.Event | None = None,
) -> tuple[Derivation, ...]:
    """How each accepted step, or the wanted one, would be sealed: derived by whom, or replayed and why.

    only:   ask this proposer, and nobody else. source: a person's own edit, for one step.
    Nothing of the lineage changes but the edits that are kept. Raises KlineageError when nothing was accepted.
    """
    steps = _steps(walk)
    platform = walk.workspace.meta(steps[-1].commit).platform
    with Deriving(walk, platform, ask, only, on_progress, on_event, cancel, renew) as shared:
        return tuple(
            deriving.derive(shared, number, simpler, richer, source)
            for number, simpler, richer in _edges(steps)
            if wanted is None or simpler.commit == wanted.commit
        )


def _steps(walk: Walk) -> Sequence[Step]:
    steps = walk.workspace.history(walk.id)
    if len(steps) < 2:
        raise KlineageError(f"{walk.id} has no accepted step yet; accept at least one before sealing")
    return steps


def _edges(steps: Sequence[Step]) -> list[tuple[int, Step, Step]]:
    """(number of the richer state, simpler, richer), the simplest first."""
    return [(n, *pair) for n, pair in enumerate(pairwise(reversed(steps)), start=1)]


def _transition(shared: Deriving, number: int, simpler: Step, richer: Step) -> ForwardRecord:
    """The forward edge that puts back what the backward step, recorded on ``simpler``, removed."""
    walk = shared.walk
    before, after = walk.kernel_at(simpler.commit), walk.kernel_at(richer.commit)
    what = f"K{number} adds {simpler.action}"
    report = shared.transition(after, before, what)
    if report.verdict is not Verdict.PASS:
        raise KlineageError(f"cannot seal {walk.id}: {what} does not pass the gate: {report.why}")
    found = deriving.derive(shared, number, simpler, richer)
    record = StepRecord(
        subject=forward_title(simpler),
        body=simpler.body,
        action=simpler.action,
        locus=simpler.locus,
        adds=simpler.removes,
        settings=simpler.settings,
        proposer=simpler.proposer,
        who=simpler.who,
        why=simpler.why,
        kernel=after.hash,
        platform=shared.platform,
    )
    return ForwardRecord(
        records.with_gate(record, report),
        {after.filename: after.source, WORKLOAD_FILE: walk.workload.source},
        forward=found.how,
        reverses=simpler.commit,
        report_json=report_to_json(report),
        meta=walk.workspace.meta(richer.commit),
        found=found.why,
    )
