"""A kernel's source: line numbers, syntax colours, controls made visible.

view = SourceView(id="kernel")
view.show_source(kernel.text, kernel.filename)
view.show_source(text, "kernel.py", labels=[("K3 autotune", "lane"), ...])   # one a line: blame
"""

from __future__ import annotations

from collections.abc import Sequence

from klineage_tui.text import columns
from klineage_tui.text.highlight import Highlighter, language_of, split_lines
from klineage_tui.text.line import Line, Span
from klineage_tui.text.sanitize import display, sanitize
from klineage_tui.widgets.lines import LineView

NO_NEWLINE = " ‹no newline›"


class Source:
    """One text as lines: drawn text and syntax spans, computed for the rows that are asked for."""

    def __init__(self, text: str, filename: str) -> None:
        self.lines, self.ends_with_newline = split_lines(text)
        self._highlighter = Highlighter(self.lines, language_of(filename))

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def width(self) -> int:
        """Cells of the widest line."""
        widest = columns.widest([sanitize(line) for line in self.lines])
        return widest + (0 if self.ends_with_newline else len(NO_NEWLINE))

    def drawn(
        self, index: int, changed: Sequence[tuple[int, int]] = (), role: str = ""
    ) -> tuple[str, tuple[Span, ...]]:
        """The text of a line as drawn, and its spans; ``changed`` characters get ``role`` on top."""
        shown = display(self.lines[index])
        spans = [
            Span(shown.column(start), shown.column(end), name)
            for start, end, name in self._highlighter.spans(index)
        ]
        spans += [Span(shown.column(start), shown.column(end), role) for start, end in changed]
        text = shown.text
        if index == len(self.lines) - 1 and not self.ends_with_newline:
            spans.append(Span(len(text), len(text) + len(NO_NEWLINE), "muted"))
            text += NO_NEWLINE
        return text, tuple(spans)


class SourceDocument:
    """A source with line numbers and, when given, a label before each line."""

    def __init__(self, source: Source, labels: Sequence[tuple[str, str]] = ()) -> None:
        self._source = source
        self._digits = len(str(max(1, len(source))))
        self._labels = labels
        self._label_width = min(24, columns.widest([text for text, _ in labels]))
        self.width = source.width
        self.gutter_width = self._digits + 2 + (self._label_width + 1 if labels else 0)

    def __len__(self) -> int:
        return len(self._source)

    def selectable(self, index: int) -> bool:
        return True

    def line(self, index: int) -> Line:
        text, spans = self._source.drawn(index)
        gutter: tuple[tuple[str, str], ...] = ((f"{index + 1:>{self._digits}}  ", "line-number"),)
        if self._labels:
            label, role = self._labels[index]
            gutter = ((columns.fit(label, self._label_width) + " ", role), *gutter)
        return Line(text, spans, gutter=gutter)


class SourceView(LineView):
    """See the module's text."""

    def show_source(
        self,
        text: str,
        filename: str,
        *,
        labels: Sequence[tuple[str, str]] = (),
        keep_position: bool = False,
    ) -> None:
        """Show a text, coloured by the language of ``filename``.

        ``labels`` are (text, role) pairs, sanitized, one for each line of the text.
        """
        self.show(SourceDocument(Source(text, filename), labels), keep_position=keep_position)
