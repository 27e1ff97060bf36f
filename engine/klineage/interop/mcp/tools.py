"""What each tool says, without the protocol: a text that an agent reads, and the same as an object."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from klineage.errors import KlineageError
from klineage.gate import GateEvent, GateRequest, Report, Verdict, gate
from klineage.gate.policy import Phase
from klineage.interop.mcp.desk import Desk, Named
from klineage.interop.retrieved import hit_lines, hit_row, lines, retrieved_row
from klineage.interop.told import sentence, told
from klineage.lineage import Step, Workspace
from klineage.lineage.message import paragraphs
from klineage.numbers import three
from klineage.skill.retrieval import hit_of
from klineage.skill.retrieval import retrieve as retrieved_from
from klineage.skill.retrieval.index import row_of
from klineage.skill.retrieval.paths import order_of, paths
from klineage.skill.retrieval.target import Target
from klineage.walk import Walk
from klineage.walk.opening import default_platform

_LONGEST_LOG = 4000  # characters of what compilers and stages said


@dataclass(frozen=True)
class Said:
    """An answer: ``text`` for the agent, ``data`` for programs."""

    text: str
    data: dict[str, Any]


def retrieve(desk: Desk, target: Target, k: int, near: int, hypotheses: bool) -> Said:
    """The cards that hold for a target, those that do not yet, and the ways on."""
    index = desk.index()
    found = retrieved_from(index, target, k=k, near=near, hypotheses=hypotheses)
    ways = paths(index, target, order_of(*desk.libraries), hypotheses=hypotheses)
    return Said(_text(lines(found, ways, "hypotheses")), retrieved_row(found, ways))


def show(desk: Desk, card_id: str) -> Said:
    """A card of about 2,000 tokens."""
    card = desk.card(card_id)
    return Said(told(card), {"id": card.id, "status": card.status, "markdown": told(card)})


def check(desk: Desk, card_id: str, target: Target) -> Said:
    """Whether one card holds for a target."""
    hit = hit_of(row_of(desk.card(card_id)), target)
    verdict = "does not hold here" if hit.needs else "holds here, as far as it can be told"
    unknown = [one for one in hit.checked if one.state == "unknown"]
    asked = len([one for one in hit.row.conditions if one.check])
    prose = len(hit.row.conditions) - asked
    rest = f"; {prose} preconditions are prose alone and are yours to judge" if prose else ""
    head = (
        f"{card_id} {verdict} ({target.stands_at}): {asked - len(unknown)} of {asked} checks answered{rest}"
    )
    return Said(_text([head, *hit_lines(hit)]), hit_row(hit))


def gated(
    desk: Desk,
    kernel: Named,
    baseline: Named,
    workload: str,
    platform: str,
    phase: Phase,
    on_event: Callable[[GateEvent], None],
    cancel: threading.Event,
) -> Report:
    """Gate a kernel. A bad kernel is a verdict; raises KlineageError for what cannot be read."""
    spec = desk.workload(workload)
    candidate = desk.kernel(kernel, spec)
    against = desk.kernel(baseline, spec) if baseline else None
    request = GateRequest(
        candidate, spec, platform or default_platform(candidate.surface), against, phase=phase
    )
    return gate(request, on_event, cancel)


def judged(report: Report) -> Said:
    """A report as an agent reads it: the verdict, what decided, every stage, and how it is known."""
    import msgspec

    decided = report.decisive.stage if report.decisive else ""
    head = f"{report.verdict.upper()}: {sentence(report.why)} ({report.trust}, {report.platform}, {report.phase})"
    stages = [
        f"{r.stage}: {r.verdict}{f', {r.effect}' if r.effect else ''}, {sentence(r.summary)}"
        for r in report.stages
    ]
    log = report.log if report.verdict is not Verdict.PASS else ""
    weak = [f"weak oracle: {sentence(reason)}" for reason in report.oracle_reasons]
    text = _text([head, *stages, *weak, *([_cut(paragraphs(log))] if log else [])])
    data: dict[str, Any] = msgspec.to_builtins(report)
    return Said(
        text, {"verdict": str(report.verdict), "why": report.why, "decided_by": decided, "report": data}
    )


def lineage(desk: Desk, lineage_id: str, step: str) -> Said:
    """The lineages of the workspace, the steps of one, or one step with its kernel."""
    with closing(desk.opened()) as workspace:
        if not lineage_id:
            return _lineages(workspace)
        walk = Walk(workspace, lineage_id)
        steps = tuple(walk.forward()) or walk.state().steps
        forward = bool(walk.forward())
        if step:
            return _step(walk, _found(lineage_id, steps, step, forward))
        rows = [_row(one, forward) for one in steps]
        order = (
            "the naive form first"
            if forward
            else "not sealed: the expert first, each step takes one optimization out"
        )
        text = [f"{lineage_id}, {order}", *(_line(one, forward) for one in steps)]
        return Said(_text(text), {"id": lineage_id, "sealed": forward, "steps": rows})


def _lineages(workspace: Workspace) -> Said:
    found = workspace.lineages()
    rows = [
        {
            "id": one.id,
            "title": one.title,
            "steps": one.steps,
            "sealed": one.sealed,
            "problem": one.problem or None,
        }
        for one in found
    ]
    text = [
        f"{one.id}: {sentence(one.problem or one.title)}, {one.steps} steps{', sealed' if one.sealed else ''}"
        for one in found
    ]
    return Said(_text(text or ["this workspace has no lineages"]), {"lineages": rows})


def _found(lineage_id: str, steps: Sequence[Step], name: str, forward: bool) -> Step:
    for one in steps:
        if name in (str(one.number), _name(one, forward)) or (
            len(name) >= 4 and one.commit.startswith(name.lower())
        ):
            return one
    known = ", ".join(_name(one, forward) for one in steps)
    raise KlineageError(f"{lineage_id} has no step {name!r}; it has {known}")


def _step(walk: Walk, step: Step) -> Said:
    kernel = walk.kernel_at(step.commit)
    text = [_line(step, step.direction != "backward"), paragraphs(step.body), "", kernel.text]
    row = _row(step, step.direction != "backward")
    return Said(
        _text(text), {**row, "filename": kernel.filename, "entry": kernel.entry, "source": kernel.text}
    )


def _name(step: Step, forward: bool) -> str:
    return f"K{step.number}" if forward else str(step.number)


def _row(step: Step, forward: bool) -> dict[str, Any]:
    return {
        "name": _name(step, forward),
        "commit": step.commit,
        "subject": step.subject,
        "action": step.action,
        "locus": step.locus,
        "ratio": step.ratio,
        "profile": step.profile,
        "trust": step.trust,
        "platform": step.platform,
    }


def _line(step: Step, forward: bool) -> str:
    ratio = f"{three(step.ratio)}x the time of the step before " if step.ratio is not None else ""
    result = f"; {ratio}{sentence(step.profile)}, {step.trust}" if step.profile else ""
    return f"{_name(step, forward)} {step.commit[:10]} {sentence(step.subject)}{result}"


def budget(desk: Desk, lineage_id: str) -> Said:
    """What was spent, and what open calls may still cost."""
    from klineage.ledger import Ledger

    with closing(desk.opened()) as workspace:
        if lineage_id:
            workspace.head(lineage_id)
        total = Ledger.of(workspace.git.place).read().of(lineage_id).total()
    data = {
        "lineage": lineage_id or None,
        "calls": total.calls,
        "dollars": str(total.dollars),
        "open_calls": total.open,
        "open_at_most": str(total.at_most),
        "calls_without_a_price": total.unpriced,
    }
    still = f"; {total.open} not settled yet, at most ${total.at_most}" if total.open else ""
    free = f"; {total.unpriced} without a price" if total.unpriced else ""
    return Said(
        f"{total.calls} paid calls, ${total.dollars}{still}{free}; gates and retrieval cost nothing\n", data
    )


def _text(rows: Any) -> str:
    return "\n".join(rows).rstrip() + "\n"


def _cut(log: str) -> str:
    if len(log) <= _LONGEST_LOG:
        return log
    return f"{log[:_LONGEST_LOG].rpartition(chr(10))[0]}\n(... {len(log) - _LONGEST_LOG:,} more characters)"
