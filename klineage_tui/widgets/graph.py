"""The lineage as a column to step through.

    graph = LineageGraph(id="graph")
    graph.show_graph(graph_of(steps, walk, rejected), select=commit)
    graph.step                      # what the cursor is on
    graph.mark_step(commit)         # the state to compare with

It posts ``LineView.Moved`` for every step taken; the rows between states take no cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from klineage_tui.presentation.history import Graph, graph_line
from klineage_tui.text.line import Line
from klineage_tui.widgets.lines import LineView

if TYPE_CHECKING:
    from klineage.lineage import Step


class GraphDocument:
    """A graph as lines of a given width, made when they are drawn."""

    gutter_width = 0

    def __init__(self, graph: Graph, cells: int, marked: str) -> None:
        self.graph = graph
        self.width = max(1, cells)
        self._marked = marked

    def __len__(self) -> int:
        return len(self.graph.rows)

    def line(self, index: int) -> Line:
        return graph_line(self.graph, index, self.width, marked=self._marked)

    def selectable(self, index: int) -> bool:
        return self.graph.rows[index].kind != "edge"


class LineageGraph(LineView):
    """See the module's text."""

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self._graph = Graph()
        self._compared_with = ""

    def show_graph(self, graph: Graph, *, select: str = "") -> None:
        """Show a graph with the cursor on the commit ``select``, or at its head when that is not in it."""
        self._graph = graph
        self._draw(keep_position=False)
        row = graph.row_of(select) if select else -1
        self.move_to(row if row >= 0 else max(0, graph.row_of(graph.head)), tell=False)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def step(self) -> Step | None:
        """The state or rejected attempt under the cursor; None in an empty graph."""
        return self._graph.rows[self.cursor_row].step if self._graph.rows else None

    @property
    def host(self) -> Step | None:
        """The state that the row under the cursor is, or hangs on."""
        rows = reversed(self._graph.rows[: self.cursor_row + 1])
        return next((row.step for row in rows if row.kind == "state"), None)

    def select(self, commit: str, *, tell: bool = True) -> bool:
        """Put the cursor on a commit. False when it is not in this graph."""
        row = self._graph.row_of(commit)
        if row >= 0:
            self.move_to(row, tell=tell)
        return row >= 0

    def mark_step(self, commit: str) -> None:
        """Show a commit as the one to compare with; empty for none."""
        self._compared_with = commit
        self._draw(keep_position=True)

    def _draw(self, *, keep_position: bool) -> None:
        cells = self.scrollable_content_region.width - 1
        self.show(GraphDocument(self._graph, cells, self._compared_with), keep_position=keep_position)

    def on_resize(self, event: events.Resize) -> None:
        self._draw(keep_position=True)
