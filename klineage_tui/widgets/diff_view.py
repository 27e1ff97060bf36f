"""The difference of two sources: unified or side by side, words marked inside changed lines.

    view = DiffView(id="diff")
    view.show_diff(old_text, new_text, ops, "kernel.py")    # ops: klineage.lineage.line_ops(old, new)
    view.layout_mode = "split"                              # or "unified", or "auto" (by width)
    view.toggle_layout()

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

from klineage_tui.text.diff import Diff, LineOp, Row
from klineage_tui.text.line import Line, Span
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.source_view import Source

LayoutMode = Literal["auto", "split", "unified"]
SPLIT_FROM = 120  # cells of the view from which "auto" shows two columns
_CONTEXTS = (None, 12, 6)  # equal lines around a change; the first that fits the view, else 3


class DiffDocument:
    """The rows of a difference in one layout."""

    def __init__(
        self,
        diff: Diff,
        old: Source,
        new: Source,
        *,
        split: bool,
        context: int | None,
        unfolded: frozenset[int],
    ) -> None:
        self._diff, self._old, self._new = diff, old, new
        self.split = split
        self.rows: list[Row] = (diff.split if split else diff.unified)(context, unfolded)
        self._digits = len(str(max(1, len(old), len(new))))
        self.side_gutter = self._digits + 3  # number, blank, sign, blank
        self.gutter_width = self.side_gutter if split else 2 * self._digits + 4
        self.width = max(old.width, new.width)

    def __len__(self) -> int:
        return len(self.rows)

    def selectable(self, index: int) -> bool:
        return True

    def line(self, index: int) -> Line:
        """The row in one column."""
        row = self.rows[index]
        if row.kind == "fold":
            return self._fold(row)
        sign, role = _SIGNS[row.kind]
        numbers = f"{self._number(row.old)} {self._number(row.new)} "
        gutter = ((numbers, "line-number"), (f"{sign} ", f"{role}-sign" if role else ""))
        text, spans = self._content(row, old_side=row.new is None)
        return Line(text, spans, role, gutter)

    def sides(self, index: int) -> tuple[Line | None, Line | None]:
        """The row in two columns; None where a side has nothing."""
        row = self.rows[index]
        if row.kind == "fold":
            fold = self._fold(row)
            return fold, fold  # one and the same: drawn across
        left = None if row.old is None else self._side(row, old_side=True)
        right = None if row.new is None else self._side(row, old_side=False)
        return left, right

    def hunks(self) -> list[int]:
        """The first row of each run of changed rows."""
        changed = [row.kind not in ("same", "fold") for row in self.rows]
        return [i for i, is_changed in enumerate(changed) if is_changed and not (i and changed[i - 1])]

    def _side(self, row: Row, *, old_side: bool) -> Line:
        number = row.old if old_side else row.new
        role = "" if row.kind == "same" else "diff-removed" if old_side else "diff-added"
        sign = " " if row.kind == "same" else "-" if old_side else "+"
        gutter = ((f"{self._number(number)} ", "line-number"), (f"{sign} ", f"{role}-sign" if role else ""))
        text, spans = self._content(row, old_side=old_side)
        return Line(text, spans, role, gutter)

    def _content(self, row: Row, *, old_side: bool) -> tuple[str, tuple[Span, ...]]:
        index = row.old if old_side else row.new
        assert index is not None
        pair = _pair_of(row)
        changed = self._diff.words(*pair)[0 if old_side else 1] if pair else ()
        role = "diff-removed-word" if old_side else "diff-added-word"
        return (self._old if old_side else self._new).drawn(index, changed, role)

    def _fold(self, row: Row) -> Line:
        text = f"⋯ {row.hidden} equal lines"
        if row.old is not None and (name := self._enclosing(row.old + row.hidden)):
            text += f"   {name}"
        return Line(text, (Span(0, len(text), "diff-fold"),), "", ((" " * self._digits, ""),))

    def _enclosing(self, before: int) -> str:
        """The last line at the margin before an old line: the definition that the next rows are in."""
        for index in range(min(before, len(self._old)) - 1, max(-1, before - 400), -1):
            line = self._old.lines[index]
            if line[:1].isalpha() or line[:1] == "_":
                return self._old.drawn(index)[0][:60].rstrip()
        return ""

    def _number(self, index: int | None) -> str:
        return " " * self._digits if index is None else f"{index + 1:>{self._digits}}"


_SIGNS = {
    "same": (" ", ""),
    "removed": ("-", "diff-removed"),
    "added": ("+", "diff-added"),
    "pair": ("~", ""),
}


def _pair_of(row: Row) -> tuple[int, int] | None:
    """The old and new line whose words are compared in this row."""
    if row.kind == "pair" and row.old is not None and row.new is not None:
        return row.old, row.new
    if row.kind == "removed" and row.old is not None and row.other is not None:
        return row.old, row.other
    if row.kind == "added" and row.new is not None and row.other is not None:
        return row.other, row.new
    return None


class DiffView(LineView):
    """See the module's text."""

    def __init__(
        self,
        *,
        layout_mode: LayoutMode = "auto",
        placeholder: str = "",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(placeholder=placeholder, id=id, classes=classes)
        self._mode: LayoutMode = layout_mode
        self._folded = True
        self._around: int | None = 3
        self._compared: tuple[Diff, Source, Source] | None = None
        self._unfolded: frozenset[int] = frozenset()

    def show_diff(
        self, old: str, new: str, ops: Sequence[LineOp], filename: str, *, keep_position: bool = False
    ) -> None:
        """Compare two texts. ``ops`` are the operations on their lines, in order, covering both."""
        before, after = Source(old, filename), Source(new, filename)
        self._compared = Diff(before.lines, after.lines, ops), before, after
        self._unfolded = frozenset()
        self._around = self._fitting() if self._folded else None
        self._arrange(keep_position=keep_position)
        if not keep_position and (hunks := self._hunks()):
            self.move_to(hunks[0], tell=False)

    def clear(self) -> None:
        """Show nothing but the placeholder."""
        from klineage_tui.widgets.lines import Lines

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
            return self.size.width >= SPLIT_FROM
        return self._mode == "split"

    def toggle_layout(self) -> LayoutMode:
        """The other layout, at the same place. Returns what is shown now."""
        self.layout_mode = "unified" if self.is_split else "split"
        return self.layout_mode

    def toggle_context(self) -> None:
        """Fold the equal lines, or show them all."""
        self._folded = not self._folded
        self._around = self._fitting() if self._folded else None
        self._rearrange()

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
                self.scroll_to(y=max(0, index - screen_row), animate=False)
                return

    def on_resize(self, event: events.Resize) -> None:
        if isinstance(self.document, DiffDocument) and self.document.split != self.is_split:
            self._rearrange()
        self.virtual_size = self._extent()

    def _extent(self) -> Size:
        plain = super()._extent()
        if not isinstance(self.document, DiffDocument) or not self.document.split:
            return plain
        left, right = self._halves(self.size.width)
        hidden = max(0, self.document.width + self.document.side_gutter - min(left, right))
        return Size(self.size.width + hidden if hidden else 0, plain.height)

    def _halves(self, width: int) -> tuple[int, int]:
        room = width - 2  # the cursor's mark and the line between the sides
        return room // 2, room - room // 2

    def draw(self, row: int, current: bool, x: int, width: int) -> Strip:
        document = self.document
        if not isinstance(document, DiffDocument) or not document.split:
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

    next_hunk = action_next_hunk
    previous_hunk = action_previous_hunk

    def action_open(self) -> None:
        """Open the fold under the cursor; elsewhere, tell the screen."""
        if isinstance(self.document, DiffDocument) and self.document.rows:
            row = self.document.rows[self.cursor_row]
            if row.kind == "fold" and row.old is not None:
                self._unfolded |= {row.old}
                self._rearrange()
                return
        super().action_open()
