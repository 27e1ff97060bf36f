"""A model or a command, which is told the card, the target, and what failed before."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from klineage.kernel import Feature
from klineage.proposer.base import Goal, Proposer, Task, Tried
from klineage.skill.admission.materializer import Failed, Made, changed
from klineage.skill.admission.target import Target
from klineage.skill.anchors.finding import find_anchor
from klineage.skill.card import Card
from klineage.surface.tree import function_locus, parse_kernel


@dataclass(frozen=True)
class ByProposer:
    """One call for each attempt, so that each is told why the one before it did not hold."""

    proposer: Proposer

    @property
    def name(self) -> str:
        return self.proposer.name

    def answers(self, card: Card, target: Target, failed: Callable[[], tuple[Failed, ...]]) -> Iterator[Made]:
        while True:
            attempts = self.proposer.attempts(task_of(card, target, failed()))
            attempt = next(iter(attempts), None)
            if isinstance(attempts, Generator):
                attempts.close()
            if attempt is None:
                yield Made(self.name, problem="it had no answer")
                return
            if attempt.candidate is None or attempt.problem:
                yield Made(attempt.proposer, problem=attempt.problem or "it had no answer")
                continue
            made = attempt.candidate
            how = f"{made.title}: {made.rationale}" if made.rationale else made.title
            yield Made(attempt.proposer, changed(target, made.source), how)


def task_of(card: Card, target: Target, failed: tuple[Failed, ...]) -> Task:
    """What is asked: the card as the goal, the target as the kernel, and nothing of where the card comes from."""
    locus = _locus(card, target)
    place = function_locus(locus)
    adds = tuple(Feature(locus if f.where == "anchor" else place, f.name) for f in card.contract.provides)
    title = card.intent.splitlines()[0] if card.intent else f"Add {card.action}"
    goal = Goal(card.action, locus, title, told(card), adds)
    tried = tuple(Tried(title, card.action, locus, one.why, one.kernel) for one in failed)
    return Task(target.kernel, target.workload, target.platform, target.features, tried, goal=goal)


def _locus(card: Card, target: Target) -> str:
    """The first place that the anchor finds; else the function that is entered."""
    places = find_anchor(card.anchor.query, target.kernel) if card.anchor.query else ()
    found = next((place.locus for place in places if place.locus), "")
    unit = parse_kernel(target.kernel)
    entry = unit.function(target.kernel.entry)
    jitted = next((f.locus for f in unit.functions if f.jit), "")
    return (
        found
        or jitted
        or (entry.locus if entry is not None else f"{target.kernel.filename}::{target.kernel.entry}")
    )


def told(card: Card) -> str:
    """The card in words: what it is, where, when it holds, what it gains and risks, and one instance of it."""
    parts = [card.intent, f"Where: {card.anchor.text}" if card.anchor.text else ""]
    parts += _listed("It holds when", [f"{p.kind}: {p.text}" for p in card.preconditions])
    parts += _listed("What can go wrong", [risk.text for risk in card.risks])
    needs = ", ".join(feature.name for feature in card.contract.requires)
    parts.append(f"It needs first: {needs}." if needs else "")
    settings = ", ".join(f"{name}={value}" for name, value in card.carrier.settings.items())
    parts.append(f"Its settings were {settings}; choose those that fit here." if settings else "")
    if card.carrier.before or card.carrier.after:
        parts += ["One instance of it, an example and no template. Before:", card.carrier.before]
        parts += ["After:", card.carrier.after]
    return "\n".join(part for part in parts if part)


def _listed(title: str, items: list[str]) -> list[str]:
    return [f"{title}:", *(f"- {item}" for item in items)] if items else []
