"""Which transitions are one optimization: those of one action, one kind of place and one change of mechanisms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from klineage.kernel import Surface
from klineage.skill.card import Card
from klineage.skill.lift.source import Source
from klineage.skill.transitions import Rejected, Transition

_LAST = re.compile(r"/([a-z_]+)\[[^\]]*\]$")
_LONGEST_ID = 64


@dataclass(frozen=True)
class Group:
    """The transitions that one card is lifted from, and the attempts at the same mechanism that were rejected.

    locus: the kind of place, ``function``, ``for``, ``launch``. adds: names of the mechanisms that each brings in.
    rule:  the rule that made all of them; empty where others did.
    """

    surface: Surface
    action: str
    rule: str
    locus: str
    adds: tuple[str, ...]
    transitions: tuple[Transition, ...]
    rejected: tuple[Rejected, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str, tuple[str, ...]]:
        """What makes two groups the same optimization."""
        return (self.surface, self.rule or self.action, self.action, self.locus, self.adds)


def groups_of(source: Source) -> tuple[Group, ...]:
    """One group for each optimization, those with the most transitions first, then by name."""
    found: dict[tuple[str, ...], list[Transition]] = {}
    for transition in source.transitions:
        adds = tuple(sorted({feature.name for feature in transition.added}))
        key = (
            transition.surface,
            transition.step.action,
            transition.rule,
            kind_of(transition.step.locus),
            *adds,
        )
        found.setdefault(key, []).append(transition)
    groups = [_group(transitions, source) for transitions in found.values()]
    return tuple(sorted(groups, key=lambda g: (-len(g.transitions), g.key)))


def _group(transitions: list[Transition], source: Source) -> Group:
    first = transitions[0]
    adds = tuple(sorted({feature.name for feature in first.added}))
    tried = (r for r in source.rejected if r.tried.surface == first.surface)
    same = tuple(r for r in tried if r.step.action == first.step.action or _names(r) & set(adds))
    kind = kind_of(first.step.locus)
    return Group(first.surface, first.step.action, first.rule, kind, adds, tuple(transitions), same)


def _names(attempt: Rejected) -> set[str]:
    return {feature.name for feature in attempt.step.removes}


def kind_of(locus: str) -> str:
    """The kind of place that a locus names: ``for`` of ``kernel.c::gemm/for[k]``, ``function`` of ``kernel.c::gemm``."""
    last = _LAST.search(locus)
    return last[1] if last else "function"


def named(groups: Iterable[Group], cards: Iterable[Card] = ()) -> tuple[tuple[str, Group], ...]:
    """Each group with the id of its card: the one that cites its transitions, else one of the same optimization, else a
    new id. A card that a person has merged from two takes the groups of both."""
    cards = tuple(cards)
    citing = {item.commit: card.id for card in cards for item in card.evidence if item.kind == "transition"}
    alike: dict[tuple[object, ...], str] = {}
    for card in cards:
        alike.setdefault(key_of(card), card.id)
    used = {card.id for card in cards}
    result = []
    for group in groups:
        cites = Counter(citing[t.commit] for t in group.transitions if t.commit in citing)
        most = max(cites, key=lambda name: (cites[name], name), default="")
        card_id = most or alike.get(group.key) or _new_id(group, used)
        used.add(card_id)
        result.append((card_id, group))
    return tuple(result)


def key_of(card: Card) -> tuple[str, str, str, str, tuple[str, ...]]:
    """The ``Group.key`` that a card stands for."""
    adds = tuple(sorted({feature.name for feature in card.contract.provides}))
    return (card.surface, card.rule.partition(".")[2] or card.action, card.action, card.locus, adds)


def _new_id(group: Group, taken: set[str]) -> str:
    """``c.prefetch``, or with its place and a number where that is taken."""
    word = _slug(group.rule or group.action)
    stem = f"{group.surface}.{word}"
    choices = [stem, f"{stem}-{_slug(group.locus)}", *(f"{stem}-{number}" for number in range(2, 1000))]
    return next(choice for choice in choices if choice not in taken)


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "step"
    return slug[: _LONGEST_ID - 16].strip("-")
