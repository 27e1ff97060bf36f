"""Lifting again: what is new is added to a card, and what a person has written, changed or taken out stays.

What the lift once said is not kept anywhere: it is what the lift says of the evidence that the card cites already. Where the
card differs from that, a person was there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from klineage.errors import KlineageError
from klineage.skill.anchors.finding import find_anchor
from klineage.skill.anchors.making import acted, common_anchor
from klineage.skill.card import Anchor, Card, Contract, Effect, Evidence, Precondition, Risk, Scope
from klineage.skill.contract import consistent, derived
from klineage.skill.lift.citing import keys_of
from klineage.skill.lift.groups import Group
from klineage.skill.lift.source import Source
from klineage.skill.lift.structural import lifted
from klineage.skill.transitions import Rejected, Transition
from klineage.skill.trial import trust_of


@dataclass(frozen=True)
class Update:
    """What lifting again makes of a card.

    card:   the card as it becomes; equal to what it was when there is nothing new.
    added:  what is new, in a few words each. kept: fields where a person's word stands against the lift's.
    faults: what the contract says that a cited transition does not keep; a person's contract stays all the same.
    """

    card: Card
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def updated(current: Card, group: Group, source: Source, dropped: Iterable[str] = ()) -> Update:
    """The card with what the group shows beyond the evidence that it cites.

    dropped: commits that it once cited and no longer does, because a person has taken them out.
    """
    known = keys_of(current.evidence).keys()
    unwanted = set(dropped) - known
    group = _part(group, lambda commit: commit not in unwanted)
    told = _part(group, lambda commit: commit in known)
    if not group.transitions:
        return Update(current)
    new = lifted(group, source, current.id, current.evidence)
    base = new if told == group else None
    if base is None and told.transitions:
        base = lifted(told, source, current.id, current.evidence)
    card = replace(
        current,
        intent=_said(current.intent, base.intent if base else None, new.intent),
        notes=_said(current.notes, base.notes if base else None, new.notes),
        anchor=_anchor(current, new, group, told),
        contract=_contract(current, new, group, told, source),
        scope=_scope(current, base, new),
        preconditions=_preconditions(current, base, new),
        effects=_effects(current, base, new),
        risks=_risks(current, base, new),
        evidence=new.evidence,
    )
    kept = ["intent"] if base is not None and card.intent not in (base.intent, new.intent) else []
    kept += ["anchor"] if card.anchor.query and not _finds_all(card.anchor.query, group) else []
    return Update(
        card, tuple(_added(current, card)), tuple(kept), consistent(card.contract, group.transitions)
    )


def _said(own: str, before: str | None, now: str) -> str:
    """What the lift says now, where the card says what it said before; else what the card says."""
    return now if own == before else own


def _part(group: Group, wanted: Callable[[str], bool]) -> Group:
    transitions: tuple[Transition, ...] = tuple(t for t in group.transitions if wanted(t.commit))
    rejected: tuple[Rejected, ...] = tuple(r for r in group.rejected if wanted(r.commit))
    return replace(group, transitions=transitions, rejected=rejected)


def _anchor(current: Card, new: Card, group: Group, told: Group) -> Anchor:
    """The anchor as it is where it finds every place, or a person has written it: trials rest on it."""
    own = current.anchor
    earlier = [
        common_anchor(part, by_rule=said) for part in _parts(current, told) for said in (True, False)
    ]  # fmt: skip
    if _finds_all(own.query, group) or own.query not in {anchor.query for anchor in earlier}:
        return own
    by_person = own.text not in {anchor.text for anchor in earlier}
    return Anchor(own.text if by_person else new.anchor.text, new.anchor.query)


def _parts(current: Card, told: Group) -> Iterable[Sequence[Transition]]:
    """The transitions that the card may have been lifted from at first: lifts add their evidence at the end."""
    order = {commit: number for number, commit in enumerate(keys_of(current.evidence))}
    ordered = sorted(told.transitions, key=lambda transition: order[transition.commit])
    return (ordered[:number] for number in range(1, len(ordered) + 1))


def _finds_all(query: str, group: Group) -> bool:
    """Whether a query finds the place of every transition; one that cannot be asked finds none."""
    try:
        return bool(query) and all(acted(t).place in find_anchor(query, t.before) for t in group.transitions)
    except KlineageError:
        return False


def _contract(current: Card, new: Card, group: Group, told: Group, source: Source) -> Contract:
    """The contract as it is where every transition keeps it and needs it, or a person has written it."""
    own = current.contract
    if not consistent(own, group.transitions) and set(own.requires) <= set(new.contract.requires):
        return own
    earlier = (derived(part, source.pool) for part in _parts(current, told))
    return new.contract if any(own == contract for contract in earlier) else own


def _scope(current: Card, base: Card | None, new: Card) -> Scope:
    """Where it was seen now, beside what a person has added; what a person has taken out stays out."""

    def joined(name: str) -> tuple[str, ...]:
        own, seen = getattr(current.scope, name), getattr(new.scope, name)
        before = getattr(base.scope, name) if base is not None else ()
        return own if "*" in own else tuple(dict.fromkeys([*own, *(w for w in seen if w not in before)]))

    return Scope(*(joined(name) for name in ("workloads", "surfaces", "platforms", "prior_actions")))


def _preconditions(current: Card, base: Card | None, new: Card) -> tuple[Precondition, ...]:
    """Those of the card, with further evidence where they are as the lift says them, and those that are new."""
    said = {one.text: one for one in new.preconditions}
    known = {one.text for one in base.preconditions} if base is not None else set()
    refuted = {
        text for text in known if text not in said
    }  # what the lift said, and further evidence speaks against
    own = [
        _with_evidence(one, said.get(one.text)) for one in current.preconditions if one.text not in refuted
    ]
    known |= {one.text for one in own}
    numbers = [int(match[1]) for one in own if (match := re.fullmatch(r"p(\d+)", one.key))]
    more = [one for one in new.preconditions if one.text not in known]
    first = 1 + max(numbers, default=0)
    return (*own, *(replace(one, key=f"p{number}") for number, one in enumerate(more, start=first)))


def _with_evidence(one: Precondition, said: Precondition | None) -> Precondition:
    """With what further transitions say of it, unless a person has written it or its check."""
    if said is None or one.origin == "person" or one.check != said.check:
        return one
    evidence = tuple(dict.fromkeys([*one.evidence, *said.evidence]))
    return replace(one, evidence=evidence, doubt=said.doubt or one.doubt)


def _effects(current: Card, base: Card | None, new: Card) -> tuple[Effect, ...]:
    """Those of the card and those that are new; one that was taken out comes back only for another platform."""
    known = {_claim(effect) for effect in current.effects}
    platforms = {effect.platform for effect in current.effects}
    once = {_claim(e) for e in base.effects if e.platform in platforms} if base is not None else set()
    return (*current.effects, *(e for e in new.effects if _claim(e) not in known | once))


def _claim(effect: Effect) -> tuple[object, ...]:
    """What an effect speaks of, whatever it says of it."""
    trust = trust_of(effect.quantity, effect.trust)
    return (effect.quantity, effect.platform, effect.workload, effect.size, effect.position, trust)


def _risks(current: Card, base: Card | None, new: Card) -> tuple[Risk, ...]:
    """Those of the card, said anew where the lift said them and knows more now, and those that are new."""
    once = {risk.text for risk in base.risks} if base is not None else set()
    topics = {_topic(risk): risk for risk in new.risks}
    own = [topics.get(_topic(risk), risk) if risk.text in once else risk for risk in current.risks]
    had = {_topic(risk) for risk in (*current.risks, *(base.risks if base is not None else ()))}
    return (*own, *(risk for risk in new.risks if _topic(risk) not in had))


def _topic(risk: Risk) -> tuple[str, str]:
    """What a risk is about: its sentence up to where the instances begin; of a rejected attempt all of it."""
    if risk.origin == "gate" and not risk.text.startswith("An attempt"):
        return risk.origin, re.split(r" as a step of |: ", risk.text, maxsplit=1)[0]
    return risk.origin, risk.text


def _added(before: Card, after: Card) -> Iterable[str]:
    parts: Sequence[tuple[str, Sequence[Evidence | Precondition | Effect | Risk], Sequence[object]]] = (
        ("evidence", after.evidence, before.evidence),
        ("precondition", after.preconditions, before.preconditions),
        ("effect", after.effects, before.effects),
        ("risk", after.risks, before.risks),
    )
    for name, now, then in parts:
        number = len(now) - len(then)
        if number > 0:
            yield f"{number} {name}{'s' if number > 1 and name != 'evidence' else ''}"
    for name in ("intent", "anchor", "contract", "scope", "notes"):
        if getattr(before, name) != getattr(after, name):
            yield f"another {name}"
