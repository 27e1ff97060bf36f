"""One line of a view: safe text, and which parts of it play which role.

A role is a word (``syntax-keyword``, ``verdict-pass``, ``muted``); the widgets turn it into colours
through the theme. Nothing here knows a colour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a line's text play ``role``. Later spans are drawn over earlier."""

    start: int
    end: int
    role: str


@dataclass(frozen=True, slots=True)
class Line:
    """What a ``LineView`` draws as one row.

    text must be sanitized. gutter is drawn at the left, as (text, role) parts, and does not scroll
    sideways. base is the role of the whole row (a background); fill draws it to the right edge.
    """

    text: str
    spans: tuple[Span, ...] = ()
    base: str = ""
    gutter: tuple[tuple[str, str], ...] = field(default=())


def compose(*parts: tuple[str, str] | str, base: str = "", gutter: tuple[tuple[str, str], ...] = ()) -> Line:
    """A line from (text, role) parts; a bare string plays no role."""
    text = ""
    spans: list[Span] = []
    for part in parts:
        piece, role = (part, "") if isinstance(part, str) else part
        if role and piece:
            spans.append(Span(len(text), len(text) + len(piece), role))
        text += piece
    return Line(text, tuple(spans), base, gutter)
