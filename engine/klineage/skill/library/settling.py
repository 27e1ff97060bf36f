"""One card that two libraries have changed: what becomes of its file, and what a person has to decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from klineage.errors import KlineageError
from klineage.lineage.message import one_line
from klineage.skill.card import Card
from klineage.skill.file import edited, lines, parse
from klineage.skill.library.fields import items
from klineage.skill.library.joining import Hands, join_cards
from klineage.skill.library.merge import Conflict, Side, merge_cards

_SHOWN = 80  # characters of each side of a conflict

Choice = Mapping[str, Side]
"""Whose value to take where both changed: ``c.prefetch:intent`` -> side; ``c.prefetch`` or ``*`` for all of it."""


@dataclass(frozen=True)
class CardConflict:
    """A field of a card that both sides changed. ``line``: where our file has it; 1 where it has it not."""

    card: str
    conflict: Conflict
    line: int

    def __str__(self) -> str:
        parts = [f"cards/{self.card}.md:{self.line}: {self.conflict.field}"]
        said = {"ours": self.conflict.ours, "theirs": self.conflict.theirs, "before": self.conflict.base}
        return "; ".join(parts + [f"{name}: {_shortened(text)}" for name, text in said.items()])


def _shortened(text: str) -> str:
    line = one_line(text)
    return (line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}...") or "(nothing)"


def settled(
    path: str, base: bytes | None, ours: bytes, theirs: Card, hands: Hands, taken: Choice
) -> tuple[bytes, tuple[CardConflict, ...]]:
    """(our file with what they say, what is left to decide). ``base``: the file that both come from, None for none.

    hands: what persons wrote, where there is no base to tell. Raises KlineageError, by line, where ours cannot be read.
    """
    mine = parse(ours, path)
    before = _readable(base, path)
    merge = partial(merge_cards, before, mine, theirs) if before else partial(join_cards, mine, theirs, hands)
    own = {
        name.removeprefix(f"{mine.id}:"): side
        for name, side in taken.items()
        if name.startswith(f"{mine.id}:")
    }
    card, conflicts = merge(own)
    if conflicts and (whole := taken.get(mine.id, taken.get("*"))):
        card, conflicts = merge({**dict.fromkeys((each.field for each in conflicts), whole), **own})
    at = lines(ours, path) if conflicts else {}
    left = tuple(CardConflict(mine.id, each, _line(at, mine, each.field)) for each in conflicts)
    return (ours if card == mine else edited(ours, card)), left


def _readable(base: bytes | None, path: str) -> Card | None:
    """The version that both come from; None when there is none, or a person had broken it."""
    try:
        return parse(base, path) if base is not None else None
    except KlineageError:
        return None


def _line(at: Mapping[str, int], card: Card, name: str) -> int:
    """The line of a field, or of the nearest part around it that the file has."""
    for group in ("effects", "risks"):
        for number, key in enumerate(items(card, group)):
            if f"{name}.".startswith(f"{group}.{key}."):
                name = f"{group}.{number}{name.removeprefix(f'{group}.{key}')}"
                break
    while name and name not in at:
        name = name.rpartition(".")[0]
    return at.get(name, 1)
