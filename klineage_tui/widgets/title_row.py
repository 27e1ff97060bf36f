"""One dim row with something at each end: the heading of the app and the title of a pane."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from klineage_tui.text.columns import clip

Parts = Sequence[tuple[str, str]]  # (sanitized text, style), e.g. ("GATE", "bold")


class TitleRow(Widget):
    """``show`` takes styled parts for the left end and plain text for the right.

    Where both do not fit, the left end keeps two thirds at most.
    """

    DEFAULT_CSS = """
    TitleRow { height: 1; color: $muted; padding: 0 1; }
    """

    def __init__(self, left: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: Parts = ((left, ""),)
        self._right = ""

    def show(self, left: str | Parts, right: str = "") -> None:
        parts: Parts = ((left, ""),) if isinstance(left, str) else tuple(left)
        if (parts, right) != (self._left, self._right):
            self._left, self._right = parts, right
            self.refresh()

    @property
    def text(self) -> str:
        """What is shown, without styles."""
        return "".join(text for text, _ in self._left) + (f"  {self._right}" if self._right else "")

    def render(self) -> Content:
        width = self.content_size.width
        left = sum(cell_len(text) for text, _ in self._left)
        right = clip(self._right, max(width - left - 2, width // 3))
        room = max(0, width - cell_len(right) - (2 if right else 0))
        shown: list[tuple[str, str]] = []
        used = 0
        for text, style in self._left:
            piece = clip(text, room - used)
            shown.append((piece, style))
            used += cell_len(piece)
        filler = " " * max(0, width - used - cell_len(right))
        return Content.assemble(*shown, filler, (right, "$muted"))
