"""Induce: go through the proposals on the current state, gate them, decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from klineage_tui.actions import bindings_for
from klineage_tui.presentation.proposal import queue_text
from klineage_tui.proposals import Proposal, Queue, evidence, queue_of
from klineage_tui.proposers import likely_cost, spent
from klineage_tui.screens.induce_walk import InduceWalk
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import LineView

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.kernel import Kernel
    from klineage.ledger import Estimate
    from klineage.lineage import Draft, Op, Step
    from klineage.proposer.candidate import Candidate
    from klineage.proposer.settings import Settings
    from klineage.walk import Walk, WalkState

    from klineage_tui.presentation.spending import SpendBar

T = TypeVar("T")
_WIDE = 120  # columns from which what is spent has a bar
_CLOSED_WHILE_LOADING = "the lineage is still being read"


@dataclass(frozen=True)
class Loaded:
    """A walk as read in one job."""

    state: WalkState
    queue: Queue
    draft: Draft | None
    trusted: bool
    spending: SpendBar
    estimate: Estimate | None


def load(
    walk: Walk,
    state: WalkState,
    skipped: frozenset[str],
    answers: Sequence[Candidate],
    settings: Settings,
) -> Loaded:
    """Everything that Induce shows of a state, from git and the proposers; what was asked for comes first."""

    def reason(candidate: Candidate) -> str | None:
        rejection = state.rejection_of(candidate)
        return None if rejection is None else rejection.why

    found: dict[str, Candidate] = {}
    for candidate in (*answers, *walk.candidates(state)):
        found.setdefault(state.kernel_of(candidate).hash, candidate)
    queue = queue_of(found.values(), lambda c: state.kernel_of(c).hash, reason, skipped)
    spending, estimate = spent(walk, settings), likely_cost(walk, settings)
    return Loaded(state, queue, walk.draft(), walk.trusted(), spending, estimate)


class InduceScreen(InduceWalk):
    """The decisions. What they mean is the engine's business; here they are enabled, run and shown."""

    PLACE = "induce"
    BINDINGS = [*bindings_for("induce")]

    def __init__(self) -> None:
        super().__init__()
        self._state: WalkState | None = None
        self._skipped: frozenset[str] = frozenset()  # kernel hashes
        self._deciding = False
        self._reading = True
        self._ahead = ""  # the action whose key was pressed while the lineage was being read

    # -- reading ------------------------------------------------------------------------------------

    def reload(self) -> None:
        walk = self.host.walk
        assert walk is not None
        if self._state is not None and walk.id != self._state.meta.id:
            self._stop_gate()
            self._stop_walk()
            self._state, self._ahead = None, ""
        self._reading = True
        self.job("load", walk.state, lambda state: self._read(walk, state), self._unreadable)

    def _read(self, walk: Walk, state: WalkState) -> None:
        """Show a walk that was just opened before its proposals are looked for."""
        if self._state is None:
            self.show_walk(state)
        answers, settings = self._answers.get(state.head.kernel, ()), self.host.config.proposer
        self.job(
            "load",
            lambda: load(walk, state, self._skipped, answers, settings),
            self._loaded,
            self._unreadable,
        )

    def _unreadable(self, sentence: str) -> None:
        self._deciding = self._reading = False
        self._ahead = ""
        self.show_unreadable(sentence)

    def _loaded(self, loaded: Loaded) -> None:
        fresh = self._state is None
        if fresh:
            self.show_proposal_tab()
        self._state, self._queue, self._trusted = loaded.state, loaded.queue, loaded.trusted
        self._spending, self._estimate = loaded.spending, loaded.estimate
        self._deciding = self._reading = False
        if self._run is not None and self._run.key[1] != loaded.state.head.kernel:
            self._stop_gate()  # of a state that is no longer here
        if not fresh:
            self.show_walk(loaded.state)
        self.show_queue()
        ahead, self._ahead = self._ahead, ""
        if fresh and loaded.draft is not None:
            self.offer_draft(loaded.draft)
        elif ahead:
            self.action_verb(ahead)

    def show_queue(self) -> None:
        """The current proposal, its diff (take-latest) and its gate."""
        self.show_proposal(self._queue)
        current, state = self._queue.current, self._state
        if current is not None and state is not None:
            old, new = state.kernel, current.candidate.source
            self.job("diff", lambda: _line_ops(old, new), lambda ops: self.show_diff(old, new, ops))
        self._draw_answer()  # the pane's title is the answer's while there is one
        self._show_evidence()

    def _show_bar(self) -> None:
        from klineage_tui.widgets.action_bar import footer_actions

        names = {action.id for action in footer_actions(self.PLACE)}
        closed = {name for name in names if self.closed(name)}
        hidden = set() if self._busy else {"cancel"}
        status = queue_text(self._queue) if self._state is not None else ""
        if self._spending.words:
            status = f"{status}  {self._spending.text(self.size.width >= _WIDE)}"
        self.query_one(ActionBar).show(closed, hidden, status)

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        """The cursor of the lineage chooses which kernel is shown."""
        walk, state = self.host.walk, self._state
        column = self._column if message.view.id == "lineage-view" else None
        step = column.step(message.row) if column is not None else None
        if walk is None or state is None or step is None:
            return
        is_head = step.commit == state.head.commit

        def show(kernel: Kernel, step: Step = step) -> None:
            self.show_kernel(kernel, step, is_head=is_head)

        self.job("kernel", lambda: walk.kernel_at(step.commit), show)

    def action_verb(self, action: str) -> None:
        if action == "cancel" and not self._busy:
            return  # escape with nothing to stop needs no answer
        early = self._state is None or (action in ("undo", "redo") and not self._deciding)
        if self._reading and early and not self._ahead:
            self._ahead = action  # the steps are on screen before their proposals: the key is not lost
            return
        super().action_verb(action)

    @property
    def _busy(self) -> bool:
        return self._run is not None or self._asking is not None

    # -- what is closed, and why ------------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        state, current = self._state, self._queue.current
        if action == "cancel":
            return "" if self._busy else "nothing is running"
        if state is None:
            return _CLOSED_WHILE_LOADING
        if walking := self.why_walking(action):
            return walking
        if self._deciding and action in ("accept", "reject", "undo", "redo", "seal"):
            return "the last decision is still being written"
        if action == "undo":
            return "" if state.can_undo else "no decision to take back"
        if action == "redo":
            return "" if state.can_redo else "nothing was undone"
        if action == "seal":
            return "" if len(state.steps) > 1 else "accept at least one step before sealing"
        if action == "lift":
            return "" if state.sealed else f"seal the lineage first: {self.key_of('seal')}"
        if action == "next-pending":
            return "" if self._queue.pending else "no undecided proposal is left"
        if action in ("edit", "editor", "ask", "features"):
            return ""
        if action == "walk":
            return "" if self._run is None else "a gate is running; cancel it first"
        if current is None:
            return "no proposal is left on this state"
        if action == "gate":
            return "" if self._run is None else "a gate is running; cancel it first"
        return self._why_not_decide(action, current, state)

    def _why_not_decide(self, action: str, current: Proposal, state: WalkState) -> str:
        if action == "changes":
            return (
                "" if current.candidate.source != state.kernel.source else "it changes the configuration only"
            )
        if action == "name":
            return (
                ""
                if current.edited
                else "a proposal has a name; edit it, or take a part of it, to give it yours"
            )
        if action == "skip":
            return "" if current.standing == "pending" else f"it is {current.standing} already"
        if action == "reject":
            return "it was rejected here already" if current.standing == "rejected" else ""
        if action != "accept":
            return ""
        status, report = evidence(current, state.head.kernel, self._reports)
        if self._run is not None and self._run.proposal.kernel == current.kernel:
            return "its gate is still running"
        if status == "stale":
            return "the bytes were edited since; gate them again"
        if status == "none" or report is None:
            return "gate it first"
        return "" if report.verdict == "pass" else f"the gate did not pass: {report.why}"

    # -- going through ----------------------------------------------------------------------------------

    def _go(self, queue: Queue) -> None:
        self._queue = queue
        self._show_answer(False)  # it goes on, and is a key away
        self.show_queue()

    def do_next_proposal(self) -> None:
        self._go(self._queue.at(self._queue.position + 1))

    def do_previous_proposal(self) -> None:
        self._go(self._queue.at(self._queue.position - 1))

    def do_next_pending(self) -> None:
        self._go(self._queue.next_pending())

    def do_skip(self) -> None:
        current = self._queue.current
        assert current is not None
        self._skipped |= {current.kernel}
        self._go(self._queue.with_current(standing="skipped").next_pending())

    def do_features(self) -> None:
        from klineage_tui.screens.features import FeaturesScreen

        walk, state = self.host.walk, self._state
        assert walk is not None and state is not None
        screen = FeaturesScreen(walk, state.kernel, dict(self.host.keys_in_force), self.host.config.proposer)
        self.app.push_screen(screen, self._sealed)  # a word that was said is a decision on disk, like a seal

    # -- deciding -------------------------------------------------------------------------------------------

    def do_accept(self) -> None:
        walk, state, current = self.host.walk, self._state, self._queue.current
        assert walk is not None and state is not None and current is not None
        _, report = evidence(current, state.head.kernel, self._reports)
        assert report is not None

        def work() -> Step:
            step = walk.accept(current.candidate, report, edited=current.edited)
            if current.edited:
                walk.clear_draft()
            return step

        self._decide(work, lambda step: f"Step {step.number}: {step.subject}")

    def do_reject(self) -> None:
        from klineage_tui.screens.dialog import AskReason

        state, current = self._state, self._queue.current
        assert state is not None and current is not None
        status, report = evidence(current, state.head.kernel, self._reports)
        usable = report if status == "current" else None
        suggestion = usable.why if usable is not None and usable.verdict != "pass" else ""
        dialog = AskReason(
            "Reject", current.candidate.title, dict(self.host.keys_in_force), suggestion=suggestion
        )
        self.app.push_screen(dialog, lambda why: self._reject(current, usable, why) if why else None)

    def _reject(self, proposal: Proposal, report: Report | None, why: str) -> None:
        walk = self.host.walk
        assert walk is not None

        def work() -> Step:
            step = walk.reject(proposal.candidate, report, why=why)
            if proposal.edited:
                walk.clear_draft()
            return step

        self._decide(work, lambda step: f"Rejected: {step.subject}")

    def do_undo(self) -> None:
        walk = self.host.walk
        assert walk is not None
        self._decide(walk.undo, lambda what: f"Taken back: {what}")

    def do_redo(self) -> None:
        walk = self.host.walk
        assert walk is not None
        self._decide(walk.redo, lambda what: f"Done again: {what}")

    def _decide(self, work: Callable[[], T], sentence: Callable[[T], str]) -> None:
        """Write one decision; the screen changes when it is on disk."""

        def done(result: T) -> None:
            self.host.decided()
            self.notify(sentence(result), timeout=3)
            self.reload_if_outdated()

        def failed(problem: str) -> None:
            self._deciding = False
            self.complain(problem)
            self.reload()

        self._deciding = True
        self.drop("load")
        self._show_bar()
        self.job("decide", work, done, failed)

    def do_seal(self) -> None:
        from klineage_tui.proposers import asking, makers
        from klineage_tui.screens.seal import SealDialog

        walk, state = self.host.walk, self._state
        assert walk is not None and state is not None
        if not self._trusted:
            self.ask_trust(self.do_seal)
            return
        left = self._queue.pending
        settings, keys = self.host.config.proposer, self.host.keys_in_force
        asked = makers(state.steps, settings)
        dialog = SealDialog(walk, len(state.steps), left, keys, asked, asking(walk, asked, settings))
        self.app.push_screen(dialog, self._sealed)

    def do_lift(self) -> None:
        assert self.host.walk is not None
        self.host.lift(self.host.walk.id)

    def _sealed(self, sealed: bool | None) -> None:
        if sealed:
            self.host.decided()
            self.reload_if_outdated()


def _line_ops(old: Kernel, new: bytes) -> Sequence[Op]:
    from klineage.lineage import line_ops

    return line_ops(old.source, new)
