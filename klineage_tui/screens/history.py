"""History: step through a lineage; compare any two states, see why, who wrote each line, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.cache import LRUCache

from klineage_tui.actions import bindings_for
from klineage_tui.keys import shown_key
from klineage_tui.presentation.blame import writers
from klineage_tui.presentation.git_commands import git_commands
from klineage_tui.presentation.history import graph_of
from klineage_tui.presentation.titles import history_heading
from klineage_tui.presentation.walk import step_name
from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.history_panes import Comparison, HistoryPanes
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.lineage import Step
    from klineage.walk import Walk, WalkState


class HistoryScreen(HistoryPanes):
    """Reading, moving and deciding. Works the same on a walk that goes on and on a sealed lineage."""

    PLACE = "history"
    BINDINGS = [*bindings_for("history")]

    def __init__(self) -> None:
        super().__init__()
        self._state: WalkState | None = None
        self._forward: tuple[Step, ...] = ()  # the sealed lineage; of an earlier head, if the walk went on
        self._wants_forward: bool | None = None  # what the person asked for; None: whatever is current
        self._by_commit: dict[str, Step] = {}
        self._marked = ""
        self._asked_for = ""  # a commit that another place wants to see
        self._wanted = ("", "")
        self._read: LRUCache[tuple[str, str], Comparison] = LRUCache(128)  # states never change
        self._commands: list[tuple[str, str]] = []
        self._blamed: Sequence[Step | None] = ()

    @property
    def _walk(self) -> Walk:
        walk = self.host.walk
        assert walk is not None, "verbs and jobs run only while a lineage is open"
        return walk

    @property
    def _shows_forward(self) -> bool:
        """Whether the sealed lineage is shown, and not the walk."""
        if self._wants_forward is not None:
            return self._wants_forward and bool(self._forward)
        return self._state is not None and self._state.sealed

    @property
    def _steps(self) -> tuple[Step, ...]:
        """The states of the direction that is shown."""
        if self._shows_forward:
            return self._forward
        return self._state.steps if self._state is not None else ()

    # -- reading ------------------------------------------------------------------------------------

    def reload(self) -> None:
        walk = self._walk
        self.job("history", lambda: (walk.state(), walk.forward()), self._show_walk)

    def ask_for(self, commit: str) -> None:
        """Put the cursor on a state of the walk or of the sealed lineage, as soon as the walk is read."""
        self._asked_for = commit
        self.reload()

    def _show_walk(self, read: tuple[WalkState, tuple[Step, ...]]) -> None:
        before = self.graph.step
        if self._state is not None and self._state.meta.id != read[0].meta.id:
            self._marked, self._wants_forward, before = "", None, None
        self._state, self._forward = read
        everything = (*self._state.steps, *self._forward, *self._state.rejected)
        self._by_commit = {step.commit: step for step in everything}
        if self._marked not in self._by_commit:
            self._marked = ""
        asked, self._asked_for = self._asked_for, ""
        if asked in self._by_commit:
            self._wants_forward = any(step.commit == asked for step in self._forward)
            self._show_graph(asked)
        else:
            self._show_graph(before.commit if before is not None else "")

    def _show_graph(self, select: str) -> None:
        assert self._state is not None
        graph = graph_of(self._steps, self._state.steps, self._state.rejected)
        self.graph.show_graph(graph, select=select)
        self.graph.mark_step(self._marked)
        self._load()
        if self.code == "blame":
            self._load_blame()
        elif self.code == "waterfall":
            self.show_waterfall(self._steps)

    def _load(self) -> None:
        """Compare the cursor with the marked state or its parent; only the latest request counts."""
        new = self.graph.step
        if new is None or self._state is None:
            return
        old = self._before(new)
        self.query_one("#heading", TitleRow).show(*history_heading(self._state, old, new))
        meta, walk = self._state.meta, self._walk
        self._commands = git_commands(str(walk.workspace.path), meta.id, meta.filename, old, new)
        self.show_reasons(new, self._commands)
        self._update_bar()
        self._wanted = (old.commit if old is not None else "", new.commit)
        if (known := self._read.get(self._wanted)) is not None:
            self._compared(known)
        else:
            self.job("comparison", lambda: _compare(walk, old, new), self._compared)

    def _before(self, new: Step) -> Step | None:
        """What ``new`` is compared with: the marked state, or the one that it was made from."""
        if self._marked and self._marked != new.commit:
            return self._by_commit.get(self._marked)
        if new.decision == "rejected":
            return self.graph.host
        return self._by_commit.get(new.parent)

    def _compared(self, found: Comparison) -> None:
        self._read[found.key] = found
        if found.key == self._wanted and self.code == "compare":
            self.show_comparison(found)

    def _load_blame(self) -> None:
        self.await_blame()
        walk, steps, forward = self._walk, self._steps, self._shows_forward

        def stop() -> bool:
            return self.code != "blame" or self._steps is not steps or not self.is_running

        self.job("blame", lambda: writers(walk, steps, sealed=forward, stop=stop), self._show_blame)

    def _show_blame(self, found: tuple[Kernel, Sequence[Step | None]]) -> None:
        if self.code == "blame":
            kernel, self._blamed = found
            self.show_blame(kernel, self._blamed, "wrote" if self._shows_forward else "first took away")

    # -- moving -------------------------------------------------------------------------------------

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view is self.graph:
            if self.code == "blame":
                self.code = "compare"
            elif self.code == "waterfall" and self.graph.step is not None:
                self.waterfall.select(self.graph.step.commit)
            self._load()

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        view, row = message.view, message.row
        if view is self.graph:
            self.choose_tab(0)
        elif view is self.waterfall and (step := self.waterfall.step) is not None:
            self._go_to(step)
        elif view is self.source and self.code == "blame" and row < len(self._blamed):
            simplest = self._steps[0 if self._shows_forward else -1]
            self._go_to(self._blamed[row] or simplest)
        elif view.id == "commands":
            self._copy(self._commands[row][1])

    def _go_to(self, step: Step) -> None:
        """Compare this state with the one before it."""
        self.code = "compare"
        self.graph.select(step.commit, tell=False)
        self._load()

    def _copy(self, command: str) -> None:
        self.app.copy_to_clipboard(command)
        self.notify(f"Sent to the terminal's clipboard, if it has one: {command}")

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
        if action == "lift" and not (state.sealed and self._forward):
            return f"Only a sealed lineage can be lifted: {key['seal']} in Induce ({key['induce']}) seals it."
        if action == "ablation" and not (state.sealed and self._forward):
            return f"Only a sealed lineage has one: {key['seal']} in Induce ({key['induce']}) seals it."
        if action == "branch" and self.graph.step is None:
            return "There is no state under the cursor."
        if action == "direction" and not self._forward:
            return f"Not sealed yet: {key['seal']} in Induce ({key['induce']}) derives the forward lineage."
        if action == "waterfall" and len(self._steps) < 2:
            return "There is only one state so far."
        return ""

    def _update_bar(self) -> None:
        disabled = {name for name in ("undo", "redo", "direction", "waterfall") if self.why_not(name)}
        shown = "walk, expert first"
        if self._shows_forward:
            current = self._state is not None and self._state.sealed
            shown = "lineage, naive first" if current else "lineage of an earlier seal, naive first"
        self.query_one(ActionBar).show(disabled, set(), shown)

    def do_compare_from(self) -> None:
        """Mark the state under the cursor, or take its mark away."""
        step = self.graph.step
        if step is not None:
            self._marked = "" if self._marked == step.commit else step.commit
            self.graph.mark_step(self._marked)
            if self._marked:
                key = self.key_of("compare-from")
                self.notify(
                    f"{step_name(step)} is marked: every other state is compared with it. {key} on it ends that."
                )
            self._load()

    def do_blame(self) -> None:
        self._toggle("blame")

    def do_waterfall(self) -> None:
        self._toggle("waterfall")

    def _toggle(self, name: str) -> None:
        self.choose_tab(0, focus=False)
        if self.code == name:
            self.code = "compare"
            self._load()
        elif name == "blame":
            self._load_blame()
        else:
            self.show_waterfall(self._steps)

    def do_direction(self) -> None:
        self._wants_forward = not self._shows_forward
        self._show_graph("")

    def do_branch(self) -> None:
        """Start a lineage at the state under the cursor, and open it."""
        step = self.graph.step
        assert step is not None, "why_not says so"
        question = (
            f"{step.subject}: a new lineage shares the history up to here and goes on by itself. "
            "This one stays as it is."
        )
        dialog = Confirm("Branch from here?", question, "starts it", self.host.keys_in_force)
        self.app.push_screen(dialog, lambda yes: self._branch(step) if yes else None)

    def _branch(self, step: Step) -> None:
        from klineage.walk.branching import branch

        walk = self._walk
        self.job("decision", lambda: branch(walk, step), self._branched)

    def _branched(self, lineage: str) -> None:
        self.notify(f"{lineage} goes on from here")
        self.host.decided()
        self.host.open_lineage(lineage, "history")

    def do_lift(self) -> None:
        self.host.lift(self._walk.id)

    def do_ablation(self) -> None:
        here = self.graph.step.commit if self.graph.step is not None else ""
        at = next((step.commit for step in self._forward if here in (step.commit, step.reverses)), "")
        self.host.show_ablation(self._walk.id, at)

    def do_undo(self) -> None:
        self.job("decision", self._walk.undo, self._decided)

    def do_redo(self) -> None:
        self.job("decision", self._walk.redo, self._decided)

    def _decided(self, sentence: str) -> None:
        self.notify(sentence)
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
