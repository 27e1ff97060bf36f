"""Cards, and claims within a card, that may be one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import combinations

from klineage.skill.card import Card
from klineage.skill.linting.problem import Problem

_ALIKE = 0.9


def others_alike(card: Card, others: Iterable[Card]) -> Iterator[Problem]:
    """Other cards in use that say the same."""
    from klineage.skill.library.curating import twins

    for other in others:
        if other is card or "retired" in (card.status, other.status):
            continue
        if other.id == card.id:
            yield Problem(
                "id",
                "error",
                f"another card is called {card.id}, too; give one of the two a new id",
                "duplicate-id",
            )
        elif (other.surface, other.action) == (card.surface, card.action):
            for pair in twins((card, other)):
                text = f"it may be the same as {other.id}: {pair.why}; klineage card merge makes one of them"
                yield Problem("intent", "warning", text, "near-duplicate")
        elif card.carrier.after and card.carrier.after == other.carrier.after:
            text = f"its code is that of {other.id}, which calls the action {other.action}"
            yield Problem("carrier", "warning", text, "near-duplicate")


def claims_alike(card: Card) -> Iterator[Problem]:
    """Claims of one card that say almost the same. Two preconditions with different checks say different things."""
    for one, two in combinations(card.preconditions, 2):
        if alike(one.text, two.text) and not (one.check and two.check and one.check != two.check):
            text = f"{two.key} says almost what {one.key} says; keep one"
            yield Problem(f"preconditions.{two.key}.text", "warning", text, "near-duplicate")
    for (first, risk), (second, later) in combinations(enumerate(card.risks), 2):
        if alike(risk.text, later.text):
            text = f"it says almost what risk {first + 1} says; keep one"
            yield Problem(f"risks.{second}.text", "warning", text, "near-duplicate")


def alike(one: str, two: str) -> bool:
    """Whether two sentences have almost the same words in the same order."""
    first, second = one.lower().split(), two.lower().split()
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return bool(first) and all(
        ratio() >= _ALIKE for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    )
