"""Going on from any state of a lineage as a lineage of its own."""

from __future__ import annotations

from klineage.errors import KlineageError
from klineage.gate import Verdict
from klineage.lineage import Step, branch_create
from klineage.walk import trust
from klineage.walk.opening import free_id
from klineage.walk.session import Walk


def branch(walk: Walk, step: Step, new_id: str = "") -> str:
    """Start a lineage that shares the history of ``walk`` up to ``step`` and goes on from there; returns its id.

    step: a step of the walk, a state of the sealed lineage that the walk still has, or a rejected attempt that
    passed its gate: there it is accepted. The lineage that it comes from is not touched, and its code is trusted
    as far as that of the first. Raises KlineageError for any other state, or when the id is taken.
    """
    workspace = walk.workspace
    if step.direction == "forward" or step.decision == "sealed":
        step = _same_on_walk(walk, step)
    elif step.decision == "rejected":
        _require_pass(walk, step)
    taken = {summary.id for summary in workspace.lineages()}
    name = new_id or free_id(f"{walk.id}-{step.number}", taken)
    branch_create(workspace, walk.id, step.commit, name)
    if walk.trusted():
        trust.trust(workspace, name)
    return name


def _same_on_walk(walk: Walk, sealed: Step) -> Step:
    found = [step for step in walk.state().steps if step.kernel == sealed.kernel]
    if not found:
        raise KlineageError(
            f"the walk of {walk.id} no longer has the state K{sealed.number}; "
            f"klineage log {walk.id} --backward lists what can be branched from"
        )
    return found[-1]


def _require_pass(walk: Walk, attempt: Step) -> None:
    reports = walk.reports(attempt.commit)
    if not any(r.verdict is Verdict.PASS and r.kernel == attempt.kernel for r in reports):
        raise KlineageError(
            f"the rejected attempt {attempt.subject!r} did not pass its gate ({attempt.why}), so nothing can be built on "
            "it; branch from a step of the walk"
        )
