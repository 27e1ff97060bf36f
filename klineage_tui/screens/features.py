"""The mechanisms of the current kernel above its source: each with the lines that show it, and a key for the unknown ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.numbers import plural
from klineage.proposer.cancel import Cancel
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

from klineage_tui.actions import bindings_for
from klineage_tui.crash import log_exception
from klineage_tui.presentation.features import (
    feature_counts,
    feature_lines,
    feature_why,
    lines_text,
    opinion_text,
)
from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.in_step import InStep
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.source_view import SourceView
from klineage_tui.widgets.title_row import TitleRow
from klineage_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from klineage.kernel import Feature, Kernel
    from klineage.proposer.features import Finding
    from klineage.proposer.features.opinions import Opinion
    from klineage.proposer.settings import Settings
    from klineage.walk import Walk


class FeaturesScreen(InStep, ModalScreen[bool]):
    """Dismissed with True when something was settled, or a model was asked."""

    BINDINGS = [*bindings_for("features")]
    DEFAULT_CSS = """
    FeaturesScreen { background: $background; }
    FeaturesScreen #features-title { background: $surface; color: $foreground; }
    FeaturesScreen #features-list { height: 2fr; }
    FeaturesScreen #features-why { height: 2; padding: 0 1; color: $foreground; background: $surface; }
    FeaturesScreen.-opinions #features-why { height: 5; }
    FeaturesScreen #features-source { height: 3fr; }
    """

    def __init__(self, walk: Walk, kernel: Kernel, keys: dict[str, str], settings: Settings) -> None:
        super().__init__()
        self._walk, self._settings = walk, settings
        self._kernel = kernel
        self._keys = keys
        self._findings: tuple[Finding, ...] = ()
        self._opinions: dict[Feature, Opinion] = {}
        self._settled = False
        self._busy = False
        self._cancel = Cancel()

    def compose(self) -> ComposeResult:
        yield TitleRow(id="features-title")
        yield LineView(placeholder="Reading…", id="features-list")
        yield Static(id="features-why", markup=False)
        yield SourceView(cursor=False, id="features-source")
        yield ActionBar("features", self._keys)
        yield TooSmall()

    def on_mount(self) -> None:
        source = self.query_one("#features-source", SourceView)
        source.show_source(self._kernel.text, self._kernel.filename)
        self._list.focus()
        self._in_thread(lambda: None)

    @property
    def _list(self) -> LineView:
        return self.query_one("#features-list", LineView)

    @property
    def current(self) -> Finding | None:
        """The finding under the cursor."""
        row = self._list.cursor_row
        return self._findings[row] if row < len(self._findings) else None

    # -- reading and settling, off the screen's thread --------------------------------------------------

    def _in_thread(self, work: Callable[[], None]) -> None:
        """Do ``work``, then read the findings again; a refusal becomes a toast."""

        def run() -> None:
            try:
                work()
                findings = self._walk.findings()
            except KlineageError as problem:
                self.app.call_from_thread(self._failed, str(problem))
            except Exception as problem:
                log = log_exception(problem)
                self.app.call_from_thread(
                    self._failed, f"internal error ({type(problem).__name__}); see {log}"
                )
            else:
                self.app.call_from_thread(self._show, findings)

        self._busy = True
        self.run_worker(run, group="features", thread=True, exit_on_error=False)

    def _failed(self, sentence: str) -> None:
        if not self.is_attached:
            return
        self._busy = False
        self.notify(sanitize(sentence), severity="error", timeout=10)
        self._show(self._findings)

    def _show(self, findings: tuple[Finding, ...]) -> None:
        if not self.is_attached:
            return
        self._busy = False
        before = self.current
        self._findings = findings
        name = sanitize(self._kernel.filename)
        self.query_one("#features-title", TitleRow).show(
            [("FEATURES  ", "bold"), (name, "")], feature_counts(findings)
        )
        self.set_class(bool(self._opinions), "-opinions")
        self._list.show(Lines(feature_lines(findings, self._opinions)), keep_position=True)
        if before is not None:
            same = [row for row, finding in enumerate(findings) if finding.feature == before.feature]
            self._list.move_to(same[0] if same else 0, tell=False)
        self._point()

    # -- the lines that show it -------------------------------------------------------------------------

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view is self._list:
            self._point()

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        """Enter goes into the source, at the first line."""
        if message.view is self._list:
            self.query_one("#features-source", SourceView).focus()

    def _point(self) -> None:
        """Mark the lines of the current finding, and bring the first into view."""
        from klineage.proposer.features import described

        finding = self.current
        if finding is None:
            return
        what = described(self._kernel.surface, finding.name)
        why, opinion = feature_why(finding, what), self._opinions.get(finding.feature)
        told = f"{opinion_text(opinion)}\n{why}" if opinion is not None else why
        self.query_one("#features-why", Static).update(told)
        source = self.query_one("#features-source", SourceView)
        cited = [citation.line for citation in opinion.citations] if opinion is not None else []
        rows = [line - 1 for line in finding.lines or cited]
        source.mark(frozenset(rows))
        if rows:
            height = max(1, source.size.height)
            source.scroll_to(y=max(0, rows[0] - height // 3), animate=False, force=True)

    # -- actions ----------------------------------------------------------------------------------------

    def action_feature_present(self) -> None:
        self._settle("present")

    def action_feature_absent(self) -> None:
        self._settle("absent")

    def _settle(self, state: str) -> None:
        finding = self.current
        if finding is None or self._busy:
            return
        if finding.state != "unknown" and not finding.settled:
            self.notify(f"{finding.name} is {finding.state}: the detectors are certain.", severity="warning")
            return
        seen = f"seen at {lines_text(finding)}" if finding.lines else "a reader's word"
        wanted = str(finding.feature)

        def work() -> None:
            self._walk.settle(wanted, state, seen)
            self._settled = True

        self._in_thread(work)

    def action_feature_ask(self) -> None:
        """Ask the model of the configuration about everything that is unknown, after a question about the money."""
        asked = tuple(f for f in self._findings if f.state == "unknown")
        if self._busy or not asked:
            self.notify("Nothing is unknown." if not asked else "It is being asked.", severity="warning")
            return
        settings = self._settings
        limit = "no limit" if settings.budget is None else f"at most ${settings.budget} for this lineage"
        question = (
            f"Ask model:{settings.model} about {plural(len(asked), 'mechanism')}, in one call ({limit})? It must cite "
            "lines, each is looked up, and its word settles nothing: you decide."
        )
        dialog = Confirm("Ask about what is unknown", question, "asks", self._keys)
        self.app.push_screen(dialog, lambda yes: self._ask(asked) if yes else None)

    def _ask(self, asked: tuple[Finding, ...]) -> None:
        def work() -> None:
            from klineage_tui.proposers import opinions

            self._settled = True  # it may have cost something, whatever comes of it
            self._opinions |= opinions(self._walk, self._kernel, asked, self._settings, self._cancel)

        title = [("FEATURES  ", "bold"), (sanitize(self._kernel.filename), "")]
        self.query_one("#features-title", TitleRow).show(title, f"asking model:{self._settings.model} …")
        self._in_thread(work)

    def on_unmount(self) -> None:
        """A call that is paid for finishes by itself; its answer is there when it is asked again."""
        self._cancel.leave()

    def action_features_leave(self) -> None:
        self.dismiss(self._settled)

    def on_action_bar_chosen(self, message: ActionBar.Chosen) -> None:
        self.run_worker(self.run_action(message.action.replace("-", "_")))
