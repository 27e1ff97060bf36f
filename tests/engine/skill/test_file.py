"""A card's file: what is written reads back, what is wrong is named by its line."""

from __future__ import annotations

from hypothesis import given, settings

from klineage.skill.card import Card
from klineage.skill.file import parse, render

from .strategies import cards, tidy

NAME = "cards/c.prefetch-b.md"


@settings(max_examples=150, deadline=None)
@given(cards)
def test_a_card_reads_back_as_it_was_written(card: Card) -> None:
    written = render(card)
    assert parse(written, NAME) == tidy(card)
    assert render(parse(written, NAME)) == written
