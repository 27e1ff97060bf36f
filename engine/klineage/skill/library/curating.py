"""What a curator does with whole cards: unite two that say the same, part one that says two things, retire, look for twins.

Each is a person's decision: these functions only make the cards, and a library saves them in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

from klineage.errors import KlineageError
from klineage.skill.card import Card, check_id
from klineage.skill.library.fields import LISTS, items
from klineage.skill.library.joining import join_cards, plain

_ALIKE = (
    0.8  # of the words of two intents; below, two sentences of one optimization look like two optimizations
)


#: What a card that another is merged into goes on saying as it did.
_OWN = ("intent", "status", "locus", "rule", "anchor", "carrier", "notes", "retired")


@dataclass(frozen=True)
class Twins:
    """Two cards that may be one. ``why``: what they share, in one sentence."""

    one: str
    two: str
    why: str


def retired(card: Card, why: str) -> Card:
    """The card out of use; it stays, with its history. Raises KlineageError without a reason, or when it is already."""
    if not why.strip():
        raise KlineageError(f"say why {card.id} is retired")
    if card.status == "retired":
        raise KlineageError(f"{card.id} is retired already: {card.retired}")
    return replace(card, status="retired", retired=why.strip())


def why_not_united(kept: Card, other: Card) -> str:
    """Why ``other`` cannot be merged into ``kept``, in one sentence; "" where it can."""
    if kept.id == other.id:
        return f"{kept.id} cannot be merged with itself; name another card"
    for card in (kept, other):
        if card.status == "retired":
            return f"{card.id} is retired already: {card.retired or 'no reason is given'}; merge cards in use"
    cannot = f"{kept.id} and {other.id} cannot be one card: "
    for name in ("surface", "action"):
        one, two = getattr(kept, name), getattr(other, name)
        if one != two:
            return f"{cannot}the {name} of one is {one}, of the other {two}"
    if set(kept.contract.provides) != set(other.contract.provides):
        return f"{cannot}they provide different features; edit the contract of one first"
    return ""


def united(kept: Card, other: Card, why: str) -> tuple[Card, Card]:
    """(``kept`` with what ``other`` knows, ``other`` retired into it).

    Evidence, trials, preconditions, effects and risks come together, each once; scope is where either holds. Words and
    carrier stay those of ``kept``. The contract must go on holding for every transition of both: so both must
    provide the same, and what is required, and what may not be there, is what both name. Raises KlineageError where the
    two cannot be one card.
    """
    if problem := why_not_united(kept, other):
        raise KlineageError(problem)
    both, _ = join_cards(kept, replace(other, locus=kept.locus, rule=kept.rule), first="ours")
    one = replace(both, **{name: getattr(kept, name) for name in _OWN})
    reason = f"merged into {kept.id}" + (f": {why.strip()}" if why.strip() else "")
    return one, retired(other, reason)


def parted(card: Card, new_id: str, intent: str, moved: Sequence[str]) -> tuple[Card, Card]:
    """(what is left of ``card``, a new card of what was moved out of it).

    moved: items such as ``preconditions.p2``, ``effects.1``, ``risks.2`` (by their place, from 1) or ``evidence.e3``.
    What moves takes the evidence that it cites along. The trials were trials of the whole: they stay with ``card``,
    whose fingerprints tell that they are stale, and the new card begins as a hypothesis. Raises KlineageError for an
    item that is not there, or when nothing is moved.
    """
    check_id(new_id)
    if new_id == card.id or not moved or not intent.strip():
        raise KlineageError(
            f"to split {card.id}, name a new id, an intent for it, and what moves there: --move preconditions.p2"
        )
    taken: dict[str, list[Any]] = {name: [] for name in LISTS if name != "verification"}
    for name in moved:
        group, item = _item(card, name)
        taken[group].append(item)
    cited = {key for found in taken.values() for item in found for key in _cites(item)}
    taken["evidence"] += [
        item for item in card.evidence if item.key in cited and item not in taken["evidence"]
    ]
    new = replace(
        _with(card, {name: [i for i in getattr(card, name) if i in found] for name, found in taken.items()}),
        id=new_id, intent=intent.strip(), status="hypothesis", retired="", rule="", verification=(),
        carrier=replace(card.carrier, evidence=()),
    )  # fmt: skip
    gone = {name: found for name, found in taken.items() if name != "evidence"}
    rest = _with(
        card, {name: [i for i in getattr(card, name) if i not in found] for name, found in gone.items()}
    )
    still = {key for name in LISTS for item in getattr(rest, name) for key in _cites(item)} | {
        *rest.carrier.evidence
    }
    named = {name.partition(".")[2] for name in moved if name.startswith("evidence.")} - still
    return replace(rest, evidence=tuple(item for item in rest.evidence if item.key not in named)), new


def _with(card: Card, lists: Mapping[str, Sequence[Any]]) -> Card:
    changed: Any = {name: tuple(found) for name, found in lists.items()}
    return replace(card, **changed)


def _cites(item: Any) -> tuple[str, ...]:
    probe = getattr(item, "probe", None)
    return (*getattr(item, "evidence", ()), *(probe.evidence if probe else ()))


def _item(card: Card, name: str) -> tuple[str, Any]:
    group, _, key = name.partition(".")
    if group not in LISTS or group == "verification":
        raise KlineageError(
            f"{name!r} cannot move; preconditions.KEY, evidence.KEY, effects.N and risks.N can"
        )
    found = items(card, group)
    if group in ("effects", "risks") and key.isascii() and key.isdigit():
        found = {str(number): item for number, item in enumerate(getattr(card, group), start=1)}
    if key not in found:
        raise KlineageError(
            f"{card.id} has no {name}; it has {', '.join(f'{group}.{key}' for key in found) or 'none'}"
        )
    return group, found[key]


def twins(cards: Iterable[Card]) -> tuple[Twins, ...]:
    """Pairs of cards in use that a person should look at, because they may be one; nothing is merged by itself."""
    groups: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        if card.status != "retired":
            groups.setdefault((card.surface, card.action), []).append(card)
    found = []
    for group in groups.values():
        for one, two in combinations(group, 2):
            if not why_not_united(one, two) and (why := _alike(one, two)):
                found.append(Twins(one.id, two.id, why))
    return tuple(found)


def _alike(one: Card, two: Card) -> str:
    """What two cards that could be one share, "" where they are different optimizations."""
    shared = {(e.lineage, e.commit) for e in one.evidence if e.commit and e.kind == "transition"}
    shared &= {(e.lineage, e.commit) for e in two.evidence if e.commit and e.kind == "transition"}
    if shared:
        lineage, commit = min(shared)
        return f"both were lifted from the step {commit[:10]} of {lineage or 'a lineage'}"
    words = SequenceMatcher(None, plain(one.intent).split(), plain(two.intent).split(), autojunk=False)
    if words.ratio() >= _ALIKE:
        return "both are a card of this action, and their intents say almost the same"
    if one.locus == two.locus and one.rule == two.rule and one.rule:
        return f"both are put on by the rule {one.rule} at a {one.locus}"
    return ""
