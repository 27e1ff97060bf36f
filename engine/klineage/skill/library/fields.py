"""The parts of a card by name, ``intent`` or ``preconditions.p1.text``: how versions are compared and merged.

Parts that have a key go by it, whatever their place in the file; effects and risks go by what they are about.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from klineage.lineage.message import one_line
from klineage.skill.card import Card, Effect

#: The groups of a card, whose fields are parts of their own.
GROUPS = ("scope", "contract", "anchor", "carrier")

#: The lists of a card -> what an item goes by.
LISTS: Mapping[str, Callable[[Any], str]] = {
    "preconditions": lambda item: str(item.key),
    "effects": lambda item: effect_name(item),
    "risks": lambda item: one_line(item.text)[:60],
    "evidence": lambda item: str(item.key),
    "verification": lambda item: str(item.key),
}


@dataclass(frozen=True)
class FieldChange:
    """One part that differs, as text for people; "" where it is not there."""

    field: str
    before: str
    after: str


def effect_name(effect: Effect) -> str:
    """What an effect is about, in one word: two of the same name are two statements about the same thing."""
    parts = (effect.quantity, effect.position, effect.workload, effect.size, effect.platform)
    return "/".join(part for part in parts if part)


def items(card: Card, name: str) -> dict[str, Any]:
    """The items of a list by what they go by; a second of the same name gets ``#2``."""
    found: dict[str, Any] = {}
    for item in getattr(card, name):
        key = wanted = LISTS[name](item)
        count = 1
        while key in found:
            count += 1
            key = f"{wanted}#{count}"
        found[key] = item
    return found


def parts(item: object) -> dict[str, Any]:
    """The fields of a part by name, but for its key."""
    return {
        field.name: getattr(item, field.name)
        for field in dataclasses.fields(item)  # type: ignore[arg-type]  # always one of card.py's
        if field.name != "key"
    }


def changed_fields(before: Card, after: Card) -> tuple[FieldChange, ...]:
    """What differs between two versions, or two cards, part by part; an item that came or went is one change."""
    found: list[FieldChange] = []
    for name, value in parts(before).items():
        other = getattr(after, name)
        if name == "id" or value == other:
            continue
        if name in GROUPS:
            found += _differing(f"{name}.", value, other)
        elif name in LISTS:
            found += _of_list(name, items(before, name), items(after, name))
        else:
            found.append(FieldChange(name, shown(value), shown(other)))
    return tuple(found)


def _of_list(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    found: list[FieldChange] = []
    for key in dict.fromkeys([*before, *after]):
        one, two = before.get(key), after.get(key)
        if one is not None and two is not None:
            found += _differing(f"{name}.{key}.", one, two)
        else:
            found.append(FieldChange(f"{name}.{key}", shown(one), shown(two)))
    if not found:
        found.append(FieldChange(name, ", ".join(before), ", ".join(after)))
    return found


def _differing(prefix: str, one: object, two: object) -> list[FieldChange]:
    after = parts(two)
    return [
        FieldChange(prefix + field, shown(value), shown(after[field]))
        for field, value in parts(one).items()
        if value != after[field]
    ]


def shown(value: object) -> str:
    """A part as text for people: a list with commas, a mapping as ``a=1, b=2``, an item by what it says."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={shown(part)}" for key, part in value.items())
    if isinstance(value, tuple):
        return ", ".join(shown(part) for part in value)
    if dataclasses.is_dataclass(value):
        return _item(value)
    return str(value)


def _item(item: object) -> str:
    said = parts(item)
    for name in ("text", "note", "why"):
        if said.get(name):
            return str(said[name])
    if "where" in said:
        return f"{said['name']}@{said['where']}"
    return ", ".join(f"{name}={shown(part)}" for name, part in said.items() if part not in ("", None, (), {}))
