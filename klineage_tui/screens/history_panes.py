"""The History place as drawn: lineage, code, reasons. Nothing is read and nothing decided here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container, Vertical

from klineage_tui.presentation.blame import blame_labels
from klineage_tui.presentation.details import reason_lines
from klineage_tui.presentation.git_commands import git_lines
from klineage_tui.presentation.titles import comparison_title, name_of
from klineage_tui.screens.place import once_drawn
from klineage_tui.screens.side_tabs import SideTabs
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.graph import LineageGraph
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.pane import Pane, TabRow
from klineage_tui.widgets.source_view import SourceView
from klineage_tui.widgets.title_row import TitleRow
from klineage_tui.widgets.waterfall import Waterfall

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.lineage import Op, Step


@dataclass(frozen=True)
class Comparison:
    """Two states read from git; ``old`` is None for the first state, which is shown whole."""

    old: Step | None
    new: Step
    before: Kernel | None
    after: Kernel
    ops: Sequence[Op] = ()

    @property
    def key(self) -> tuple[str, str]:
        return (self.old.commit if self.old is not None else "", self.new.commit)


class HistoryPanes(SideTabs):
    """Geometry and drawing. Wide: the lineage beside the code; narrow: above tabs."""

    CSS_PATH = "history.tcss"
    PANES = ("graph", "code", "reasons")

    def __init__(self) -> None:
        super().__init__()
        self.code = "compare"  # what the code pane shows: "compare", "blame" or "waterfall"
        self._comparison: Comparison | None = None
        self._reasons_of: Step | None = None

    def compose(self) -> ComposeResult:
        yield TitleRow("History", id="heading")
        with Container(id="panes"):
            yield LineageGraph(id="graph", placeholder="Opening…")
            with Vertical(id="side", classes="-tab-code"):
                yield TabRow(("Code", "Why"))
                yield Pane(
                    "CODE",
                    DiffView(id="diff", placeholder="These two states are the same."),
                    SourceView(id="source"),
                    Waterfall(id="waterfall"),
                    id="code",
                )
                yield Pane("WHY", LineView(id="why", cursor=False), LineView(id="commands"), id="reasons")
        yield ActionBar(self.PLACE, self.host.keys_in_force)

    def on_mount(self) -> None:
        self.graph.focus()
        self.query_one("#commands").display = False
        self._show_code("compare")
        self.watch(self.app, "diff_layout", self._layout_changed)

    # -- parts --------------------------------------------------------------------------------------

    @property
    def graph(self) -> LineageGraph:
        return self.query_one("#graph", LineageGraph)

    @property
    def diff(self) -> DiffView:
        return self.query_one("#diff", DiffView)

    @property
    def source(self) -> SourceView:
        return self.query_one("#source", SourceView)

    @property
    def waterfall(self) -> Waterfall:
        return self.query_one("#waterfall", Waterfall)

    @property
    def code_view(self) -> LineView:
        """The view that the code pane shows now."""
        return next(view for view in (self.diff, self.source, self.waterfall) if view.display)

    # -- code ---------------------------------------------------------------------------------------

    def _show_code(self, name: str) -> None:
        whole = self._comparison is not None and self._comparison.before is None
        had_focus = self.query_one("#code").has_focus_within
        self.code = name
        self.diff.display = name == "compare" and not whole
        self.source.display = name == "blame" or (name == "compare" and whole)
        self.waterfall.display = name == "waterfall"
        if had_focus:
            self.code_view.focus()

    def show_comparison(self, found: Comparison) -> None:
        """Both states, or the first one whole."""
        self._comparison = found
        if found.before is None:
            self.source.show_source(found.after.text, found.after.filename)
        else:
            self.diff.show_diff(found.before.text, found.after.text, found.ops, found.after.filename)
        self._show_code("compare")
        self._entitle_comparison()

    def _entitle_comparison(self) -> None:
        found = self._comparison
        if found is not None and self.code == "compare":
            layout = "" if found.old is None else "side by side" if self.diff.is_split else "unified"
            left, right = comparison_title(found.old, found.new, found.after, self.diff.changed, layout)
            self.query_one("#code", Pane).entitle(left, right)

    def await_blame(self) -> None:
        self._show_code("blame")
        self.query_one("#code", Pane).entitle("BLAME  reading…")

    def show_blame(self, kernel: Kernel, writers: Sequence[Step | None], verb: str) -> None:
        """The expert, each line with the step that ``verb`` ("wrote") it."""
        self.source.show_source(kernel.text, kernel.filename, labels=blame_labels(writers))
        title = [("BLAME  ", ""), (f"the step that {verb} each line of the expert", "$foreground")]
        self.query_one("#code", Pane).entitle(title, "enter goes to it")

    def show_waterfall(self, steps: Sequence[Step]) -> None:
        step = self.graph.step
        self.waterfall.show_steps(steps, select=step.commit if step is not None else "")
        self._show_code("waterfall")
        self.query_one("#code", Pane).entitle("WATERFALL", "enter goes to a state")

    def _layout_changed(self, layout: str) -> None:
        if layout != self.diff.layout_mode:
            self.diff.layout_mode = layout  # type: ignore[assignment]
        self._entitle_comparison()

    # -- reasons ------------------------------------------------------------------------------------

    def show_reasons(self, step: Step, commands: list[tuple[str, str]]) -> None:
        """Why a state is as it is, and the git commands for what is compared."""
        self._reasons_of = step
        cells = max(30, self.query_one("#side").size.width - 4)
        self.query_one("#why", LineView).show(Lines(reason_lines(step, cells)))
        self.query_one("#commands", LineView).show(Lines(git_lines(commands)), keep_position=True)
        self._entitle_reasons()

    def _entitle_reasons(self) -> None:
        pane, step = self.query_one("#reasons", Pane), self._reasons_of
        if self.query_one("#commands").display:
            what = ("plain git for what is on screen", "$foreground")
            pane.entitle([("GIT  ", ""), what], "enter copies one")
        elif step is not None:
            pane.entitle([("WHY  ", ""), (f"{name_of(step)}  {sanitize(step.subject)}", "$foreground")])

    def do_git_commands(self) -> None:
        """The commands in place of the reasons, or back."""
        why, commands = self.query_one("#why"), self.query_one("#commands")
        commands.display, why.display = why.display, commands.display
        self._entitle_reasons()
        if self.has_class("-narrow") or self.has_focus_in("reasons"):
            self.choose_tab(1)

    def on_resize(self) -> None:
        once_drawn(self, self._fit)

    def on_line_view_widened(self, message: LineView.Widened) -> None:
        """A hidden tab has no width yet when its text is first made."""
        if message.view.id == "why":
            self._fit()

    def _fit(self) -> None:
        if self._reasons_of is not None:
            cells = max(30, self.query_one("#side").size.width - 4)
            self.query_one("#why", LineView).show(
                Lines(reason_lines(self._reasons_of, cells)), keep_position=True
            )
        self._entitle_comparison()

    # -- panes and tabs -----------------------------------------------------------------------------

    def view_of(self, pane: str) -> LineView:
        if pane == "reasons":
            commands = self.query_one("#commands", LineView)
            return commands if commands.display else self.query_one("#why", LineView)
        return self.code_view if pane == "code" else self.graph
