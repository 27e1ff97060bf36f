"""From nodes to the card's own types: what a field may be is read from the data classes, so nothing is said twice."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from klineage.errors import KlineageError
from klineage.skill.card import Card, check_id
from klineage.skill.format.nodes import Entries, Fault, Items, Node, Scalar, shown

Reader = Callable[[Node, str], Any]

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?\.inf")
_NOTHING = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class CarrierEvidence:
    """What of the carrier stands in the front matter; its code stands in the body.

    evidence: the transition that the code was taken from.
    """

    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """A record: the type of each key, which ones must be there, and what is built of them."""

    hints: Mapping[str, Any]
    required: tuple[str, ...]
    build: Callable[..., Any]


@cache
def shape(kind: type) -> Shape:
    hints = get_type_hints(kind)
    required = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    return Shape(hints, tuple(required), kind)


@cache
def front_shape() -> Shape:
    """The front matter of a card: its fields in order, without what stands in the body."""
    card = shape(Card)
    hints = {name: hint for name, hint in card.hints.items() if name not in ("anchor", "notes")}
    return Shape({"schema": int, **hints, "carrier": CarrierEvidence}, ("schema", *card.required), dict)


def read_front(node: Node) -> dict[str, Any]:
    """The fields of the front matter by name. Raises Fault for the first thing that no card can have."""
    values: dict[str, Any] = _record(front_shape(), node, "the front matter")
    assert isinstance(node, Entries)
    named = node.get("id")
    assert named is not None
    try:
        check_id(values["id"])
    except KlineageError as error:
        raise Fault(named.line, str(error)) from error
    if values["id"].partition(".")[0] != values["surface"]:
        raise Fault(
            named.line,
            f"{values['id']} names a card of another surface than {values['surface']}; change one of them",
        )
    return values


def read_settings(node: Node | None) -> dict[str, str]:
    """The settings under ``## Settings``: one text a name."""
    return {} if node is None else _map(node, "settings")


@cache
def reader(hint: Any) -> Reader:
    """What turns a node into a value of this type, or raises Fault."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda node, name: _word(node, name, arguments)
    if origin is tuple:
        return lambda node, name: _list(reader(arguments[0]), node, name)
    if origin in (Union, UnionType):
        inner = next(argument for argument in arguments if argument is not NoneType)
        return lambda node, name: None if nothing(node) else reader(inner)(node, name)
    if origin is not None and issubclass(origin, Mapping):
        return _map
    if is_dataclass(hint):
        return lambda node, name: _record(shape(hint), node, name)  # type: ignore[arg-type]
    raise TypeError(f"no card can hold {hint}")


def nothing(node: Node) -> bool:
    """Whether the value is left out: empty, ``null`` or ``~``."""
    return isinstance(node, Scalar) and not node.style and node.text in _NOTHING


def _text(node: Node, name: str) -> str:
    if not isinstance(node, Scalar):
        raise Fault(
            node.line, f"{name} must be a text, not {_called(node)}; quote it if the brackets belong to it"
        )
    return "" if nothing(node) else node.text


def _float(node: Node, name: str) -> float:
    if isinstance(node, Scalar) and not node.style and _NUMBER.fullmatch(node.text):
        number = float(node.text.replace(".inf", "inf"))
        if math.isfinite(number) or "inf" in node.text:
            return number
    raise Fault(node.line, f"{name} must be a number such as 1.25, not {_called(node)}")


def _int(node: Node, name: str) -> int:
    if isinstance(node, Scalar) and not node.style and re.fullmatch(r"\d{1,18}", node.text, re.ASCII):
        return int(node.text)
    raise Fault(node.line, f"{name} must be a whole number, not {_called(node)}")


def _bool(node: Node, name: str) -> bool:
    if isinstance(node, Scalar) and not node.style and node.text in ("true", "false"):
        return node.text == "true"
    raise Fault(node.line, f"{name} must be true or false, not {_called(node)}")


_SCALARS: dict[Any, Reader] = {str: _text, float: _float, int: _int, bool: _bool}


def _word(node: Node, name: str, words: tuple[str, ...]) -> str:
    text = _text(node, name)
    if text not in words:
        raise Fault(node.line, f"{name} {shown(text)} is not one of {', '.join(words)}{_meant(text, words)}")
    return text


def _list(item: Reader, node: Node, name: str) -> tuple[Any, ...]:
    if nothing(node):
        return ()
    if not isinstance(node, Items):
        raise Fault(node.line, f"{name} must be a list, such as [a, b], not {_called(node)}")
    seen: dict[str, int] = {}
    for entry in node.items:
        key = entry.get("key") if isinstance(entry, Entries) else None
        if not isinstance(key, Scalar):
            continue
        if not re.fullmatch(r"\S+", key.text):
            raise Fault(key.line, f"the key {shown(key.text)} must be one short word, such as {name[0]}1")
        if key.text in seen:
            raise Fault(
                key.line, f"the key {key.text} is taken on line {seen[key.text]}; give this one another"
            )
        seen[key.text] = key.line
    return tuple([item(entry, f"each of {name}") for entry in node.items])


def _map(node: Node, name: str) -> dict[str, str]:
    if nothing(node):
        return {}
    if not isinstance(node, Entries):
        raise Fault(
            node.line, f"{name} must be names with their values, such as TILE: 64, not {_called(node)}"
        )
    return {key.text: _text(value, key.text) for key, value in node.entries}


def _record(shape: Shape, node: Node, name: str) -> Any:
    if not isinstance(node, Entries):
        raise Fault(
            node.line, f"{name} must be made of fields ({', '.join(shape.hints)}), not {_called(node)}"
        )
    values: dict[str, Any] = {}
    for key, value in node.entries:
        hint = shape.hints.get(key.text)
        if hint is None:
            raise Fault(
                key.line, f"{name} has no field {shown(key.text)}{_meant(key.text, tuple(shape.hints))}"
            )
        if not (nothing(value) and key.text not in shape.required):
            values[key.text] = reader(hint)(value, key.text)
    for required in shape.required:
        if required not in values:
            raise Fault(node.line, f"{name} lacks {required}; add it")
    return shape.build(**values)


def _called(node: Node) -> str:
    if isinstance(node, Scalar):
        if not node.text:
            return "nothing"
        return shown(node.text)
    return "a list" if isinstance(node, Items) else "fields"


def _meant(text: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(text, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; it may be {', '.join(known)}"
