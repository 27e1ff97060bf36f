"""A view of many lines that draws only the visible ones.

    view = LineView(id="log", placeholder="Press g to gate this proposal.")
    view.show(Lines([compose(("PASS", "verdict-pass"), "  3 seeds")]))
    view.show(Lines(lines), keep_position=True)     # the same place, new content

It posts ``LineView.Moved`` when the cursor line changes and ``LineView.Opened`` on enter or a double
click. ``cursor=False`` makes it a page that scrolls. A document is anything with ``len``, ``width``,
``gutter_width`` and ``line(index)``; what it returns must already be sanitized.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from klineage_tui.actions import bindings_for
from klineage_tui.text.line import Line
from klineage_tui.widgets.documents import Document, Lines, hidden_role, layered
from klineage_tui.widgets.roles import Roles

__all__ = ["Document", "LineView", "Lines"]

_MARK = "▌"
_MORE, _LESS = "›", "‹"


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """See the module's text. ``cursor_row`` is the cursor's row; ``marked`` holds rows drawn as marked."""

    DEFAULT_CSS = """
    LineView {
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        scrollbar-gutter: stable;
    }
    """
    BINDINGS = [*bindings_for("view")]

    class Moved(Message):
        """The cursor came to rest somewhere, moved by the reader."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

        @property
        def row(self) -> int:
            """Where the cursor is by now: the view may have been drawn again since, with its cursor elsewhere."""
            return self.view.cursor_row

        @property
        def control(self) -> LineView:
            return self.view

    class Opened(Moved):
        """Enter or a double click on ``row``."""

    class Widened(Message):
        """The view has another width, so that lines which were wrapped for it have to be made again."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

    def __init__(
        self,
        document: Document | None = None,
        *,
        cursor: bool = True,
        placeholder: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.document: Document = document or Lines()
        self.placeholder = placeholder
        self.has_cursor = cursor
        self.cursor_row = 0
        self.marked: frozenset[int] = frozenset()
        self._height = self._width = 0
        self._unrevealed = False
        self.set_reactive(LineView.virtual_size, self._extent())
        self._strips: LRUCache[tuple[int, bool, int, int], Strip] = LRUCache(1024)
        self._roles: Roles | None = None

    # The document

    def show(self, document: Document, *, keep_position: bool = False) -> None:
        """Show another document, from its top or (``keep_position``) from where the reader is."""
        self.document = document
        self._strips.clear()
        row = self.cursor_row if keep_position else 0
        self.cursor_row = self._nearest(row, 1)
        self.virtual_size = self._extent()
        if not keep_position:
            self.scroll_to(0, 0, animate=False, force=True)
        self.refresh()

    def mark(self, rows: frozenset[int]) -> None:
        """Draw these rows, and no others, as marked."""
        self.marked = rows
        self._strips.clear()
        self.refresh()

    def move_to(self, row: int, *, tell: bool = True, margin: int = 2) -> None:
        """Put the cursor on ``row`` (or the nearest row that takes it) and bring it into view."""
        row = self._nearest(row, 1 if row >= self.cursor_row else -1)
        moved, before = row != self.cursor_row, self.cursor_row
        self.cursor_row = row
        if moved:
            self.refresh_line(before)
            self.refresh_line(row)
        self._reveal(row, margin)
        if moved and tell:
            self.post_message(self.Moved(self))

    def _nearest(self, row: int, direction: int) -> int:
        last = len(self.document) - 1
        if last < 0:
            return 0
        row = max(0, min(row, last))
        for step in (direction, -direction):
            candidate = row
            while 0 <= candidate <= last:
                if self.document.selectable(candidate):
                    return candidate
                candidate += step
        return row

    def _reveal(self, row: int, margin: int) -> None:
        height = self.scrollable_content_region.height
        self._unrevealed = height <= 0  # not laid out yet: the first resize makes up for it
        if self._unrevealed:
            return
        margin = min(margin, (height - 1) // 2)
        top = self.scroll_offset.y
        if row < top + margin:
            self.scroll_to(y=max(0, row - margin), animate=False, force=True)
        elif row > top + height - 1 - margin:
            self.scroll_to(y=row - height + 1 + margin, animate=False, force=True)

    def _extent(self) -> Size:
        gutter = self.document.gutter_width + self.has_cursor
        return Size(gutter + self.document.width, len(self.document))

    # Drawing

    @property
    def inner_width(self) -> int:
        """The cells of a row, beside the place of the scroll bar."""
        return self.scrollable_content_region.width

    @property
    def roles(self) -> Roles:
        """The theme's styles for this view."""
        if self._roles is None:
            _, background = self.background_colors
            self._roles = Roles(
                self.app.theme_variables,
                background,
                plain=self.app.no_color,
                ansi=self.app.native_ansi_color,
            )
        return self._roles

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._roles = None
        self._strips.clear()

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        seen = self.scroll_offset.y <= self.cursor_row < self.scroll_offset.y + self._height
        if event.size.width != self._width:
            self._width = event.size.width
            self.post_message(self.Widened(self))
        self._height = event.size.height
        if (seen and self.has_cursor) or self._unrevealed:
            self.call_after_refresh(self._reveal, self.cursor_row, 0)

    def render_line(self, y: int) -> Strip:
        x, top = self.scroll_offset
        row, width = top + y, self.inner_width
        if row >= len(self.document):
            return self._blank(y, self.size.width)
        current = self.has_cursor and row == self.cursor_row and self.document.selectable(row)
        if self.text_selection is not None:
            return self.draw(row, current, x, width).crop_extend(0, self.size.width, self.rich_style)
        key = (row, current, x, width)
        strip = self._strips.get(key)
        if strip is None:
            drawn = self.draw(row, current, x, width)
            # Where not even the gutter fits, it is cut.
            strip = drawn.crop(0, width).crop_extend(0, self.size.width, self.rich_style)
            self._strips[key] = strip
        return strip

    def draw(self, row: int, current: bool, x: int, width: int) -> Strip:
        """One row, ``width`` cells wide, its text scrolled ``x`` cells to the left."""
        line = self.document.line(row)
        base = self.base_style(line.base, row, current)
        left = self.gutter_strip(line.gutter, self.document.gutter_width, base, current)
        room = width - left.cell_length
        return Strip.join([left, self.window(line, x, room, base, row)])

    def base_style(self, role: str, row: int, current: bool) -> Style:
        """The style under a whole row: the widget's own, the line's, then mark and cursor."""
        style = self.rich_style + self.roles[role]
        if row in self.marked:
            style += self.roles["marked-line"]
        return style + self.roles["cursor-line"] if current else style

    def gutter_strip(self, parts: Sequence[tuple[str, str]], cells: int, base: Style, current: bool) -> Strip:
        """The cursor's mark and the gutter, exactly as wide for every row."""
        segments = []
        if self.has_cursor:
            mark = _MARK if current else " "
            role = "cursor-mark" if self.has_focus else "lane"
            segments.append(Segment(mark, base + self.roles[role]))
        segments += [Segment(text, base + self.roles[role]) for text, role in parts]
        return Strip(segments).crop_extend(0, cells + self.has_cursor, base)

    def window(self, line: Line, x: int, cells: int, base: Style, row: int) -> Strip:
        """``cells`` cells of a line from ``x`` on, with a mark at each end where it goes on.

        A mark has the colour of the changed words that it hides, if there are any.
        """
        if cells <= 0:
            return Strip([])
        text = self.text_strip(line, base, row)
        shown = text.crop_extend(x, x + cells, base).apply_offsets(x, row)
        if text.cell_length > x + cells:
            mark = Strip([Segment(_MORE, base + self.roles[hidden_role(line, x + cells - 1, None)])])
            shown = Strip.join([shown.crop(0, cells - 1), mark])
        if x and text.cell_length:
            mark = Strip([Segment(_LESS, base + self.roles[hidden_role(line, 0, x + 1)])])
            shown = Strip.join([mark, shown.crop(1)])
        return shown

    def text_strip(self, line: Line, base: Style, row: int) -> Strip:
        """The whole text of a line with its roles and the reader's selection, uncropped."""
        text, spans = line.text, line.spans
        selected = None
        if self.text_selection is not None and (part := self.text_selection.get_span(row)):
            selected = (part[0], len(text) if part[1] == -1 else part[1])
        cuts = {0, len(text)}
        for span in spans:
            cuts.update((span.start, span.end))
        if selected:
            cuts.update(selected)
        edges = sorted(cut for cut in cuts if 0 <= cut <= len(text))
        styles = layered(edges, spans)
        segments = []
        for start, end, names in zip(edges, edges[1:], styles, strict=False):
            style = base
            for name in names:
                style += self.roles[name]
            if selected and selected[0] <= start < selected[1]:
                style += self.screen.get_component_rich_style("screen--selection") + self.roles["selected"]
            segments.append(Segment(text[start:end], style))
        return Strip(segments)

    def _blank(self, y: int, width: int) -> Strip:
        base = self.rich_style
        if len(self.document) or not self.placeholder:
            return Strip.blank(width, base)
        words = textwrap.wrap(self.placeholder, max(8, width - 2))
        text = " " + words[y] if y < len(words) else ""
        return Strip([Segment(text, base + self.roles["muted"])]).crop_extend(0, width, base)

    # Selecting text with the mouse

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        last = len(self.document) - 1
        first = selection.start.y if selection.start else 0
        end = selection.end.y if selection.end else last
        texts = [""] * first + [self.document.line(row).text for row in range(first, min(end, last) + 1)]
        return selection.extract("\n".join(texts)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    # Actions

    def action_line_down(self) -> None:
        self._step(1)

    def action_line_up(self) -> None:
        self._step(-1)

    def action_page_down(self) -> None:
        self._step(max(1, self.scrollable_content_region.height - 1))

    def action_page_up(self) -> None:
        self._step(-max(1, self.scrollable_content_region.height - 1))

    def action_to_top(self) -> None:
        self.scroll_to(x=0, animate=False, force=True)
        self._step(-len(self.document))

    def action_to_end(self) -> None:
        self._step(len(self.document))

    def action_scroll_left(self) -> None:
        self.scroll_to(x=self.scroll_offset.x - 8, animate=False, force=True)

    def action_scroll_right(self) -> None:
        self.scroll_to(x=self.scroll_offset.x + 8, animate=False, force=True)

    def action_open(self) -> None:
        if not len(self.document):
            raise SkipAction
        self.post_message(self.Opened(self))

    def action_next_hunk(self) -> None:
        raise SkipAction  # only a difference has hunks

    def action_previous_hunk(self) -> None:
        raise SkipAction

    def _step(self, rows: int) -> None:
        if not self.has_cursor:
            self.scroll_to(y=self.scroll_offset.y + rows, animate=False, force=True)
            return
        target = self.cursor_row + rows
        row = self._nearest(target, 1 if rows > 0 else -1)
        # A row that takes no cursor never swallows the key: the nearest one behind us is no move.
        self.move_to(row if (row - self.cursor_row) * rows > 0 else self.cursor_row)

    def on_focus(self) -> None:
        self._redraw_cursor()

    def on_blur(self) -> None:
        self._redraw_cursor()

    def _redraw_cursor(self) -> None:
        self._strips.clear()
        self.refresh_line(self.cursor_row)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not self.has_cursor:
            return
        row = offset.y + self.scroll_offset.y
        if row < len(self.document):
            row = self._nearest(row, 1)
            self.move_to(row, margin=0)
            if event.chain == 2:
                self.post_message(self.Opened(self))

    def refresh_line(self, y: int) -> None:
        top = self.scroll_offset.y
        if top <= y < top + self.size.height:
            self.refresh(Region(0, y - top, self.size.width, 1))
