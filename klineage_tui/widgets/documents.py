"""What a view of lines shows, and how the roles of one line lie over each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from klineage_tui.text import columns
from klineage_tui.text.line import Line, Span


class Document(Protocol):
    """What a ``LineView`` shows."""

    def __len__(self) -> int: ...
    @property
    def width(self) -> int: ...  # cells of the widest line, without the gutter
    @property
    def gutter_width(self) -> int: ...  # cells, the same for every line
    def line(self, index: int) -> Line: ...
    def selectable(self, index: int) -> bool: ...  # may the cursor rest there?


class Lines:
    """A document made of ready lines. ``selectable`` names the rows for the cursor; None: all of them."""

    def __init__(self, lines: Sequence[Line] = (), selectable: frozenset[int] | None = None) -> None:
        self._lines = lines
        self._selectable = selectable
        self.width = columns.widest([line.text for line in lines])
        self.gutter_width = max(
            (sum(columns.width(text) for text, _ in line.gutter) for line in lines), default=0
        )

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, index: int) -> Line:
        return self._lines[index]

    def selectable(self, index: int) -> bool:
        return self._selectable is None or index in self._selectable


def hidden_role(line: Line, start: int, end: int | None) -> str:
    """The role of a changed word that reaches into the cells ``start`` to ``end``, else ``muted``."""
    for span in line.spans:
        if span.role.endswith("-word"):
            first, last = columns.width(line.text[: span.start]), columns.width(line.text[: span.end])
            if last > start and (end is None or first < end):
                return span.role
    return "muted"


def layered(edges: Sequence[int], spans: Sequence[Span]) -> list[tuple[str, ...]]:
    """For each piece between two edges, the roles that cover it, in the order of the spans."""
    place = {edge: number for number, edge in enumerate(edges)}
    layers: list[tuple[str, ...]] = [()] * max(0, len(edges) - 1)
    for span in spans:
        for number in range(place.get(span.start, 0), place.get(span.end, len(edges) - 1)):
            layers[number] = (*layers[number], span.role)
    return layers
