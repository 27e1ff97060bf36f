"""What can be seen to be wrong with a card's words before they are saved: a check that no target can answer, a query
that is none."""

from __future__ import annotations

from collections.abc import Iterator

from klineage.errors import KlineageError
from klineage.skill.card import Card
from klineage.skill.file import lines, parse


def sound_card(data: bytes, name: str, before: Card | None = None) -> Card:
    """The card of a file. Raises KlineageError, by line, for what is no card, and for a check or a query that cannot be read.

    before: the version that was edited; what is wrong with it already is no reason to refuse another edit.
    """
    card = parse(data, name)
    for field, wrong in _wrong(card, before):
        line = lines(data, name).get(field, 1)
        raise KlineageError(f"{name}:{line}: {field}: {wrong}")
    return card


def _wrong(card: Card, before: Card | None) -> Iterator[tuple[str, str]]:
    from klineage.skill.anchors import compiled_query
    from klineage.skill.checks import problem

    known = {item.check for item in before.preconditions} if before is not None else set()
    for item in card.preconditions:
        if item.check and item.check not in known and (wrong := problem(item.check)):
            yield f"preconditions.{item.key}.check", wrong
    query = card.anchor.query
    if query and not (before is not None and before.anchor.query == query and before.surface == card.surface):
        try:
            compiled_query(card.surface, query)
        except KlineageError as error:
            yield "anchor.query", str(error)
