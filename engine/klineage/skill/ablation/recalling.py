"""What the cards of a library show of an ablation: the gates that they cite, put back in their places. Nothing is gated.

An ablation writes into cards what is shown to be better, with its reports. The kernels of a report say where it was
made: a baseline that is the naive form is *first*, a kernel that is the expert is *last*.
"""

from __future__ import annotations

from collections.abc import Iterable

from klineage.gate import Report, report_from_json
from klineage.lineage import Workspace
from klineage.skill.ablation.measuring import Ablation, Position, Row, Worth
from klineage.skill.card import Card
from klineage.skill.library import Library
from klineage.skill.transitions import Transition, transitions
from klineage.skill.trial import gain_of, gains_of


def recalled(workspace: Workspace, library: Library, lineage_id: str) -> Ablation:
    """The matrix of a sealed lineage as far as its own steps and the cards that cite it say; ``needs`` is not known.

    Raises KlineageError for a lineage that is not sealed, or evidence that is not where a card says.
    """
    steps = transitions(workspace, lineage_id)
    cards = [entry.card for entry in library.cards() if entry.card is not None]
    rows = tuple(_row(steps, at, cards, library) for at in range(len(steps)))
    return Ablation(lineage_id, steps[0].workload.name, steps[-1].platform, rows)


def _row(steps: tuple[Transition, ...], at: int, cards: Iterable[Card], library: Library) -> Row:
    transition, naive, expert = steps[at], steps[0].before.hash, steps[-1].after.hash
    found = _reports(transition, cards, library)
    own = [report for report in transition.reports if report.baseline == transition.before.hash]
    in_order = _worth("in-order", f"K{at}", [r for r in own if r.kernel == transition.after.hash])
    first = _worth("first", "K0", [r for r in found if r.baseline == naive])
    last = _worth("last", f"K{len(steps)}", [r for r in found if r.kernel == expert])
    if at == 0 and not first.state:
        first = _worth("first", "K0", own)
    if at == len(steps) - 1 and not last.state:
        last = _worth("last", f"K{len(steps)}", own)
    step = transition.step
    return Row(
        step.number, step.action, transition.rule, transition.commit, transition.added, first, in_order, last
    )  # fmt: skip


def _reports(transition: Transition, cards: Iterable[Card], library: Library) -> list[Report]:
    """The gates of ablations that the cards of a transition cite, oldest first."""
    named = [
        item.report
        for card in cards
        if any(item.commit == transition.commit and item.kind == "transition" for item in card.evidence)
        for item in card.evidence
        if item.kind == "ablation"
    ]
    return [report_from_json(library.report(name)) for name in dict.fromkeys(named)]


def _worth(position: Position, state: str, reports: Iterable[Report]) -> Worth:
    """What the latest report with a number says; nothing where there is none."""
    counted = [(report, gains) for report in reports if (gains := gains_of(report))]
    if not counted:
        return Worth(position, "")
    report, gains = counted[-1]
    return Worth(position, state, gain_of(report), gains, report=report)
