"""What lifting comes to, as rows: the state in a word first, then the card and what is new in it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from klineage_tui.presentation.card_words import sentence
from klineage_tui.text.columns import clip, pad
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.lift.shelving import Lift

_WORDS = {
    "new": ("NEW", "verdict-pass"),
    "updated": ("MORE", "verdict-info"),
    "unchanged": ("same", "muted"),
    "retired": ("retired", "muted"),
    "broken": ("BROKEN", "verdict-fail"),
}
_WORD = 9
_ID = 34


def lift_counts(lifts: Sequence[Lift]) -> str:
    """``5 new, 1 with more to say, 2 as they were``; in a sentence where there is nothing."""
    said = {
        "new": "{} new",
        "updated": "{} with more to say",
        "unchanged": "{} as they were",
        "retired": "{} retired",
        "broken": "{} that cannot be read",
    }
    counted = Counter(one.state for one in lifts)
    parts = [words.format(counted[state]) for state, words in said.items() if counted[state]]  # type: ignore[index]
    if not parts:
        return "No step here names an optimization."
    kept = " What a person wrote stays as it is." if counted["updated"] else ""
    return f"{', '.join(parts)}.{kept}"


def lift_lines(lifts: Sequence[Lift], cells: int) -> list[Line]:
    """One row a card, and below it what is new, what a person's word was kept for, and what does not fit."""
    return [line for one in lifts for line in _lines(one, cells)]


def _lines(one: Lift, cells: int) -> Iterator[Line]:
    word, role = _WORDS[one.state]
    id_cells = min(_ID, max(16, cells // 3))
    intent = one.card.intent if one.card is not None else one.problem
    room = max(10, cells - _WORD - id_cells - 2)
    name = pad(clip(sanitize(one.id), id_cells), id_cells + 2)
    yield compose((pad(word, _WORD), role), (name, "strong"), (clip(sentence(intent), room), ""))
    if one.state == "updated" and one.added:
        yield from _below("adds", ", ".join(one.added), cells, "muted")
    if one.kept:
        yield from _below("keeps", f"your {', '.join(one.kept)}", cells, "muted")
    if one.problem and one.card is not None:
        yield from _below("", one.problem, cells, "muted")
    for fault in one.faults:
        yield from _below("but", fault, cells, "verdict-warn")


def _below(label: str, text: str, cells: int, role: str) -> Iterator[Line]:
    lead = " " * _WORD + (f"{label} " if label else "")
    for number, piece in enumerate(textwrap.wrap(sentence(text), max(16, cells - len(lead))) or [""]):
        yield compose((lead if number == 0 else " " * len(lead), "muted"), (piece, role))
