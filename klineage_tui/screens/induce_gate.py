"""Gating a proposal in Induce: one run at a time, its progress, its evidence, and how to stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message

from klineage_tui.presentation.gate import GateView
from klineage_tui.proposals import Proposal, evidence
from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.induce_edits import InduceEdits

if TYPE_CHECKING:
    from klineage.gate import GateEvent, Report
    from klineage.walk import WalkState


class GateProgress(Message):
    """A running gate said something; posted from its thread."""

    def __init__(self, run: GateRun, event: GateEvent) -> None:
        super().__init__()
        self.run = run
        self.event = event


class GateRun:
    """One running gate: of which bytes, on which state, how far, and how to stop it."""

    def __init__(self, proposal: Proposal, head: str) -> None:
        self.proposal = proposal
        self.key = (proposal.kernel, head)
        self.cancel = threading.Event()
        self.started = time.monotonic()
        self.view = GateView("running")


class InduceGate(InduceEdits):
    """Adds the verbs ``gate`` and ``cancel``. A result belongs to the bytes and to the state it was taken on."""

    def __init__(self) -> None:
        super().__init__()
        self._reports: dict[tuple[str, str], Report] = {}  # (kernel, state it was gated on)
        self._outcome: dict[tuple[str, str], GateView] = {}  # gates that gave no report
        self._run: GateRun | None = None
        self._trusted = False

    def _show_bar(self) -> None:
        """Draw the footer again."""
        raise NotImplementedError

    def redraw(self) -> None:
        super().redraw()
        self._show_evidence()

    def _show_evidence(self) -> None:
        current, state = self._queue.current, self._state
        self.show_gate(None if current is None or state is None else self._gate_view(current, state))
        self._show_bar()

    def _gate_view(self, proposal: Proposal, state: WalkState) -> GateView:
        keys = self.host.keys_in_force
        key = (proposal.kernel, state.head.kernel)
        if self._run is not None and self._run.key == key:
            elapsed = time.monotonic() - self._run.started
            return replace(self._run.view, elapsed=elapsed, keys=keys)
        status, report = evidence(proposal, state.head.kernel, self._reports)
        if status == "none" and key in self._outcome:
            return replace(self._outcome[key], keys=keys)
        return GateView(status, report, keys=keys)

    def do_gate(self) -> None:
        walk, state, current = self.host.walk, self._state, self._queue.current
        assert walk is not None and state is not None and current is not None
        if not self._trusted:
            self.ask_trust(self.do_gate)
            return
        self.show_proposal_tab()
        run = self._run = GateRun(current, state.head.kernel)
        self._outcome.pop(run.key, None)

        def work() -> Report:
            return walk.gate(current.candidate, lambda e: self._tell(run, e), run.cancel)

        def failed(sentence: str) -> None:
            self._gate_ended(run, GateView("broken", problem=sentence))

        self.job("gate", work, lambda report: self._gated(run, report), failed)
        self._ticker = self.set_interval(0.2, self._tick)
        self._show_evidence()

    def ask_trust(self, then: Callable[[], None]) -> None:
        """Ask whether the code of somebody else's repository may run; do ``then`` after a yes."""
        walk = self.host.walk
        assert walk is not None

        def trusted(_: None) -> None:
            self._trusted = True
            then()

        dialog = Confirm(
            "Somebody else's kernel",
            f"“{walk.id}” was not made here. A gate runs its kernel and its workload.py on this machine: "
            "read both first. Run the code of this repository?",
            "runs it, and remembers the answer",
            dict(self.host.keys_in_force),
            cancel="runs nothing",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.job("trust", walk.trust, trusted)

        self.app.push_screen(dialog, answered)

    def _tell(self, run: GateRun, event: GateEvent) -> None:
        self.post_message(GateProgress(run, event))

    def on_gate_progress(self, message: GateProgress) -> None:
        message.run.view = message.run.view.after(message.event)
        if message.run is self._run:
            self._show_evidence()

    def _tick(self) -> None:
        """Only the seconds change between events."""
        current, state, run = self._queue.current, self._state, self._run
        if run is None or current is None or state is None:
            return
        if run.proposal.kernel == current.kernel:
            self.show_gate(self._gate_view(current, state))

    def _gated(self, run: GateRun, report: Report) -> None:
        if run.cancel.is_set():
            self._gate_ended(run, GateView("cancelled"))
            return
        self._reports[(report.kernel, report.baseline or run.key[1])] = report
        self._gate_ended(run, None, report)

    def _gate_ended(self, run: GateRun, outcome: GateView | None, report: Report | None = None) -> None:
        if outcome is not None:
            if run.cancel.is_set():
                outcome = GateView("cancelled")
            self._outcome[run.key] = outcome
        if self._run is run:
            self._run = None
            self._ticker.stop()
        current = self._queue.current
        elsewhere = current is None or current.kernel != run.proposal.kernel or self.app.screen is not self
        if report is not None and elsewhere:
            self.notify(f"{str(report.verdict).upper()}: {run.proposal.candidate.title}", timeout=4)
        self._show_evidence()

    def do_cancel(self) -> None:
        if not self._cancel_answer():
            self._stop_gate()

    def _cancel_answer(self) -> bool:
        """End what is being asked, if anything is and the person can mean it."""
        return False

    def _stop_gate(self) -> None:
        if self._run is not None:
            self._run.cancel.set()
            self._run.view = replace(self._run.view, running="", detail="")

    def on_unmount(self) -> None:
        self._stop_gate()
