"""The same card in every style of YAML: it reads as the same card, and takes any edit."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from klineage.skill.card import Card
from klineage.skill.file import edited, kept, parse, render
from klineage.skill.format import writing

from .strategies import cards, tries

NAME = "c.prefetch-b.md"


class Style:
    """Writes plain data as people do: brackets here and lines there, quotes or none, comments, an order of their own."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def often(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def mapping(self, data: Mapping[str, Any], column: int) -> str:
        names = list(data)
        if self.often(40):
            self.random.shuffle(names)
        return "".join(self.between(column) + self.entry(name, data[name], column) for name in names)

    def entry(self, name: str, value: Any, column: int) -> str:
        return f"{' ' * column}{writing.text(name)}{' ' * self.often(5)}:{self.value(value, column)}"

    def value(self, value: Any, column: int) -> str:
        if isinstance(value, Mapping | list) and (not value or self.often(25)):
            return f" {self.flow(value, column)}{self.comment()}\n"
        if isinstance(value, Mapping):
            return f"{self.comment()}\n{self.mapping(value, column + self.random.randrange(1, 5))}"
        if isinstance(value, list):
            inner = column + self.random.randrange(4)
            return f"{self.comment()}\n" + "".join(self.item(item, inner) for item in value)
        if isinstance(value, str) and value.isprintable() and value.strip() == value != "" and self.often(25):
            return self.block(value, column)
        return f" {self.scalar(value)}{self.comment()}\n"

    def item(self, item: Any, column: int) -> str:
        dash = f"{self.between(column)}{' ' * column}-"
        if not isinstance(item, Mapping):
            return f"{dash} {self.scalar(item)}{self.comment()}\n"
        if self.often(20):
            return f"{dash} {self.flow(item, column + 1)}{self.comment()}\n"
        step = self.random.randrange(1, 4)
        if self.often(10):
            return f"{dash}{self.comment()}\n{self.mapping(item, column + step)}"
        first, *others = item
        inner = column + 1 + step
        rest = self.mapping({name: item[name] for name in others}, inner)
        return dash + " " * step + self.entry(first, item[first], inner).lstrip(" ") + rest

    def block(self, value: str, column: int) -> str:
        head, _, tail = value.partition(" ")
        if self.often(50) or not tail or tail.startswith(" ") or "  " in value:
            return f" |-{self.comment()}\n{' ' * (column + 2)}{value}\n"
        return f" >-{self.comment()}\n{' ' * (column + 3)}{head}\n{' ' * (column + 3)}{tail}\n"

    def flow(self, value: Any, column: int) -> str:
        def gap() -> str:
            return "\n" + " " * (column + 2) if self.often(15) else " " * self.often(50)

        if isinstance(value, Mapping):
            held = [f"{writing.text(name, True)}: {self.flow(one, column)}" for name, one in value.items()]
            return "{" + gap() + ("," + gap()).join(held) + gap() + "}"
        if isinstance(value, list):
            return "[" + gap() + ("," + gap()).join(self.flow(one, column) for one in value) + gap() + "]"
        return self.scalar(value, in_flow=True)

    def scalar(self, value: Any, in_flow: bool = False) -> str:
        if isinstance(value, str) and self.often(30):
            return writing.quoted(value)
        if isinstance(value, str) and value.isprintable() and self.often(30):
            return "'" + value.replace("'", "''") + "'"
        return writing.scalar(value, in_flow)

    def comment(self) -> str:
        return self.random.choice(["", "", "", " # mine", "   # a: b"])

    def between(self, column: int) -> str:
        return self.random.choice(["", "", "", "", "\n", f"{' ' * column}# - note: 1\n", "# left\n"])


@tries(40)
@given(cards, cards, st.randoms(use_true_random=False), st.sampled_from([b"\n", b"\r\n"]))
def test_a_card_in_any_style_reads_and_takes_edits(
    card: Card, other: Card, random: Random, ending: bytes
) -> None:
    front = Style(random).mapping(writing.front(card), 0)
    below = render(card).decode().partition("\n---\n")[2]
    data = f"---\n{front}---\n{below}".encode().replace(b"\n", ending)
    assert parse(data, NAME) == kept(card)
    assert edited(data, card) is data
    assert parse(edited(data, other), NAME) == kept(other)
