"""YAML as a tree that remembers where each part stands, so that a part can be replaced and the rest left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from klineage.errors import KlineageError


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text as it was meant, whatever its quotes; what it means as a type is the reader's matter.

    style: ``""`` for a plain one, else ``"``, ``'``, ``|`` or ``>``.
    start, end: its place in the text of the file, quotes included. line: counted from 1.
    """

    text: str
    style: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence. ``flow``: written in brackets."""

    items: tuple[Node, ...]
    flow: bool
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping; its keys are single and stand in the order of the file. ``flow``: written in braces."""

    entries: tuple[tuple[Scalar, Node], ...]
    flow: bool
    line: int
    start: int
    end: int

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.entries if name.text == key), None)


Node = Scalar | Items | Entries


class Fault(Exception):
    """What is wrong at a line of a card, before the file's name is known."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text

    def named(self, name: str) -> KlineageError:
        return KlineageError(f"{name}:{self.line}: {self.text}")


def shown(text: str) -> str:
    """A text of the file in quotes, as long as a message can bear."""
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


def entries(pairs: list[tuple[Scalar, Node]], flow: bool, line: int, start: int, end: int) -> Entries:
    """The mapping of these pairs. Raises Fault for a key that stands there twice."""
    seen: dict[str, int] = {}
    for key, _ in pairs:
        if key.text in seen:
            raise Fault(
                key.line, f"{shown(key.text)} stands here and on line {seen[key.text]}; keep one of the two"
            )
        seen[key.text] = key.line
    return Entries(tuple(pairs), flow, line, start, end)


def placed(node: Node, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The line of every part, by its name: ``preconditions.p1.check``, ``effects.0.gain``, ``scope.platforms``.

    An item is named by its ``key`` where it has one, else by its number, from 0.
    """
    if prefix:
        yield prefix, node.line
    dot = f"{prefix}." if prefix else ""
    if isinstance(node, Entries):
        for key, value in node.entries:
            yield f"{dot}{key.text}", key.line
            yield from placed(value, f"{dot}{key.text}")
    elif isinstance(node, Items):
        for number, item in enumerate(node.items):
            named = item.get("key") if isinstance(item, Entries) else None
            name = named.text if isinstance(named, Scalar) else str(number)
            yield from placed(item, f"{dot}{name}")
