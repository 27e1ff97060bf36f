"""A difference of which some changes are chosen: each has a box, and those that are left out are dim.

view = HunkView(id="hunks")
view.show_diff(old_text, new_text, ops, "kernel.py")     # every change is chosen
view.toggle()                                            # the change under the cursor
view.chosen                                              # their numbers, from 1
"""

from __future__ import annotations

from collections.abc import Sequence

from klineage_tui.text.diff import Diff, LineOp
from klineage_tui.text.line import Line, Span
from klineage_tui.widgets.diff_document import DiffDocument
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.source_view import Source

_BOX = 4  # cells: "[x] "


class HunkDocument(DiffDocument):
    """The rows of a difference in one column, a box before the first row of each change."""

    def __init__(
        self,
        diff: Diff,
        old: Source,
        new: Source,
        *,
        context: int | None,
        unfolded: frozenset[int],
        chosen: frozenset[int],
    ) -> None:
        super().__init__(diff, old, new, split=False, context=context, unfolded=unfolded)
        self.gutter_width += _BOX
        self._chosen = chosen
        self._first = {row: number for number, row in enumerate(self.hunks(), 1)}
        self.numbers = _numbers(len(self.rows), self._first, [row.kind for row in self.rows])

    def line(self, index: int) -> Line:
        line = super().line(index)
        number = self.numbers[index]
        if number is None:
            return Line(line.text, line.spans, line.base, ((" " * _BOX, ""), *line.gutter))
        chosen = number in self._chosen
        box = ("[x] " if chosen else "[ ] ") if index in self._first else " " * _BOX
        if chosen:
            return Line(line.text, line.spans, line.base, ((box, "accent"), *line.gutter))
        dim = (Span(0, len(line.text), "muted"),)
        gutter = tuple((text, "muted") for text, _ in line.gutter)
        return Line(line.text, dim, "", ((box, "muted"), *gutter))


def _numbers(rows: int, first: dict[int, int], kinds: Sequence[str]) -> list[int | None]:
    """The number of the change that each row belongs to, None for the rows between them."""
    numbers: list[int | None] = []
    current: int | None = None
    for row in range(rows):
        current = first.get(row, current) if kinds[row] not in ("same", "fold") else None
        numbers.append(current)
    return numbers


class HunkView(DiffView):
    """See the module's text. Always in one column."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(layout_mode="unified", id=id)
        self.chosen: frozenset[int] = frozenset()
        self.count = 0

    def show_diff(
        self, old: str, new: str, ops: Sequence[LineOp], filename: str, *, keep_position: bool = False
    ) -> None:
        self.count = sum(op.tag != "equal" for op in ops)
        self.chosen = frozenset(range(1, self.count + 1))
        super().show_diff(old, new, ops, filename, keep_position=keep_position)

    def toggle(self) -> None:
        """Take the change under the cursor, or leave it out; between changes, the next one (at the end, the last)."""
        if (number := self._here()) is not None:
            self.chosen = self.chosen ^ {number}
            self._rearrange()

    def toggle_all(self) -> None:
        """Take every change; where all are taken, none."""
        every = frozenset(range(1, self.count + 1))
        self.chosen = frozenset() if self.chosen == every else every
        self._rearrange()

    def _here(self) -> int | None:
        if not isinstance(self.document, HunkDocument):
            return None
        after = [number for number in self.document.numbers[self.cursor_row :] if number is not None]
        return after[0] if after else self.count or None

    def _arrange(self, *, keep_position: bool) -> None:
        if self._compared is None:
            return
        diff, old, new = self._compared
        document = HunkDocument(
            diff, old, new, context=self._around, unfolded=self._unfolded, chosen=self.chosen
        )
        self.show(document, keep_position=keep_position)
