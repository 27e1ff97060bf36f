"""Walking by itself in Induce: propose, gate and take what passes, step by step, until a limit or escape."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klineage.numbers import plural
from textual.message import Message

from klineage_tui.presentation.answer import AnswerView
from klineage_tui.presentation.gate import GateView
from klineage_tui.screens.induce_ask import AskRun, InduceAsk

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.ledger import Meter, Reading
    from klineage.lineage import Step
    from klineage.proposer.base import Attempt, ProposerEvent
    from klineage.proposer.candidate import Candidate
    from klineage.proposer.settings import Settings
    from klineage.walk import Listener, Walk, WalkOutcome

    from klineage_tui.screens.walking import Order

#: What may be done while a walk goes on: look around, come back to it, end it.
_LOOKING = frozenset({"ask", "walk", "cancel", "next-proposal", "previous-proposal", "next-pending", "lift"})


class WalkRun(AskRun):
    """One walk that goes on by itself, and the gate that it runs now."""

    def __init__(self, view: AnswerView, head: str) -> None:
        super().__init__(view, head)
        self.gate = GateView("none")
        self.gated = ""  # what the gate is of
        self.gate_began = self.started

    def farewell(self) -> str:
        return "the walk has ended; what it decided is kept, and walking again goes on from there"


@dataclass(frozen=True)
class Progress:
    """Something happened on a walk.

    status, row: what goes on, and a row for what was decided or went wrong. text: more of an answer.
    asking:      it is the proposer that speaks. answered: an answer has ended; what comes next is of another one.
    decided:     a step is on disk.
    gate:        what a gate says, of the candidate with the title ``of``.
    reading:     what the calls have cost so far.
    """

    status: str = ""
    text: str = ""
    row: str = ""
    asking: bool = False
    answered: bool = False
    decided: bool = False
    gate: GateEvent | None = None
    of: str = ""
    reading: Reading | None = None


class WalkProgress(Message):
    """A walk went on; posted from its thread."""

    def __init__(self, run: WalkRun, progress: Progress) -> None:
        super().__init__()
        self.run = run
        self.progress = progress


class InduceWalk(InduceAsk):
    """Adds the verb ``walk``. Each decision is on disk before the next begins, so it may be ended at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self._ordered: Order | None = None

    @property
    def _walking(self) -> bool:
        return isinstance(self._asking, WalkRun)

    def why_walking(self, action: str) -> str:
        """Why an action has to wait for the end of a walk; empty when it need not."""
        if not self._walking or action in _LOOKING:
            return ""
        return f"the lineage is walked by {self._asking_name}; {self.key_of('cancel')} ends that"

    @property
    def _asking_name(self) -> str:
        return self._asking.view.name if self._asking is not None else ""

    def do_walk(self) -> None:
        if self._asking is not None:
            self._show_answer(True)
            return
        from klineage_tui.proposers import walkers
        from klineage_tui.screens.walking import WalkOn

        found = walkers(self.host.config.proposer, self._estimate)
        dialog = WalkOn(found, self.spent(), self.host.keys_in_force, self._ordered)
        self.app.push_screen(dialog, lambda order: self._walk_on(order) if order else None)

    def _walk_on(self, order: Order) -> None:
        walk, state = self.host.walk, self._state
        assert walk is not None and state is not None
        if not self._trusted:
            self.ask_trust(lambda: self._walk_on(order))
            return
        self._ordered = order
        view = AnswerView(
            order.name, order.hint, "checking the kernel", keys=self.host.keys_in_force, steps=()
        )
        run = WalkRun(view, state.head.kernel)
        self._asking = run
        settings = self.host.config.proposer

        def tell(progress: Progress) -> None:
            self.post_message(WalkProgress(run, progress))

        def failed(sentence: str) -> None:
            self._ended(run)
            self.complain(sentence)
            self.host.decided()
            self.reload_if_outdated()

        def work() -> tuple[WalkOutcome, Reading]:
            return _walked(walk, order, settings, run, tell)

        self.job("ask", work, lambda end: self._arrived(run, *end), failed)
        self._watch()
        self._show_evidence()

    def _stop_walk(self) -> None:
        """End a walk whose lineage is left."""
        if self._asking is not None and self._walking:
            self._asking.cancel.set()

    def on_walk_progress(self, message: WalkProgress) -> None:
        run, told = message.run, message.progress
        view = run.view
        if told.status:
            view = replace(view, status=told.status)
        if told.row:
            view = replace(view, steps=(*(view.steps or ()), told.row))
        run.view = replace(view, text="" if told.answered else view.text + told.text)
        if told.gate is not None:
            self._show_gate_of(run, told.of, told.gate)
        if told.reading is not None:
            self._show_spending(told.reading)
        if run.gated and (told.asking or told.decided):
            run.gate, run.gated = GateView("none"), ""
            self._show_evidence()
        if told.decided:
            self.host.decided()
            self.reload_if_outdated()

    def _show_gate_of(self, run: WalkRun, what: str, event: GateEvent) -> None:
        """The gate panel belongs to what is gated now."""
        if what != run.gated:
            run.gated, run.gate, run.gate_began = what, GateView("running"), time.monotonic()
        run.gate = run.gate.after(event)
        self._show_evidence()

    def _show_evidence(self) -> None:
        run = self._asking
        if not isinstance(run, WalkRun) or not self.has_class("-answer"):
            super()._show_evidence()
            return
        keys = self.host.keys_in_force if run.gated else {}  # between two gates there is nothing to press
        self.show_gate(replace(run.gate, elapsed=time.monotonic() - run.gate_began, keys=keys))
        self._show_bar()

    def _arrived(self, run: WalkRun, outcome: WalkOutcome, reading: Reading) -> None:
        self._ended(run)
        self._show_spending(reading)
        counts = f"{plural(len(outcome.accepted), 'step')} accepted, {len(outcome.rejected)} rejected"
        self.notify(f"{run.view.name}: {counts}; stopped at: {outcome.stopped}", timeout=10)
        if outcome.note:
            self.notify(outcome.note, severity="warning", timeout=10)
        self.host.decided()
        self.reload_if_outdated()


