"""The difference of two sources: unified or side by side, words marked inside changed lines.

    view = DiffView(id="diff")
    view.show_diff(old_text, new_text, ops, "kernel.py")    # ops: klineage.lineage.line_ops(old, new)
    view.layout_mode = "split"                              # or "unified", or "auto" (by width)

Signs and line numbers are always there, so that nothing hangs on colour. Folded equal lines open with
enter; ``}`` and ``{`` go from change to change. ``line_numbers`` gives the lines under the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip

from klineage_tui.text.columns import width as cells
from klineage_tui.text.diff import Diff, LineOp
from klineage_tui.text.line import Line
from klineage_tui.widgets.diff_document import DiffDocument
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.source_view import Source

LayoutMode = Literal["auto", "split", "unified"]
SPLIT_FROM = 118  # cells of the view from which "auto" shows two columns
_CONTEXTS = (None, 12, 6)  # equal lines around a change; the first that fits the view, else 3


class DiffView(LineView):
    """See the module's text."""

    def __init__(
        self,
        *,
        layout_mode: LayoutMode = "auto",
        placeholder: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self._mode: LayoutMode = layout_mode
        self._around: int | None = 3
        self._compared: tuple[Diff, Source, Source] | None = None
        self._unfolded: frozenset[int] = frozenset()
        self._marked_old: frozenset[int] = frozenset()

    def show_diff(
        self, old: str, new: str, ops: Sequence[LineOp], filename: str, *, keep_position: bool = False
    ) -> None:
        """Compare two texts. ``ops`` are the operations on their lines, in order, covering both."""
        before, after = Source(old, filename), Source(new, filename)
        self._compared = Diff(before.lines, after.lines, ops), before, after
        self._unfolded = self._marked_old = frozenset()
        self._around = self._fitting()
        self._arrange(keep_position=keep_position)
        if not keep_position and (hunks := self._hunks()):
            self.move_to(hunks[0], tell=False)

    def clear(self) -> None:
        """Show nothing but the placeholder."""
        self._compared = None
        self.show(Lines())

    @property
    def layout_mode(self) -> LayoutMode:
        return self._mode

    @layout_mode.setter
    def layout_mode(self, mode: LayoutMode) -> None:
        self._mode = mode
        self._rearrange()

    @property
    def is_split(self) -> bool:
        """Whether two columns are shown now."""
        if self._mode == "auto":
            return self.inner_width >= SPLIT_FROM
        return self._mode == "split"

    def _fitting(self) -> int | None:
        """As much context as the view holds without scrolling, and at least three lines."""
        assert self._compared is not None
        rows = self._compared[0].split if self.is_split else self._compared[0].unified
        height = self.size.height
        return next((context for context in _CONTEXTS if len(rows(context)) <= height), 3)

    @property
    def changed(self) -> tuple[int, int]:
        """How many lines were added and removed."""
        return (self._compared[0].added, self._compared[0].removed) if self._compared else (0, 0)

    @property
    def line_numbers(self) -> tuple[int | None, int | None]:
        """The old and new line under the cursor, counted from 1 (for an editor)."""
        if not isinstance(self.document, DiffDocument) or not self.document.rows:
            return None, None
        row = self.document.rows[self.cursor_row]
        old, new = row.old, row.new
        return (None if old is None else old + 1), (None if new is None else new + 1)

    def _arrange(self, *, keep_position: bool) -> None:
        if self._compared is None:
            return
        diff, old, new = self._compared
        document = DiffDocument(
            diff, old, new, split=self.is_split, context=self._around, unfolded=self._unfolded
        )
        self.show(document, keep_position=keep_position)
        self._mark_rows()

    def mark_old_lines(self, lines: frozenset[int]) -> None:
        """Draw these lines of the old text, counted from 1, as marked, as long as this difference is shown."""
        self._marked_old = lines
        self._mark_rows()

    def go_to_old_line(self, line: int) -> None:
        """Put the cursor on a line of the old text, counted from 1; a fold that hides it opens."""
        if not isinstance(self.document, DiffDocument):
            return
        for row in self.document.rows:
            if row.kind == "fold" and row.old is not None and row.old < line <= row.old + row.hidden:
                self._unfolded |= {row.old}
                self._rearrange()
                break
        rows = self.document.rows
        self.move_to(next((i for i, row in enumerate(rows) if row.old == line - 1), 0), tell=False, margin=6)

    def _mark_rows(self) -> None:
        if isinstance(self.document, DiffDocument) and (self._marked_old or self.marked):
            rows = enumerate(self.document.rows)
            wanted = (
                i
                for i, row in rows
                if row.kind != "fold" and row.old is not None and row.old + 1 in self._marked_old
            )
            self.mark(frozenset(wanted))

    def _rearrange(self) -> None:
        """Arrange again and stay on the line that the cursor was on."""
        if not isinstance(self.document, DiffDocument):
            return
        rows = self.document.rows
        here = rows[self.cursor_row] if rows else None
        screen_row = self.cursor_row - self.scroll_offset.y
        self._arrange(keep_position=True)
        if here is None:
            return
        for index, row in enumerate(self.document.rows):
            if (here.old is not None and row.old == here.old) or (
                here.new is not None and row.new == here.new
            ):
                self.move_to(index, tell=False)
                self.scroll_to(y=max(0, index - screen_row), animate=False, force=True)
                return

    def on_resize(self, event: events.Resize) -> None:
        if isinstance(self.document, DiffDocument) and self.document.split != self.is_split:
            self._rearrange()
        self.virtual_size = self._extent()

    def _extent(self) -> Size:
        plain = super()._extent()
        if not isinstance(self.document, DiffDocument) or not self.document.split:
            return plain
        left, right = self._halves(self.inner_width)
        hidden = max(0, self.document.width + self.document.side_gutter - min(left, right))
        return Size(self.inner_width + hidden if hidden else 0, plain.height)

    def _halves(self, width: int) -> tuple[int, int]:
        room = width - 2  # the cursor's mark and the line between the sides
        return room // 2, room - room // 2

    def draw(self, row: int, current: bool, x: int, width: int) -> Strip:
        document = self.document
        if not isinstance(document, DiffDocument):
            return super().draw(row, current, x, width)
        x = x or self._shift(document, row, width)
        if not document.split:
            return super().draw(row, current, x, width)
        left, right = self._halves(width)
        base = self.base_style("", row, current)
        mark = self.gutter_strip((), 0, base, current)
        between = Strip([Segment("│", self.rich_style + self.roles["lane"])])
        one, other = document.sides(row)
        if one is other:  # a fold belongs to both sides
            return Strip.join([mark, self._half(one, row, current, x, width - 1)])
        return Strip.join(
            [mark, self._half(one, row, current, x, left), between, self._half(other, row, current, x, right)]
        )

    def _shift(self, document: DiffDocument, row: int, width: int) -> int:
        """How far a row is drawn to the left so that its first changed word is seen.

        Only rows whose change lies beyond the right edge are shifted, until the reader scrolls.
        """
        lines = document.sides(row) if document.split else (document.line(row),)
        room = min(self._halves(width)) if document.split else width - 1
        room -= document.side_gutter if document.split else document.gutter_width
        for line in lines:
            span = next((s for s in line.spans if s.role.endswith("-word")), None) if line else None
            if line is not None and span is not None:
                start, end = cells(line.text[: span.start]), cells(line.text[: span.end])
                return max(0, min(start - 1, end + 2 - room)) if end >= room else 0
        return 0

    def _half(self, line: Line | None, row: int, current: bool, x: int, width: int) -> Strip:
        base = self.base_style(line.base if line else "", row, current)
        if line is None:
            return Strip.blank(width, base)
        gutter = Strip([Segment(text, base + self.roles[role]) for text, role in line.gutter])
        assert isinstance(self.document, DiffDocument)
        gutter = gutter.crop_extend(0, self.document.side_gutter, base)
        shown = self.window(line, x, width - gutter.cell_length, base, row)
        return Strip.join([gutter, shown]).crop(0, width)

    # Actions

    def _hunks(self) -> list[int]:
        return self.document.hunks() if isinstance(self.document, DiffDocument) else []

    def action_next_hunk(self) -> None:
        """Go to the next change; at the last one, stay."""
        following = [row for row in self._hunks() if row > self.cursor_row]
        if following:
            self.move_to(following[0], margin=4)

    def action_previous_hunk(self) -> None:
        """Go to the change before; at the first one, stay."""
        earlier = [row for row in self._hunks() if row < self.cursor_row]
        if earlier:
            self.move_to(earlier[-1], margin=4)

    def action_open(self) -> None:
        """Open the fold under the cursor; elsewhere, tell the screen."""
        if isinstance(self.document, DiffDocument) and self.document.rows:
            row = self.document.rows[self.cursor_row]
            if row.kind == "fold" and row.old is not None:
                self._unfolded |= {row.old}
                self._rearrange()
                return
        super().action_open()
