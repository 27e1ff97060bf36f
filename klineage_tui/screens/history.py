"""History: step through a lineage; compare any two states, see why, who wrote each line, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.cache import LRUCache
from textual.containers import Container, Vertical

from klineage_tui.actions import bindings_for
from klineage_tui.keys import shown_key
from klineage_tui.presentation.blame import blame_labels, writers
from klineage_tui.presentation.details import reason_lines
from klineage_tui.presentation.git_commands import git_commands, git_lines
from klineage_tui.presentation.history import graph_of
from klineage_tui.presentation.titles import comparison_title, history_heading, name_of
from klineage_tui.screens.place import Place
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
    from klineage.walk import Walk, WalkState

_VIEWS = ("compare", "blame", "waterfall")
_PANES = ("graph", "code", "reasons")


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


class HistoryScreen(Place):
    """See the module's text. Works the same on a walk that goes on and on a sealed lineage."""

    PLACE = "history"
    BINDINGS = [*bindings_for("history")]
    CSS_PATH = "history.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._state: WalkState | None = None
        self._sealed: tuple[Step, ...] = ()
        self._wants_walk = False  # the person asked for the walk although it is sealed
        self._by_commit: dict[str, Step] = {}
        self._marked = ""
        self._wanted = ("", "")
        self._view = "compare"
        self._read: LRUCache[tuple[str, str], Comparison] = LRUCache(128)  # states never change
        self._commands: list[tuple[str, str]] = []
        self._blamed: Sequence[Step | None] = ()

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
        self._graph.focus()
        self._show_view("compare")
        self.query_one("#commands").display = False
        self.watch(self.app, "diff_layout", self._layout_changed)

    # -- parts --------------------------------------------------------------------------------------

    @property
    def _graph(self) -> LineageGraph:
        return self.query_one("#graph", LineageGraph)

    @property
    def _diff(self) -> DiffView:
        return self.query_one("#diff", DiffView)

    @property
    def _source(self) -> SourceView:
        return self.query_one("#source", SourceView)

    @property
    def _waterfall(self) -> Waterfall:
        return self.query_one("#waterfall", Waterfall)

    @property
    def _walk(self) -> Walk:
        walk = self.host.walk
        assert walk is not None, "verbs and jobs run only while a lineage is open"
        return walk

    @property
    def _steps(self) -> tuple[Step, ...]:
        """The states of the direction that is shown."""
        if self._sealed and not self._wants_walk:
            return self._sealed
        return self._state.steps if self._state is not None else ()

    # -- reading ------------------------------------------------------------------------------------

    def reload(self) -> None:
        walk = self._walk
        self.job("history", lambda: (walk.state(), walk.forward()), self._show_walk)

    def _show_walk(self, read: tuple[WalkState, tuple[Step, ...]]) -> None:
        before = self._graph.step
        if self._state is not None and self._state.meta.id != read[0].meta.id:
            self._marked, self._wants_walk, before = "", False, None
        self._state, self._sealed = read
        everything = (*self._state.steps, *self._sealed, *self._state.rejected)
        self._by_commit = {step.commit: step for step in everything}
        if self._marked not in self._by_commit:
            self._marked = ""
        self._blamed = ()
        self._show_graph(before.commit if before is not None else "")

    def _show_graph(self, select: str) -> None:
        assert self._state is not None
        steps, state = self._steps, self._state
        self._graph.show_graph(graph_of(steps, state.steps, state.rejected), select=select)
        self._graph.mark_step(self._marked)
        self._load()
        if self._view == "blame":
            self._load_blame()
        elif self._view == "waterfall":
            self._show_waterfall()

    def _load(self) -> None:
        """Compare the cursor with the marked state or its parent; only the latest request counts."""
        new = self._graph.step
        if new is None:
            return
        old = self._before(new)
        self.query_one("#heading", TitleRow).show(*history_heading(self._state, old, new))
        self._show_why(old, new)
        self._update_bar()
        self._wanted = (old.commit if old is not None else "", new.commit)
        if (known := self._read.get(self._wanted)) is not None:
            self._show_comparison(known)
            return
        walk = self._walk
        self.job("comparison", lambda: _compare(walk, old, new), self._compared)

    def _before(self, new: Step) -> Step | None:
        """What ``new`` is compared with: the marked state, or the one that it was made from."""
        if self._marked and self._marked != new.commit:
            return self._by_commit.get(self._marked)
        if new.decision == "rejected":
            return self._graph.host
        return self._by_commit.get(new.parent)

    def _compared(self, found: Comparison) -> None:
        self._read[found.key] = found
        if found.key == self._wanted and self._view != "blame":
            self._show_comparison(found)

    def _show_comparison(self, found: Comparison) -> None:
        if found.before is None:
            self._diff.clear()
            if self._view == "compare":
                self._source.show_source(found.after.text, found.after.filename)
        else:
            self._diff.show_diff(found.before.text, found.after.text, found.ops, found.after.filename)
        self._whole = found.before is None
        self._show_view(self._view)
        self._entitle(found)

    def _entitle(self, found: Comparison) -> None:
        if self._view == "compare":
            layout = "" if found.old is None else "side by side" if self._diff.is_split else "unified"
            left, right = comparison_title(found.old, found.new, found.after, self._diff.changed, layout)
            self.query_one("#code", Pane).entitle(left, right)

    def _show_why(self, old: Step | None, new: Step) -> None:
        assert self._state is not None
        cells = max(30, self.query_one("#side").size.width - 4)
        self.query_one("#why", LineView).show(Lines(reason_lines(new, cells)))
        self._entitle_reasons(new)
        walk = self._walk
        self._commands = git_commands(
            str(walk.workspace.path), self._state.meta.id, self._state.meta.filename, old, new
        )
        self.query_one("#commands", LineView).show(Lines(git_lines(self._commands)), keep_position=True)

    def _entitle_reasons(self, step: Step) -> None:
        pane = self.query_one("#reasons", Pane)
        if self.query_one("#commands").display:
            pane.entitle(
                [("GIT  ", ""), ("plain git for what is on screen", "$foreground")], "enter copies one"
            )
        else:
            pane.entitle([("WHY  ", ""), (f"{name_of(step)}  {sanitize(step.subject)}", "$foreground")])

    def on_resize(self) -> None:
        step = self._graph.step
        if step is not None and self._state is not None:
            self.call_after_refresh(self._show_why, self._before(step), step)

    # -- views --------------------------------------------------------------------------------------

    _whole = False  # the state has nothing before it, so its source is shown

    def _show_view(self, name: str) -> None:
        self._view = name
        self._diff.display = name == "compare" and not self._whole
        self._source.display = name == "blame" or (name == "compare" and self._whole)
        self._waterfall.display = name == "waterfall"

    def _toggle_view(self, name: str) -> None:
        had_focus = self.query_one("#code").has_focus_within
        self._show_view("compare" if self._view == name else name)
        if self.has_class("-narrow"):
            self._choose_tab(0, focus=False)
        if had_focus:
            self._code_view.focus()
        if self._view == "compare":
            self._load()
        elif self._view == "blame":
            self._load_blame()
        else:
            self._show_waterfall()

    def _show_waterfall(self) -> None:
        step = self._graph.step
        self._waterfall.show_steps(self._steps, select=step.commit if step is not None else "")
        self.query_one("#code", Pane).entitle("WATERFALL", "enter goes to a state")

    @property
    def _code_view(self) -> LineView:
        return next(view for view in (self._diff, self._source, self._waterfall) if view.display)

    def _load_blame(self) -> None:
        assert self._state is not None
        walk, sealed = self._walk, bool(self._sealed) and not self._wants_walk
        self.query_one("#code", Pane).entitle("BLAME  reading…")
        steps = self._steps
        self.job("comparison", lambda: writers(walk, steps, sealed=sealed), self._show_blame)

    def _show_blame(self, found: tuple[Kernel, Sequence[Step | None]]) -> None:
        if self._view != "blame":
            return
        kernel, self._blamed = found
        self._show_view("blame")
        self._source.show_source(kernel.text, kernel.filename, labels=blame_labels(self._blamed))
        verb = "wrote" if self._sealed and not self._wants_walk else "first took away"
        title = [("BLAME  ", ""), (f"the step that {verb} each line of the expert", "$foreground")]
        self.query_one("#code", Pane).entitle(title, "enter goes to it")

    def _layout_changed(self, layout: str) -> None:
        if layout != self._diff.layout_mode:
            self._diff.layout_mode = layout  # type: ignore[assignment]

    # -- moving -------------------------------------------------------------------------------------

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view is self._graph:
            if self._view == "blame":
                self._show_view("compare")
            self._load()

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        if message.view is self._graph:
            self._code_view.focus()
        elif message.view is self._waterfall and (step := self._waterfall.step):
            self._go_to(step)
        elif message.view is self._source and self._view == "blame" and message.row < len(self._blamed):
            self._go_to(self._blamed[message.row] or self._steps[0 if self._sealed else -1])
        elif message.view.id == "commands":
            self._copy(self._commands[message.row][1])

    def _go_to(self, step: Step) -> None:
        self._show_view("compare")
        if self._graph.step is not None and self._graph.step.commit == step.commit:
            self._load()
        else:
            self._graph.select(step.commit)

    def _copy(self, command: str) -> None:
        self.app.copy_to_clipboard(command)
        self.notify(f"Sent to the terminal's clipboard, if it has one: {sanitize(command)}")

    def next_pane(self, step: int) -> None:
        focused = next((n for n, name in enumerate(_PANES) if self._has_focus(name)), 0)
        self._focus_pane((focused + step) % len(_PANES))

    def _has_focus(self, pane: str) -> bool:
        found = self.query_one(f"#{pane}")
        return found.has_focus or found.has_focus_within

    def _focus_pane(self, index: int) -> None:
        if index == 0:
            self._graph.focus()
        else:
            self._choose_tab(index - 1)

    def _choose_tab(self, index: int, *, focus: bool = True) -> None:
        right = self.query_one("#side")
        right.set_class(index == 0, "-tab-code")
        right.set_class(index == 1, "-tab-reasons")
        self.query_one(TabRow).choose(index)
        if focus and index == 0:
            self._code_view.focus()
        elif focus:
            commands = self.query_one("#commands")
            (commands if commands.display else self.query_one("#why")).focus()

    def on_tab_row_chosen(self, message: TabRow.Chosen) -> None:
        self._choose_tab(message.index)

    # -- verbs --------------------------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        state = self._state
        if state is None:
            return "The lineage is still being read."
        key = {name: shown_key(keys) for name, keys in self.host.keys_in_force.items()}
        if action == "undo" and not state.can_undo:
            return "There is no decision to take back."
        if action == "redo" and not state.can_redo:
            return "Nothing was undone."
        if action == "direction" and not self._sealed:
            return f"Not sealed yet: {key['seal']} in Induce ({key['induce']}) derives the forward lineage."
        if action == "waterfall" and len(self._steps) < 2:
            return "There is only one state so far."
        return ""

    def _update_bar(self) -> None:
        disabled = {name for name in ("undo", "redo", "direction", "waterfall") if self.why_not(name)}
        shown = "lineage, naive first" if self._sealed and not self._wants_walk else "walk, expert first"
        self.query_one(ActionBar).show(disabled, set(), shown)

    def do_compare_from(self) -> None:
        """Mark the state under the cursor, or take its mark away."""
        step = self._graph.step
        if step is not None:
            self._marked = "" if self._marked == step.commit else step.commit
            self._graph.mark_step(self._marked)
            self._load()

    def do_blame(self) -> None:
        self._toggle_view("blame")

    def do_waterfall(self) -> None:
        self._toggle_view("waterfall")

    def do_direction(self) -> None:
        self._wants_walk = not self._wants_walk
        self._show_graph("")

    def do_git_commands(self) -> None:
        """The commands in place of the reasons, or back."""
        why, commands = self.query_one("#why"), self.query_one("#commands")
        commands.display, why.display = why.display, commands.display
        if self._graph.step is not None:
            self._entitle_reasons(self._graph.step)
        if self.has_class("-narrow") or self._has_focus("reasons"):
            self._choose_tab(1)

    def do_undo(self) -> None:
        self.job("decision", self._walk.undo, self._decided)

    def do_redo(self) -> None:
        self.job("decision", self._walk.redo, self._decided)

    def _decided(self, sentence: str) -> None:
        self.notify(sanitize(sentence))
        self.host.decided()
        self.reload_if_outdated()


def _compare(walk: Walk, old: Step | None, new: Step) -> Comparison:
    """Read both kernels and what git says of their lines."""
    from klineage.lineage import line_ops

    after = walk.kernel_at(new.commit)
    if old is None:
        return Comparison(None, new, None, after)
    before = walk.kernel_at(old.commit)
    return Comparison(old, new, before, after, line_ops(before.source, after.source))