def _walked(
    walk: Walk, order: Order, settings: Settings, run: WalkRun, tell: Callable[[Progress], None]
) -> tuple[WalkOutcome, Reading]:
    """Walk to the end that was ordered, and say what it all has cost."""
    from klineage.ledger import Ledger, Meter
    from klineage.walk import walk_automatically

    from klineage_tui.proposers import limit_of, named

    limit = limit_of(walk, order.name, settings)
    meter = Meter(Ledger.of(walk.workspace.git.place), walk.id, limit)
    outcome = walk_automatically(
        walk,
        order.limits,
        proposer=named(walk, order.name, settings, limit),
        hint=order.hint,
        best_of=order.best_of,
        listener=_listener(meter, tell),
        cancel=run.cancel,
    )
    return outcome, meter.read()


def _listener(meter: Meter, tell: Callable[[Progress], None]) -> Listener:
    """What a walk says of itself, as rows of text."""
    from klineage.walk import Listener

    from klineage_tui.presentation.details import outcome

    def step(step: Step) -> None:
        mark = "x" if step.decision == "rejected" else "o"
        tell(Progress("asking", row=f"{mark} {step.number}  {step.subject}  {outcome(step)}", decided=True))

    def attempt(attempt: Attempt) -> None:
        row = f"?     {attempt.problem}" if attempt.problem else ""
        tell(Progress(row=row, answered=True, reading=meter.read()))
        for note in attempt.notes:
            tell(Progress(row=f"      {note}"))

    def answer(event: ProposerEvent) -> None:
        status, text = ("", event.text) if event.kind == "text" else (event.text, "")
        tell(Progress(status, text, asking=True))

    def gate(candidate: Candidate | None, event: GateEvent) -> None:
        what = candidate.title if candidate is not None else "the kernel itself"
        tell(Progress(f"gating {what}", gate=event, of=what))

    return Listener(step, attempt, answer, gate)
