"""The card's own rule, with the settings of its carrier, at the places of the target where it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.proposer import rules
from klineage.proposer.rules.fitting import Fit, fits
from klineage.skill.admission.materializer import Failed, Made, changed
from klineage.skill.admission.target import Target
from klineage.skill.anchors.finding import find_anchor
from klineage.skill.card import Card


@dataclass(frozen=True)
class ByRule:
    """Every way that the rule fits, those at the card's anchor first, each once."""

    name: str = "rules"

    def answers(self, card: Card, target: Target, failed: Callable[[], tuple[Failed, ...]]) -> Iterator[Made]:
        if not card.rule:
            yield Made(
                self.name, problem="the card names no rule that could put it on; try --with patch or a model"
            )
            return
        rule = card.rule.partition(".")[2] or card.rule
        by = f"rules:{rule}"
        reason, seen, answered = "", {target.kernel.source}, False
        for fit in _ordered(card, target, fits(rule, target.kernel, card.carrier.settings)):
            try:
                source = rules.derive(by, target.kernel, fit.locus, fit.settings)
            except rules.NotApplicable as error:
                reason = reason or error.reason
                continue
            if source not in seen:
                seen.add(source)
                kernel = changed(target, source)
                if _brings(card, target.kernel, kernel):
                    answered = True
                    yield Made(by, kernel, _told(fit))
        if not answered:
            reason = reason or "no edit that it makes brings in what the card provides"
            yield Made(by, problem=f"the rule fits nowhere here: {reason}")


def _brings(card: Card, before: Kernel, after: Kernel) -> bool:
    """Whether an edit brings in what the card provides: some of the ways that a rule fits change nothing that counts."""
    had, has = ({feature.name for feature in rules.features(kernel)} for kernel in (before, after))
    return {wanted.name for wanted in card.contract.provides} <= has - had


def _ordered(card: Card, target: Target, found: Iterator[Fit]) -> list[Fit]:
    """Those at or around a place that the card's anchor finds first, and otherwise as they come."""
    try:
        places = find_anchor(card.anchor.query, target.kernel) if card.anchor.query else ()
    except KlineageError:
        places = ()  # lint says what is wrong with the query; the rule can find its place without
    loci = {place.locus for place in places}

    def near(fit: Fit) -> bool:
        return any(locus == fit.locus or locus.startswith(f"{fit.locus}/") for locus in loci)

    return sorted(found, key=lambda fit: not near(fit))


def _told(fit: Fit) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in fit.settings.items())
    place = fit.locus.partition("::")[2]
    return "; ".join([f"at {place}{f' with {settings}' if settings else ''}", *fit.adapted])
