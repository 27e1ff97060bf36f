"""The Induce place as drawn: lineage, kernel, proposal with its diff, gate. No decisions are made here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from klineage_tui.presentation.gate import GateView, gate_heading, gate_lines
from klineage_tui.presentation.proposal import about, proposal_title, touched_lines
from klineage_tui.presentation.walk import WalkColumn, heading, step_name, strip_line
from klineage_tui.proposals import Queue
from klineage_tui.screens.place import Place, once_drawn
from klineage_tui.text.line import Line
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.pane import Pane, TabRow
from klineage_tui.widgets.source_view import SourceView
from klineage_tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.lineage import Op, Step
    from klineage.walk import WalkState

_LINEAGE_CELLS = 30
_TABS = ("proposal", "kernel", "lineage")
_NOTHING_LEFT = (
    "Rules have no proposal left. {seal} seals the walk, which writes it as a lineage from naive to expert; "
    "{features} lists the mechanisms that are still there: {edit} takes one out by hand, {ask} asks a model; "
    "{history} shows the walk's history."
)
_NOTHING_YET = "No rule sees anything to simplify in this kernel."
_BY_HAND = "{edit} lets you simplify it by hand."
_SEEN = "Rules see {count} here that they do not take out, {name}: {reason}. klineage propose {id} --all lists them all."
_SEALED = (
    "This walk is sealed. {history} shows the lineage from naive to expert: what each step adds and what it "
    "is worth. {lift} lifts cards from it; {edit} simplifies the kernel further by hand; {undo} takes the seal back."
)


class InducePanes(Place):
    """Geometry and drawing. Wide: three columns; medium: the lineage is a strip; narrow: tabs."""

    CSS_PATH = "induce.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._tab = 0
        self._touched: list[int] = []  # lines of the current kernel that the proposal changes
        self._kernel_is_head = True
        self._shown: WalkState | None = None
        self._column: WalkColumn | None = None

    def compose(self) -> ComposeResult:
        yield TitleRow("klineage", id="heading")
        yield TabRow(("Proposal", "Kernel", "Lineage"))
        yield LineView(cursor=False, id="strip")
        with Horizontal(id="body", classes="-tab-proposal"):
            yield Pane("LINEAGE", LineView(id="lineage-view"), id="lineage")
            kernel = SourceView(cursor=False, placeholder="Opening…", id="kernel-view")
            yield Pane("KERNEL", kernel, id="kernel")
            with Vertical(id="right"):
                yield Pane(
                    "PROPOSAL",
                    Static(id="about", markup=False),
                    DiffView(placeholder="Opening…", id="diff"),
                    LineView(cursor=False, id="answer"),
                    id="proposal",
                )
                yield Pane("GATE", LineView(cursor=False, id="gate-view"), id="gate")
        yield ActionBar(self.PLACE, self.host.keys_in_force)

    def on_mount(self) -> None:
        self.query_one("#strip").can_focus = False
        self.query_one(DiffView).focus()
        self.watch(self.app, "diff_layout", self._layout_changed)

    def _layout_changed(self, layout: str) -> None:
        view = self.query_one(DiffView)
        if layout != view.layout_mode:
            view.layout_mode = layout  # type: ignore[assignment]

    # -- narrow terminals ---------------------------------------------------------------------------

    def next_pane(self, step: int) -> None:
        """Where panes are tabs, the next tab; else the next pane takes the focus."""
        if self.has_class("-narrow"):
            self.choose_tab((self._tab + step) % len(_TABS))
        else:
            super().next_pane(step)

    def choose_tab(self, index: int) -> None:
        self._tab = index
        body = self.query_one("#body")
        for number, name in enumerate(_TABS):
            body.set_class(number == index, f"-tab-{name}")
        self.query_one(TabRow).choose(index)
        view = ("#diff", "#kernel-view", "#lineage-view")[index]
        self.query_one(view).focus()
        once_drawn(self, self._mark_touched)  # a hidden view cannot scroll

    def show_proposal_tab(self) -> None:
        """Where panes are tabs: what a verb works on, and its progress, are on the first one."""
        if self.has_class("-narrow") and self._tab != 0:
            self.choose_tab(0)

    def on_tab_row_chosen(self, message: TabRow.Chosen) -> None:
        self.choose_tab(message.index)

    # -- drawing ------------------------------------------------------------------------------------

    def show_walk(self, state: WalkState) -> None:
        """The heading, the lineage in both forms, and the current kernel."""
        left, right = heading(state)
        self.query_one("#heading", TitleRow).show([(left, "bold")], right)
        self._column = WalkColumn(state, _LINEAGE_CELLS - 2)
        view = self.query_one("#lineage-view", LineView)
        view.show(self._column)
        view.move_to(self._column.here, tell=False)
        self._shown = state
        self.redraw()
        self.show_kernel(state.kernel, state.head, is_head=True)

    def show_unreadable(self, sentence: str) -> None:
        """The walk could not be read: say so where it would have been."""
        self.complain(sentence)
        for view in (self.query_one("#kernel-view", SourceView), self.query_one(DiffView)):
            view.placeholder = sanitize(sentence)
            view.refresh()

    def redraw(self) -> None:
        """Draw again what depends on the width."""
        if self._shown is not None:
            line = strip_line(self._shown, max(20, self.size.width - 2))
            self.query_one("#strip", LineView).show(Lines([line]))

    def on_resize(self) -> None:
        once_drawn(self, self.redraw)

    def show_kernel(self, kernel: Kernel, step: Step, *, is_head: bool) -> None:
        pane = self.query_one("#kernel", Pane)
        name = f"step {step_name(step)}" if step.number else "expert"
        word, facts = name, "  ".join(f"{key}={value}" for key, value in kernel.config)
        if step.decision == "rejected":
            word, facts = "rejected attempt", step.why
        left = [("KERNEL  ", ""), (sanitize(kernel.filename), "$foreground"), (f"  {word}", "")]
        if not is_head:
            left.append(("  not the current state", "$verdict-warn"))
        pane.entitle(left, sanitize(facts))
        view = self.query_one("#kernel-view", SourceView)
        view.show_source(kernel.text, kernel.filename, keep_position=True)
        self._kernel_is_head = is_head
        self._mark_touched()

    def show_proposal(self, queue: Queue) -> None:
        """Title and summary of the current proposal; the diff follows when git has answered."""
        left, right = proposal_title(queue)
        self.query_one("#proposal", Pane).entitle(left, right)
        current = queue.current
        parts = about(current) if current is not None else []
        self.query_one("#about", Static).update(Content.assemble(*parts))
        if current is None:
            self._touched = []
            self._mark_touched()
            view = self.query_one(DiffView)
            key = {
                name: self.key_of(name)
                for name in ("seal", "edit", "history", "undo", "lift", "features", "ask")
            }
            view.placeholder = self._nothing_left().format(**key)
            view.clear()

    def _nothing_left(self) -> str:
        """What to do on a state that nobody has a proposal for."""
        shown = self._shown
        if shown is not None and shown.sealed:
            return _SEALED
        hindered = _hindered(shown) if shown is not None else ""
        if shown is None or len(shown.steps) > 1:
            return " ".join(filter(None, (_NOTHING_LEFT, hindered)))
        return f"{hindered} {_BY_HAND}" if hindered else f"{_NOTHING_YET} {_BY_HAND}"

    def show_diff(self, old: Kernel, new: bytes, ops: Sequence[Op]) -> None:
        """The diff, and in the kernel beside it the lines that it touches, brought into view."""
        text = new.decode("utf-8", errors="replace")
        self.query_one(DiffView).show_diff(old.text, text, ops, old.filename)
        self._touched = touched_lines(ops)
        self._mark_touched()

    def _mark_touched(self) -> None:
        view = self.query_one("#kernel-view", SourceView)
        touched = self._touched if self._kernel_is_head else []
        view.mark(frozenset(touched))
        top, height = view.scroll_offset.y, view.size.height
        if touched and not top <= touched[0] < top + height - 3:
            view.scroll_to(y=max(0, touched[0] - height // 3), animate=False)

    def show_gate(self, view: GateView | None) -> None:
        """The gate panel; None where there is nothing to gate."""
        pane, lines = self.query_one("#gate", Pane), self.query_one("#gate-view", LineView)
        if view is None:
            pane.entitle("GATE")
            lines.show(Lines())
            return
        left, right = gate_heading(view)
        word, _, rest = left.partition("  ")
        pane.entitle([(word, ""), (f"  {rest}" if rest else "", "$foreground")], right)
        width = max(20, lines.size.width - 2)
        lines.show(Lines(gate_lines(view, width)), keep_position=True)

    @staticmethod
    def lines_of(view: LineView) -> list[Line]:
        """What a view holds, for tests."""
        return [view.document.line(row) for row in range(len(view.document))]


def _hindered(state: WalkState) -> str:
    """What rules see and do not offer, with the first reason; braces doubled, since keys are filled in later."""
    from klineage.proposer.rules import why_not

    found = why_not(state.kernel)
    if not found:
        return ""
    first = found[0]
    count = f"{len(found)} mechanism{'s' * (len(found) > 1)}"
    name = first.site.removes[0].name
    text = sanitize(_SEEN.format(count=count, name=name, reason=first.reason, id=state.meta.id))
    return text.replace("{", "{{").replace("}", "}}")
