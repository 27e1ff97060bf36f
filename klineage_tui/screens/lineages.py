"""The lineages of the workspace: the first screen when there are several."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from klineage_tui.actions import bindings_for
from klineage_tui.presentation.lineages import lineage_lines, welcome
from klineage_tui.screens.place import Place
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from klineage.lineage import Summary

    from klineage_tui.app import KlineageApp


class Welcome(Static):
    """What stands below the list, which has the rows that this leaves."""

    class Resized(Message):
        """It takes more or fewer rows than before."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class LineagesScreen(Place):
    """Enter opens the lineage under the cursor in Induce."""

    PLACE = "lineages"
    BINDINGS = [*bindings_for("lineages")]
    DEFAULT_CSS = """
    LineagesScreen LineView { height: auto; min-height: 1; margin: 1 0 0 0; }
    LineagesScreen #welcome { height: auto; max-width: 100; padding: 1 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._summaries: list[Summary] = []

    @property
    def _app(self) -> KlineageApp:
        return cast("KlineageApp", self.app)

    def compose(self) -> ComposeResult:
        yield TitleRow("klineage", id="heading")
        yield LineView(id="lineages", placeholder="Opening the workspace…")
        yield Welcome(id="welcome", markup=False)
        yield ActionBar(self.PLACE, self.host.keys_in_force)

    def on_mount(self) -> None:
        self.query_one("#lineages").focus()

    def reload_if_outdated(self) -> None:
        """The list is short and cheap, so it is read whenever it is shown."""
        workspace, walk = self._app.workspace, self.host.walk
        if walk is not None:
            self._point(walk.id)
        if workspace is not None:
            self.job("lineages", workspace.lineages, self._show)

    def _show(self, summaries: list[Summary]) -> None:
        view, here, walk = self.query_one("#lineages", LineView), self._chosen(), self.host.walk
        self._summaries = summaries
        self.query_one("#heading", TitleRow).show(
            [("klineage", "bold"), ("  choose a lineage", "$muted")], str(self._app.path)
        )
        view.placeholder = ""
        parts = welcome(str(self._app.path), self.host.keys_in_force, empty=not summaries)
        self.query_one("#welcome", Static).update(Content.assemble(*parts))
        view.show(Lines(lineage_lines(summaries)), keep_position=True)
        if here is not None:
            self._point(here.id)  # the reader may have moved while the list was being read
        elif walk is not None:
            self._point(walk.id)

    def _point(self, lineage: str) -> None:
        """Put the cursor on a lineage, if it is in the list."""
        ids = [summary.id for summary in self._summaries]
        if lineage in ids:
            self.query_one("#lineages", LineView).move_to(ids.index(lineage), tell=False)

    def on_resize(self) -> None:
        self._share_rows()

    def on_welcome_resized(self) -> None:
        self._share_rows()

    def _share_rows(self) -> None:
        """The list has the rows that the words below leave it, as many as it needs, and never less than a third."""
        below = self.query_one("#welcome").outer_size.height
        frame = 3  # heading, the list's margin, footer
        rows = max(self.size.height - below - frame, self.size.height // 3)
        self.query_one("#lineages").styles.max_height = rows

    def why_not(self, action: str) -> str:
        chosen = self._chosen()
        return "there is no lineage yet" if chosen is None else chosen.problem

    def _chosen(self) -> Summary | None:
        row = self.query_one("#lineages", LineView).cursor_row
        return self._summaries[row] if row < len(self._summaries) else None

    def do_open(self) -> None:
        chosen = self._chosen()
        assert chosen is not None
        self._app.open_lineage(chosen.id)

    def on_line_view_opened(self) -> None:
        self.action_verb("open")
