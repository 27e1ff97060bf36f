"""Fields of a card set from text, by name: ``preconditions.p1.text``, ``scope.workloads``, ``carrier.settings.TILE``.

What is measured (effects, trials, a probe's outcome) is not set: tools add it, with its evidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from klineage.errors import KlineageError
from klineage.skill.card import Card, ContractFeature, Place, Precondition, Probe, Risk, check_id
from klineage.skill.library.fields import GROUPS

_MEASURED = {
    "effects": "an effect is measured; klineage lift and klineage admit add it",
    "verification": "a trial is run; klineage admit adds it",
    "evidence": "evidence is what was found; the tools that find it add it",
    "id": "an id never changes; klineage card split makes a new card",
}
_RESULT = ("outcome", "found", "trust", "platform", "when", "evidence", "of")


def with_fields(card: Card, assignments: Sequence[tuple[str, str]]) -> Card:
    """The card with each (name, text) set in turn.

    Lists are written with commas, a feature as ``smem_tiling@function``. ``preconditions.p3.text`` with a key that is
    not there adds one; ``preconditions.p3`` set to nothing takes it away; risks go by number from 1, ``new`` adds one.
    A sentence that is set is its editor's: its origin becomes ``person``, and a doubt about the old one goes. Raises
    KlineageError, by name, for a field that there is not or a value that it cannot have.
    """
    for name, text in assignments:
        card = _with(card, name, text)
    return card


def _with(card: Card, name: str, text: str) -> Card:
    head, _, rest = name.partition(".")
    if head in _MEASURED:
        raise KlineageError(f"{name} cannot be set: {_MEASURED[head]}")
    if head in ("preconditions", "risks"):
        return _with_item(card, head, rest, text)
    if head == "carrier" and rest.startswith("settings."):
        return replace(
            card, carrier=replace(card.carrier, settings=_entry(card.carrier.settings, rest[9:], text))
        )
    if head in GROUPS:
        part = getattr(card, head)
        changes: Any = {head: replace(part, **{rest: _value(type(part), rest, text, name)})}
        return replace(card, **changes)
    changes = {head: _value(Card, head, text, name)}
    return replace(card, **changes)


def _entry(old: Any, key: str, text: str) -> dict[str, str]:
    """A mapping with one key set, or taken away by an empty text."""
    kept = {name: value for name, value in old.items() if name != key or text}
    return {**kept, **({key: text} if text else {})}


def _value(kind: type, name: str, text: str, full: str) -> Any:
    """The text as what the field holds."""
    hints = get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}
    if name not in known:
        raise KlineageError(
            f"there is no field {full!r}; {kind.__name__.lower()} has {', '.join(sorted(known))}"
        )
    hint = hints[name]
    if get_origin(hint) is Literal and text not in get_args(hint):
        raise KlineageError(f"{full} cannot be {text!r}; write {', '.join(get_args(hint))}")
    if hint is str or get_origin(hint) is Literal:
        return text
    if get_origin(hint) is tuple:
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        return (
            tuple(_feature(word, full) for word in words) if get_args(hint)[0] is ContractFeature else words
        )
    raise KlineageError(f"{full} has parts; set them one by one, or use klineage card edit in an editor")


def _feature(text: str, full: str) -> ContractFeature:
    name, _, where = text.partition("@")
    if where and where not in get_args(Place):
        raise KlineageError(f"{full}: {text!r} is at no place; write NAME@{'|'.join(get_args(Place))}")
    return ContractFeature(name, where or "anchor")  # type: ignore[arg-type]  # just checked


def _with_item(card: Card, group: str, rest: str, text: str) -> Card:
    key, _, field = rest.partition(".")
    found = list(getattr(card, group))
    at = _place(card, group, key)
    if not field:
        if text or at is None:
            raise KlineageError(
                f"{group}.{key} is no text; set {group}.{key}.text, or nothing to take it away"
            )
        del found[at]
    else:
        old = found[at] if at is not None else _new(group, key)
        item = _with_part(old, field, text, f"{group}.{rest}")
        found[at if at is not None else len(found) : at + 1 if at is not None else len(found)] = [item]
    changes: Any = {group: tuple(found)}
    return replace(card, **changes)


def _place(card: Card, group: str, key: str) -> int | None:
    """The index of an item, None for one to be added."""
    if group == "preconditions":
        keys = [item.key for item in card.preconditions]
        return keys.index(key) if key in keys else None
    if key == "new":
        return None
    if key.isascii() and key.isdigit() and 1 <= int(key) <= len(card.risks):
        return int(key) - 1
    raise KlineageError(
        f"{card.id} has {len(card.risks)} risks; risks.{key} is none of them, risks.new adds one"
    )


def _new(group: str, key: str) -> Precondition | Risk:
    if group == "risks":
        return Risk("")
    check_id(f"c.{key}")
    return Precondition(key, "storage", "")


def _with_part(item: Any, field: str, text: str, full: str) -> Any:
    if isinstance(item, Precondition) and field.startswith("probe"):
        return replace(item, probe=_probe(item.probe, field.removeprefix("probe").lstrip("."), text, full))
    if field == "key":
        raise KlineageError(f"{full} cannot be set: what cites it goes by its key")
    changes: Any = {field: _value(type(item), field, text, full)}
    if field == "text" and text != item.text:
        changes |= {"origin": "person", "doubt": ""}
    return replace(item, **changes)


def _probe(probe: Probe | None, field: str, text: str, full: str) -> Probe | None:
    """How to violate a precondition; nothing for no probe at all. Its outcome is found by klineage probe."""
    if not field and not text:
        return None
    if field in _RESULT:
        raise KlineageError(f"{full} cannot be set: klineage probe finds it")
    old = probe or Probe("size")
    if field.startswith("settings."):
        return replace(old, settings=_entry(old.settings, field[9:], text))
    changes: Any = {field: _value(Probe, field, text, full)}
    return replace(old, **changes)
