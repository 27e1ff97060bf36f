"""The Ablation place as drawn: the matrix of a lineage, and what is known of the step under the cursor. Nothing is read here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container

from klineage_tui.card_ablation import Matrix
from klineage_tui.presentation.ablation_matrix import known_how, matrix_lines, row_lines
from klineage_tui.screens.place import Place
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.pane import Pane
from klineage_tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from klineage.skill.ablation import Row

    from klineage_tui.screens.runs import Run


class AblationPanes(Place):
    """Geometry and drawing."""

    CSS_PATH = "ablation.tcss"

    def compose(self) -> ComposeResult:
        yield TitleRow("Ablation", id="heading")
        with Container(id="ablation-panes"):
            yield Pane("WORTH", LineView(id="matrix-view", placeholder="Opening…"), id="matrix")
            yield Pane("WHY", LineView(id="worth-view", cursor=False), id="worth")
        yield ActionBar(self.PLACE, self.host.keys_in_force)

    def on_mount(self) -> None:
        self.matrix_view.focus()

    @property
    def matrix_view(self) -> LineView:
        return self.query_one("#matrix-view", LineView)

    @property
    def worth_view(self) -> LineView:
        return self.query_one("#worth-view", LineView)

    @property
    def _cells(self) -> int:
        return max(40, self.size.width - 5)

    def show_nothing(self, lineage: str, why: str) -> None:
        """In place of a matrix: the sentence that says why there is none."""
        self.query_one("#heading", TitleRow).show(_heading(lineage))
        self.query_one("#matrix", Pane).entitle("WORTH")
        self.query_one("#worth", Pane).entitle("WHY")
        self.matrix_view.placeholder = sanitize(why)
        self.matrix_view.show(Lines())
        self.worth_view.show(Lines())

    def show_matrix(self, matrix: Matrix, commit: str) -> None:
        """The matrix, the cursor on the step of ``commit``, if it is there."""
        found, view = matrix.ablation, self.matrix_view
        target = sanitize(f"{found.workload} on {found.platform}")
        self.query_one("#heading", TitleRow).show(_heading(found.lineage), target)
        how = sanitize(known_how(found, matrix.measured))
        more = "" if matrix.measured else f"{self.key_of('ablation-measure')} measures it"
        self.query_one("#matrix", Pane).entitle([("WORTH  ", ""), (how, "$foreground")], more)
        lines = matrix_lines(found, self._cells)
        view.show(Lines(lines, frozenset(range(1, len(lines)))), keep_position=True)
        at = next((number for number, row in enumerate(found.rows, 1) if row.commit == commit), 1)
        view.move_to(at, tell=False)

    def show_row(self, matrix: Matrix, row: Row) -> None:
        """Everything that is known of one step."""
        card = matrix.card_of(row)
        opens = f"{self.key_of('open')} opens its card" if card else ""
        self.query_one("#worth", Pane).entitle([("WHY  ", ""), (sanitize(row.name), "$foreground")], opens)
        self.worth_view.show(Lines(row_lines(row, card, matrix.offers.get(row.number), self._cells)))

    def show_run(self, run: Run) -> None:
        """What runs, or has just ended, in place of the step."""
        left, right = run.heading()
        self.query_one("#worth", Pane).entitle(left, right)
        lines = run.lines(self._cells, self.key_of("ablation-leave"))
        self.worth_view.show(Lines(lines), keep_position=True)


def _heading(lineage: str) -> list[tuple[str, str]]:
    return [("Ablation", "bold"), (f"  {sanitize(lineage)}", "$foreground")]
