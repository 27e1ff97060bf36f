"""A card's file as a person edits it: what is wrong with it, and the line where a field is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

if TYPE_CHECKING:
    from klineage.skill.card import Card

    from klineage_tui.presentation.card_form import Ref


def examine(card: Card, before: Card) -> None:
    """Raise KlineageError for what can be seen to be wrong with a card before it is saved, and was not wrong before."""
    from klineage.skill.file import render
    from klineage.skill.library.sound import sound_card

    sound_card(render(card), f"{card.id}.md", before)


def file_problem(card_id: str, data: bytes) -> str:
    """What is wrong with a card's file, by line; empty when it can be taken."""
    from klineage.skill.library.sound import sound_card

    try:
        sound_card(data, f"{card_id}.md")
    except KlineageError as problem:
        return str(problem)
    return ""


def line_of(source: bytes, card_id: str, ref: Ref) -> int:
    """The line of a field in the card's file, counted from 1; the first where the file does not say."""
    from klineage.skill.file import lines

    name = {"precondition": "preconditions", "effect": "effects", "risk": "risks"}.get(ref.kind, ref.kind)
    wanted = f"{name}.{ref.key}" if ref.key else name
    with suppress(KlineageError):  # a broken file opens at its top, where it says what is wrong
        found = lines(source, f"{card_id}.md")
        inside = [line for field, line in found.items() if field == wanted or field.startswith(f"{wanted}.")]
        return found.get(wanted) or min(inside, default=1)
    return broken_line(source, card_id)


def broken_line(source: bytes, card_id: str) -> int:
    """The line that a file cannot be read at, from the sentence that says so."""
    said = file_problem(card_id, source)
    _, _, rest = said.partition(f"{card_id}.md:")
    number = rest.partition(":")[0]
    return int(number) if number.isdecimal() else 1
