"""The structural lift: a card out of a group of transitions, with no model and nothing that the evidence does not show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import log

from klineage.skill.anchors.making import common_anchor
from klineage.skill.card import Card, Evidence, Scope
from klineage.skill.contract import derived
from klineage.skill.lift.carrier import carrier_of
from klineage.skill.lift.citing import cited
from klineage.skill.lift.effects import effects_of, gains_shown, risks_of
from klineage.skill.lift.groups import Group
from klineage.skill.lift.preconditions import preconditions_of, rule_named
from klineage.skill.lift.source import Source
from klineage.skill.transitions import Transition


def lifted(group: Group, source: Source, card_id: str, known: Iterable[Evidence] = ()) -> Card:
    """The card of one group as a hypothesis; every claim in it names the transitions and attempts that show it.

    known: evidence that a card cites already, whose keys and entries are kept.
    """
    found = cited(group, known)
    contract = derived(group.transitions, source.pool)
    shown = carried(group.transitions)
    return Card(
        id=card_id,
        intent=intent_of(group),
        action=group.action,
        surface=group.surface,
        locus=group.locus,
        rule=f"{group.surface}.{group.rule}" if group.rule else "",
        scope=scope_of(group),
        contract=contract,
        preconditions=preconditions_of(group, contract, found),
        effects=effects_of(group, found),
        risks=risks_of(group, found),
        evidence=found.evidence,
        anchor=common_anchor(group.transitions),
        carrier=carrier_of(shown, found.of(shown.commit)),
        notes=notes_of(group, shown),
    )


def intent_of(group: Group) -> str:
    """What is done and to what end: the title of the step, and the first clause of its reasoning that says more."""
    step = group.transitions[0].step
    rule = rule_named(group)
    return in_short(rule.adds, rule.rationale) if rule is not None else in_short(step.subject, step.body)


def in_short(title: str, reasoning: str) -> str:
    """``Fuse the two kernels: the intermediate is used while it is still in registers.``"""
    title = title.strip().rstrip(".")
    reason = _first_clause(reasoning, title)
    return f"{title}: {reason[:1].lower()}{reason[1:]}." if reason else f"{title}."


def _first_clause(text: str, title: str) -> str:
    """The first clause with a word of weight that the title has not: another one would say it twice."""
    clauses = (clause.strip() for clause in re.split(r"[;:.](?:\s|$)", " ".join(text.split())))
    said = _stems(title)
    return next((clause for clause in clauses if _stems(clause) - said), "")


def _stems(text: str) -> set[str]:
    """Words of four letters and more, by their first four: ``keep`` and ``keeps`` are one."""
    return {word[:4] for word in re.findall(r"\w{4,}", text.lower())}


def scope_of(group: Group) -> Scope:
    """Where it was seen. Whatever lies beyond is for a trial or a person to say."""
    return Scope(
        workloads=tuple(sorted({t.workload.name for t in group.transitions})),
        surfaces=(group.surface,),
        platforms=tuple(sorted({t.platform for t in group.transitions})),
    )


def carried(transitions: Sequence[Transition]) -> Transition:
    """The transition that shows the change best: the one that gained most; of those that gained nothing the shortest."""

    def worth(transition: Transition) -> tuple[float, int]:
        gains = [log(g.gain) for report in transition.comparisons for g in gains_shown(report)]
        grown = len(transition.after.source) - len(transition.before.source)
        return max(gains, default=0.0), -abs(grown)

    return max(transitions, key=worth)


def notes_of(group: Group, shown: Transition) -> str:
    """What the change does and what is lost without it, and how the card came about, for whoever reads it next."""
    names = ", ".join(t.name for t in group.transitions)
    replayed = [t.name for t in group.transitions if t.step.forward == "replayed"]
    rule = rule_named(group)
    lines = [" ".join(rule.rationale.split()), ""] if rule is not None else []
    lines.append(f"Lifted by structure, without a model, from {names}. The code is that of {shown.name}.")
    if replayed:
        lines.append(
            f"Only replayed, so nobody has made it without seeing the difference: {', '.join(replayed)}."
        )
    return "\n".join(lines)
