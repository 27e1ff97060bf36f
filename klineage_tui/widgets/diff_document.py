"""The rows of a difference as lines: one column, or two sides."""

from __future__ import annotations

from klineage_tui.text.diff import Diff, Row
from klineage_tui.text.line import Line, Span
from klineage_tui.widgets.source_view import Source


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
