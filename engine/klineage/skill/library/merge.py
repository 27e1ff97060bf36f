"""Merging two versions of a card: three ways, field by field, so that only what both changed is a conflict.

Entries that both sides added (evidence, trials, preconditions) are no conflict: those of the other side get the next
free keys, and everything that names them follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from klineage.skill.card import Card, Verification
from klineage.skill.library.fields import GROUPS, LISTS, items, parts, shown

Side = Literal["ours", "theirs"]

_GONE: Any = object()


@dataclass(frozen=True)
class Conflict:
    """A part that both sides changed, in different ways, as text; "" where it is not there."""

    field: str
    base: str
    ours: str
    theirs: str


def merge_cards(
    base: Card, ours: Card, theirs: Card, taken: Mapping[str, Side] | None = None
) -> tuple[Card, tuple[Conflict, ...]]:
    """(the merged card, what is left to decide). ``base``: what both come from; ``join_cards`` does without.

    taken: field -> whose value a person took. Where nothing is taken of a conflict, the card holds our value.
    """
    merging = _Merging(taken or {})
    theirs = aligned(base, ours, theirs)
    values: dict[str, Any] = {}
    for name, mine in parts(ours).items():
        if name == "id":
            continue
        other, before = getattr(theirs, name), getattr(base, name)
        if name in GROUPS:
            values[name] = merging.fields(f"{name}.", before, mine, other)
        elif name in LISTS:
            values[name] = merging.list(name, items(base, name), ours, theirs)
        else:
            values[name] = merging.value(name, before, mine, other)
    return replace(ours, **values), tuple(merging.conflicts)


class _Merging:
    """The conflicts found so far, and the person's word on them."""

    def __init__(self, taken: Mapping[str, Side]) -> None:
        self.taken = taken
        self.conflicts: list[Conflict] = []

    def value(self, field: str, base: Any, ours: Any, theirs: Any) -> Any:
        """One value; ``_GONE`` stands for "not there"."""
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        if field.rpartition(".")[2] == "evidence":  # what shows a claim only adds up
            return tuple(dict.fromkeys((*_there(ours), *_there(theirs))))
        side = self.taken.get(field)
        if side is None:
            self.conflicts.append(Conflict(field, *(_text(value) for value in (base, ours, theirs))))
        return theirs if side == "theirs" else ours

    def fields(self, prefix: str, base: Any, ours: Any, theirs: Any) -> Any:
        """A group or an item, field by field."""
        before = {} if base is _GONE else parts(base)  # an item that both have added
        other = parts(theirs)
        merged = {
            name: self.value(prefix + name, before.get(name, _GONE), mine, other[name])
            for name, mine in parts(ours).items()
        }
        return replace(ours, **merged)

    def list(self, name: str, base: Mapping[str, Any], ours: Card, theirs: Card) -> tuple[Any, ...]:
        """A list, item by item: our order, then what only they have."""
        mine, other = items(ours, name), items(theirs, name)
        if list(other.items()) == list(base.items()):
            return tuple(mine.values())
        if list(mine.items()) == list(base.items()):
            return tuple(other.values())
        found = []
        for key in dict.fromkeys([*mine, *other]):
            one, two, before = mine.get(key, _GONE), other.get(key, _GONE), base.get(key, _GONE)
            if name == "effects" and before is _GONE and one != two and _GONE not in (one, two):
                found += [one, two]  # two measurements of the same thing, each with its evidence
                continue
            if one is _GONE or two is _GONE:
                item = self.value(f"{name}.{key}", before, one, two)
            else:
                item = self.fields(f"{name}.{key}.", before, one, two)
            if item is not _GONE:
                found.append(item)
        return tuple(found)


def _there(value: Any) -> Iterable[Any]:
    return () if value is _GONE else value


def _text(value: Any) -> str:
    return "" if value is _GONE else shown(value)


def aligned(base: Card | None, ours: Card, theirs: Card, same: Mapping[str, str] | None = None) -> Card:
    """Their card with its keys made to fit ours.

    What both have goes by our key, whatever theirs was; what they added under a key that we use for something else gets
    the next free one. Keys of the common base stay. same: of preconditions, their key -> the key it gets, where there
    is no base to tell.
    """
    theirs = _evidence_renamed(theirs, _keys("e", base, ours, theirs, "evidence"))
    trials = _keys("v", base, ours, theirs, "verification")
    claims = same or (_keys("p", base, ours, theirs, "preconditions") if base is not None else {})
    return replace(
        theirs,
        verification=tuple(_rested(item, claims) for item in _keyed(theirs.verification, trials)),
        preconditions=_keyed(theirs.preconditions, claims),
    )


def _keys(letter: str, base: Card | None, ours: Card, theirs: Card, name: str) -> dict[str, str]:
    """Their key -> the key it gets."""
    kept = set(items(base, name)) if base is not None else set()
    mine = items(ours, name)
    same = {str(parts(item)): key for key, item in mine.items()}
    used = {*mine, *items(theirs, name), *kept}
    renamed: dict[str, str] = {}
    for key, item in items(theirs, name).items():
        if key in kept or mine.get(key) == item:
            continue
        twin = same.get(str(parts(item)))
        if twin is not None and twin not in kept:
            renamed[key] = twin
        elif key in mine:
            renamed[key] = next_key(letter, used)
            used.add(renamed[key])
    return renamed


def next_key(letter: str, used: Iterable[str]) -> str:
    """The first key of that letter after all that are used: ``e5``."""
    numbers = [int(match[1]) for key in used if (match := re.fullmatch(rf"{letter}(\d+)", key))]
    return f"{letter}{max(numbers, default=0) + 1}"


def _evidence_renamed(card: Card, keys: Mapping[str, str]) -> Card:
    """A card with the keys of its evidence replaced, and every mention of them."""
    if not keys:
        return card

    def cites(item: Any) -> tuple[str, ...]:
        return tuple(keys.get(key, key) for key in item.evidence)

    return replace(
        card,
        evidence=_keyed(card.evidence, keys),
        preconditions=tuple(
            replace(
                item,
                evidence=cites(item),
                probe=item.probe and replace(item.probe, evidence=cites(item.probe)),
            )
            for item in card.preconditions
        ),
        effects=tuple(replace(item, evidence=cites(item)) for item in card.effects),
        risks=tuple(replace(item, evidence=cites(item)) for item in card.risks),
        carrier=replace(card.carrier, evidence=cites(card.carrier)),
        verification=tuple(replace(item, evidence=cites(item)) for item in card.verification),
    )


def _rested(trial: Verification, claims: Mapping[str, str]) -> Verification:
    """A trial whose fingerprints name preconditions by their new keys."""
    cut = "precondition."
    renamed = {
        cut + claims.get(name.removeprefix(cut), name.removeprefix(cut))
        if name.startswith(cut)
        else name: print_
        for name, print_ in trial.rested_on.items()
    }
    return replace(trial, rested_on=renamed) if claims else trial


def _keyed(entries: Iterable[Any], keys: Mapping[str, str]) -> tuple[Any, ...]:
    """Entries under their new keys; of two that are the same now, one."""
    renamed = (replace(entry, key=keys.get(entry.key, entry.key)) for entry in entries)
    return tuple({entry.key: entry for entry in renamed}.values())
