"""Older schemas, one step at a time, on nodes: what is wrong in an old file is still named by its line.

Schema 0 is the short form, for a card that is jotted down: preconditions and risks are sentences in a list, a
precondition with its kind in front (``Layout: rows are contiguous``, as rules and published cards write them);
the scope says ``cases`` and ``languages``. Saving such a card writes it in the schema of today.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from klineage.skill.card import KINDS, SCHEMA
from klineage.skill.format.nodes import Entries, Fault, Items, Node, Scalar

_SCOPE = {"cases": "workloads", "languages": "surfaces"}


def version(front: Node) -> int:
    """The schema that the front matter names. Raises Fault where it names none."""
    named = front.get("schema") if isinstance(front, Entries) else None
    if not isinstance(named, Scalar) or not named.text.isdecimal() or len(named.text) > 6:
        raise Fault(
            named.line if named else front.line, f"the card does not name its schema; write schema: {SCHEMA}"
        )
    return int(named.text)


def migrated(front: Node) -> Node:
    """The front matter in the schema of today. Raises Fault for a newer one."""
    found = version(front)
    if found > SCHEMA:
        assert isinstance(front, Entries)
        named = front.get("schema")
        line = named.line if named else front.line
        raise Fault(
            line,
            f"this card is of schema {found} and this klineage reads up to {SCHEMA}; update klineage (pip install -U)",
        )
    for step in range(found, SCHEMA):
        front = _STEPS[step](front)
    return front


def _from_0(front: Node) -> Node:
    if not isinstance(front, Entries):
        return front
    changed: list[tuple[Scalar, Node]] = []
    for name, value in front.entries:
        if name.text == "schema" and isinstance(value, Scalar):
            value = _said(value, "1")
        elif name.text == "scope" and isinstance(value, Entries):
            value = _renamed(value, _SCOPE)
        elif name.text == "preconditions" and isinstance(value, Items):
            value = _items(value, [_precondition(item, f"p{n}") for n, item in enumerate(value.items, 1)])
        elif name.text == "risks" and isinstance(value, Items):
            value = _items(value, [_fields(item, text=_one(item, "risks")) for item in value.items])
        changed.append((name, value))
    return Entries(tuple(changed), front.flow, front.line, front.start, front.end)


def _precondition(item: Node, key: str) -> Node:
    sentence = _one(item, "preconditions")
    kind, colon, rest = sentence.partition(":")
    word = "-".join(kind.lower().split())
    if not colon or word not in KINDS:
        close = get_close_matches(word, KINDS, n=1)
        means = f"did you mean {close[0]}?" if close else f"it may be {', '.join(KINDS)}"
        raise Fault(item.line, f"a precondition of schema 0 begins with its kind and a colon; {means}")
    return _fields(item, key=key, kind=word, text=rest.strip())


def _one(item: Node, owner: str) -> str:
    if not isinstance(item, Scalar):
        raise Fault(item.line, f"each of {owner} is a sentence in schema 0; quote it where it holds a colon")
    return item.text


def _fields(item: Node, **texts: str) -> Node:
    pairs: list[tuple[Scalar, Node]] = [
        (
            Scalar(name, "", item.line, item.start, item.start),
            Scalar(text, '"', item.line, item.start, item.end),
        )
        for name, text in texts.items()
    ]
    return Entries(tuple(pairs), False, item.line, item.start, item.end)


def _items(value: Items, items: list[Node]) -> Items:
    return Items(tuple(items), value.flow, value.line, value.start, value.end)


def _said(value: Scalar, text: str) -> Scalar:
    return Scalar(text, value.style, value.line, value.start, value.end)


def _renamed(value: Entries, names: Mapping[str, str]) -> Entries:
    pairs = tuple((_said(name, names.get(name.text, name.text)), held) for name, held in value.entries)
    return Entries(pairs, value.flow, value.line, value.start, value.end)


#: schema -> what brings it to the next one
_STEPS: Mapping[int, Callable[[Node], Node]] = MappingProxyType({0: _from_0})
