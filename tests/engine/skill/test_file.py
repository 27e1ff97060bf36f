"""A card's file: what is written reads back, what is wrong is named by its line."""

from __future__ import annotations

from hypothesis import given
from klineage.skill.card import Card
from klineage.skill.file import edited, kept, parse, render

from .strategies import cards, tries

NAME = "cards/c.prefetch-b.md"


@tries(60)
@given(cards)
def test_a_card_reads_back_as_it_was_written(card: Card) -> None:
    written = render(card)
    assert parse(written, NAME) == kept(card)
    assert render(parse(written, NAME)) == written


@tries(60)
@given(cards, cards)
def test_an_edited_file_holds_the_card(before: Card, after: Card) -> None:
    data = render(before)
    assert edited(data, before) is data
    assert parse(edited(data, after), NAME) == kept(after)
