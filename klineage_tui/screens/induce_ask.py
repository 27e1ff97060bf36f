"""Asking a model or a command in Induce: the answer as it comes, what it costs, and how to end it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage.proposer.cancel import Cancel
from textual.message import Message

from klineage_tui.presentation.answer import AnswerView, answer_heading, answer_lines
from klineage_tui.presentation.spending import SpendBar, spend_bar
from klineage_tui.screens.induce_gate import InduceGate
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.pane import Pane

if TYPE_CHECKING:
    from klineage.ledger import Estimate, Reading
    from klineage.lineage import Step
    from klineage.proposer.base import Attempt, OnProposerEvent, ProposerEvent
    from klineage.proposer.candidate import Candidate
    from klineage.proposer.settings import Settings
    from klineage.walk import Walk

_DRAW = 0.1  # seconds between two drawings of an answer that comes
_Answered = tuple["Attempt | None", "list[Step]", "Reading"]


class AnswerProgress(Message):
    """A proposer said something; posted from its thread."""

    def __init__(self, run: AskRun, event: ProposerEvent) -> None:
        super().__init__()
        self.run = run
        self.event = event


class AskRun:
    """One question on its way: about which state, how far, and how to end it."""

    def __init__(self, view: AnswerView, head: str) -> None:
        self.view = view
        self.head = head
        self.cancel = Cancel()
        self.started = time.monotonic()

    def farewell(self) -> str:
        """What a person is told who leaves the app meanwhile; empty where everything ends with it."""
        name = self.view.name
        return (
            f"{name} finishes its answer by itself; ask it again to see it"
            if name.startswith("model")
            else ""
        )


class InduceAsk(InduceGate):
    """Adds the verb ``ask``. An answer joins the proposals of the state that it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[str, tuple[Candidate, ...]] = {}  # kernel hash of the state asked about
        self._asking: AskRun | None = None
        self._asked = ("", "")  # who was asked last, and the hint
        self._spending = SpendBar()
        self._estimate: Estimate | None = None  # what a model may cost from here

    def do_ask(self) -> None:
        if self._asking is not None:
            self._show_answer(True)
            return
        from klineage_tui.proposers import choices
        from klineage_tui.screens.ask import AskProposer

        found = choices(self.host.config.proposer, self._estimate)
        name, hint = self._asked
        dialog = AskProposer(found, self.spent(), self.host.keys_in_force, chosen=name, hint=hint)
        self.app.push_screen(dialog, lambda answer: self._ask(*answer) if answer else None)

    def spent(self) -> str:
        """What the calls for this lineage have cost, as a sentence; empty where there were none."""
        return f"Spent so far: {self._spending.words}." if self._spending.words else ""

    def _ask(self, name: str, hint: str) -> None:
        walk, state = self.host.walk, self._state
        assert walk is not None and state is not None
        if not self._trusted and name.startswith("command:"):
            self.ask_trust(lambda: self._ask(name, hint))
            return
        self._asked = (name, hint)
        run = self._asking = AskRun(AnswerView(name, hint, keys=self.host.keys_in_force), state.head.kernel)
        settings = self.host.config.proposer
        shown = frozenset(state.kernel_of(c).hash for c in self._answers.get(run.head, ()))

        def tell(event: ProposerEvent) -> None:
            self.post_message(AnswerProgress(run, event))

        def work() -> _Answered:
            return _one_attempt(walk, name, hint, settings, run, tell, shown)

        def failed(sentence: str) -> None:
            self._ended(run)
            self.complain(sentence)

        self.job("ask", work, lambda answered: self._answered(run, *answered), failed)
        self._watch()

    def _watch(self) -> None:
        """Show what comes, as it comes."""
        self.show_proposal_tab()
        self._show_answer(True)
        self._drawing = self.set_interval(_DRAW, self._draw_answer)

    def on_answer_progress(self, message: AnswerProgress) -> None:
        run, event = message.run, message.event
        run.view = run.view.after(event.kind, event.text)

    def _draw_answer(self) -> None:
        run = self._asking
        if run is None or not self.has_class("-answer"):
            return
        view = replace(run.view, elapsed=time.monotonic() - run.started)
        left, right = answer_heading(view)
        word, _, rest = left.partition("  ")
        self.query_one("#proposal", Pane).entitle([(word, ""), (f"  {rest}", "$foreground")], right)
        lines = self.query_one("#answer", LineView)
        lines.show(Lines(answer_lines(view, max(20, lines.size.width - 3))), keep_position=True)
        lines.scroll_end(animate=False)

    def _show_answer(self, shown: bool) -> None:
        """The answer in the place of the diff, or the diff again."""
        self.set_class(shown, "-answer")
        self._draw_answer()
        self._show_bar()

    def _answered(self, run: AskRun, attempt: Attempt | None, recorded: list[Step], reading: Reading) -> None:
        self._ended(run)
        self._show_spending(reading)
        for note in attempt.notes if attempt is not None else ():
            self.notify(note)
        if recorded:
            self.host.decided()
        if run.cancel.is_set():
            self.notify(f"{run.view.name} was ended")
        elif attempt is None:
            self.notify(f"{run.view.name} has no proposal: {run.view.status}")
        elif attempt.candidate is None:
            self.complain(attempt.problem)
        else:
            self._take_answer(run, attempt.candidate)
        self.reload_if_outdated()
        self._show_bar()

    def _show_spending(self, reading: Reading) -> None:
        """The spend bar, and a word when a mark of the budget is passed."""
        from klineage_tui.presentation.spending import spend_line

        self._spending = spend_bar(reading)
        if reading.passed:
            self.notify(
                f"{reading.passed[-1]} % of the budget is passed: {spend_line(reading)}", severity="warning"
            )
        self._show_bar()

    def _take_answer(self, run: AskRun, candidate: Candidate) -> None:
        state = self._state
        self._answers[run.head] = (*self._answers.get(run.head, ()), candidate)
        if state is not None and state.head.kernel == run.head:
            self._queue = self._queue.added(candidate, state.kernel_of(candidate).hash)
            self.show_queue()
        else:
            self.notify(f"An answer about an earlier state has come: {candidate.title}")

    def _ended(self, run: AskRun) -> None:
        if self._asking is run:
            self._asking = None
            self._drawing.stop()
        self._show_answer(False)
        self.show_queue()

    def _cancel_answer(self) -> bool:
        """End the question if there is one that the person can mean; whether there was."""
        run = self._asking
        if run is None or not (self._run is None or self.has_class("-answer")):
            return False
        run.cancel.set()
        run.view = replace(run.view, status="ending it")
        return True

    def on_unmount(self) -> None:
        """The app is left: a command ends with it, a model's call is paid for and finishes by itself."""
        if (run := self._asking) is None:
            return
        run.cancel.leave()
        if words := run.farewell():
            self.host.last_words = self.host.last_words or f"klineage: {words}"


def _one_attempt(
    walk: Walk,
    name: str,
    hint: str,
    settings: Settings,
    run: AskRun,
    tell: OnProposerEvent,
    shown: frozenset[str],
) -> _Answered:
    """Ask once; with what was recorded of a useless answer, and what it all has cost.

    shown: hashes of what is among the proposals already. An answer that was paid for is offered until it is decided on,
    and who asks once more wants another one.
    """
    from klineage.ledger import Ledger, Meter
    from klineage.walk import asking

    from klineage_tui.proposers import limit_of, named

    limit = limit_of(walk, name, settings)
    meter = Meter(Ledger.of(walk.workspace.git.place), walk.id, limit)
    recorded: list[Step] = []
    proposer = named(walk, name, settings, limit)
    with closing(asking.ask(walk, proposer, hint, tell, run.cancel, recorded.append)) as answers:
        kernel_of = walk.state().kernel_of
        wanted = (a for a in answers if a.candidate is None or kernel_of(a.candidate).hash not in shown)
        attempt = next(wanted, None)
    return attempt, recorded, meter.read()
