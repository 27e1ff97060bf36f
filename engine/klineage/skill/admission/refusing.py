"""What is no trial of a card: a target that it cannot be put on, and an edit that is another one."""

from __future__ import annotations

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.skill.admission.criterion import declared
from klineage.skill.admission.target import Target
from klineage.skill.card import Card
from klineage.skill.contract import is_there, seen_from


def refuse(card: Card, target: Target, *, anyway: bool = False) -> None:
    """Raises KlineageError where a trial would say nothing about the card."""
    if card.status == "retired":
        raise KlineageError(f"{card.id} is retired ({card.retired}); it is not tried any more")
    if not declared(card):
        raise KlineageError(
            f"{card.id} declares no effect beyond noise, so there is nothing to reproduce; lift or ablate it first"
        )
    if problem := unfit(card, target):
        raise KlineageError(f"{card.id} cannot be tried on {target.name}: {problem}")
    fails = [] if anyway else broken_preconditions(card, target)
    if fails:
        raise KlineageError(
            f"{card.id} says of itself that it does not hold on {target.name}: {'; '.join(fails)}"
        )


def unfit(card: Card, target: Target) -> str:
    """What the contract misses or finds in the way on a target; empty when nothing."""
    entry = target.kernel.entry.partition("+")[0]
    seen = seen_from(f"{target.kernel.filename}::{entry}", target.features)
    names = {feature.name for feature in target.features}
    missing = [
        f.name
        for f in card.contract.requires
        if f.where == "hardware" and not is_there(f, seen, target.platform)
    ]
    missing += [f.name for f in card.contract.requires if f.where != "hardware" and f.name not in names]
    if missing:
        return f"it needs {' and '.join(dict.fromkeys(missing))} first"
    present = [f.name for f in card.contract.provides if f.name in names]
    if present:
        return f"it has {' and '.join(dict.fromkeys(present))} already (--less {present[0]} takes that out first)"
    return ""


def broken_preconditions(card: Card, target: Target) -> list[str]:
    """The checks of the card that fail on a target, a sentence each; what cannot be known fails nothing."""
    from klineage.skill.checks.checking import check
    from klineage.skill.checks.facts import facts

    checked = [p for p in card.preconditions if p.check]
    if not checked:
        return []
    about = facts(target.kernel, target.workload, target.platform, settings=card.carrier.settings)
    answers = [(p, check(p.check, about)) for p in checked]
    return [f"{p.key}, {p.text} ({answer.why})" for p, answer in answers if answer.state == "fails"]


def other_than_the_card(card: Card, target: Target, kernel: Kernel) -> str:
    """Why an edit is not this card's: it changes nothing, or does not bring what the card provides, or more than that."""
    from klineage.proposer.rules import features

    if kernel == target.kernel:
        return "the edit changes nothing"
    had, has = {f.name for f in target.features}, {f.name for f in features(kernel)}
    provides = {f.name for f in card.contract.provides}
    if provides - has:
        return f"the edit does not bring in {', '.join(sorted(provides - has))}, which the card provides"
    if has - had - provides:
        return f"the edit brings in {', '.join(sorted(has - had - provides))} too, which the card does not provide"
    if had - has:
        return f"the edit takes {', '.join(sorted(had - has))} out"
    return ""
