"""Any agent's command line as a proposer: one run in a fresh folder for each attempt."""

from __future__ import annotations

import hashlib
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from klineage.errors import KlineageError
from klineage.ledger import Call, Ledger, Limit, OverBudget, Usage, new_call_id
from klineage.proposer.answer import Unusable, candidate_of
from klineage.proposer.base import Attempt, OnProposerEvent, ProposerEvent, Task, Tried
from klineage.proposer.candidate import Candidate
from klineage.proposer.command import running, runs, scratch
from klineage.proposer.command.agents import Agent
from klineage.proposer.command.streams import Facts, Stream

_FAULTS = 5  # earlier answers whose faults the next run is told


@dataclass(frozen=True)
class CommandProposer:
    """Runs an agent, and takes nothing from it but its answer.

    seconds: how long one run may take.
    ledger:  where runs are written down; None writes nothing. What a run costs is known only if the command
             says so: under a limit in ``limits`` it is not run at all, since nobody knows its worst case.
    lineage: whose run it is, for the ledger.
    """

    agent: Agent
    seconds: float = 1800.0
    ledger: Ledger | None = None
    lineage: str = ""
    limits: tuple[Limit, ...] = ()

    @property
    def name(self) -> str:
        return f"command:{self.agent.name}"

    def attempts(
        self,
        task: Task,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Attempt]:
        """One run for each attempt that is taken, until the command says that nothing is left. See ``Proposer``.

        Before that, what earlier runs about this task had answered when a kill cut them off.
        """
        for earlier in self._earlier(task, on_event):
            yield earlier
            if earlier.candidate is not None:
                task = _without(task, earlier.candidate)
        faults: list[str] = []
        while cancel is None or not cancel.is_set():
            attempt = self._attempt(task, faults, on_event, cancel)
            if attempt is None:
                return
            yield attempt
            if attempt.problem:
                faults.append(attempt.problem)
            elif attempt.candidate is not None:
                task = _without(task, attempt.candidate)

    def _attempt(
        self,
        task: Task,
        faults: Sequence[str],
        on_event: OnProposerEvent | None,
        cancel: threading.Event | None,
    ) -> Attempt | None:
        with tempfile.TemporaryDirectory(prefix=runs.PREFIX, ignore_cleanup_errors=True) as name:
            place = scratch.prepare(Path(name).resolve(), task, faults[-_FAULTS:])
            call, run = self._begun(task, place)
            plain = self.agent.stream()
            stream: Stream = plain if run is None else runs.Noted.of(plain, run)
            outcome = runs.CUT_OFF
            try:
                _tell(on_event, f"{self.agent.name} works on it, for at most {self.seconds:.0f} s")
                ending = running.run(
                    self.agent.command(place.folder), place.folder, self.seconds, stream, on_event, cancel
                )
                attempt = self._judged(task, place, ending, stream.facts)
                outcome = attempt.problem or "answered"
            except scratch.Nothing as reason:
                outcome = "it sees nothing left"
                _tell(on_event, f"{self.agent.name} sees nothing left to take out: {reason}")
                return None
            except running.NotStarted:
                outcome = ""
                raise
            finally:
                self._conclude(call, run, stream, outcome)
        return replace(attempt, call=call)

    def _earlier(self, task: Task, on_event: OnProposerEvent | None) -> Iterator[Attempt]:
        """The answers of runs that were cut off; one that cannot be used is told, and costs no attempt."""
        if self.ledger is None:
            return
        for call, folder in runs.answered(self.ledger, self.name, self.lineage, task):
            try:
                answer, source = scratch.read_answer(scratch.left_behind(folder, task))
                candidate = candidate_of(task, answer, source, self.name)
            except (Unusable, scratch.Nothing) as problem:
                _tell(on_event, f"a run that was cut off had answered, and that is of no use: {problem}")
                continue
            yield Attempt(
                self.name, candidate, call=call, notes=("its run was cut off after it had answered",)
            )

    def _judged(self, task: Task, place: scratch.Scratch, ending: running.Ending, facts: Facts) -> Attempt:
        notes = scratch.meddling(place)
        if ending.left:
            processes = "a process" if ending.left == 1 else f"{ending.left} processes"
            notes = (*notes, f"it left {processes} behind, now ended")
        if ending.why == "cancelled":
            return Attempt(self.name, problem="it was cancelled", notes=notes)
        if ending.why == "timeout":
            return Attempt(
                self.name, problem=f"it did not answer within {self.seconds:.0f} s and was ended", notes=notes
            )
        if facts.failed:
            return Attempt(self.name, problem=f"it gave up: {facts.failed}", notes=notes)
        if ending.exit != 0:
            return Attempt(self.name, problem=_failure(ending), notes=notes)
        try:
            answer, source = scratch.read_answer(place)
            return Attempt(self.name, candidate_of(task, answer, source, self.name), notes=notes)
        except Unusable as problem:
            return Attempt(self.name, problem.evidence, str(problem), notes=notes)

    def _begun(self, task: Task, place: scratch.Scratch) -> tuple[str, runs.Run | None]:
        """Write the run down before it is made, here and in the ledger. Raises OverBudget under a limit."""
        for limit in self.limits:
            if limit.lineage in ("", self.lineage):
                raise OverBudget(
                    f"nobody knows before a run of {self.name} what it will cost, so it is not run under a limit of "
                    f"{limit}; leave the budget to the command's own settings, and walk without one here"
                )
        if self.ledger is None:
            return "", None
        now = datetime.now(UTC)
        prompt = hashlib.sha256(place.task.encode("utf-8", "surrogateescape")).hexdigest()
        call = Call(
            new_call_id(now), self.lineage, task.kernel.hash, self.name, self.name, prompt, now, worst=Usage()
        )
        run = runs.begin(self.ledger, call.id, self.name, self.lineage, task, place.folder)
        try:
            self.ledger.reserve(call)
        except KlineageError:
            run.end()
            raise
        return call.id, run

    def _conclude(self, call: str, run: runs.Run | None, stream: Stream, outcome: str) -> None:
        """Write down what the command says that it used; nothing is made up where it says nothing.

        An empty outcome: it was never started.
        """
        if self.ledger is None or run is None:
            return
        facts = stream.facts
        if outcome:
            self.ledger.settle(call, facts.usage or Usage(), outcome, dollars=facts.dollars)
        else:
            self.ledger.release(call, "the command was not started")
        run.end()


def _without(task: Task, candidate: Candidate) -> Task:
    """The task for the next run: what was just proposed is not to be offered again."""
    why = "it has been proposed already; another one is wanted"
    tried = Tried(candidate.title, candidate.action, candidate.locus, why, candidate.kernel(task.kernel).hash)
    return replace(task, tried=(*task.tried, tried))


def _failure(ending: running.Ending) -> str:
    words = [line.strip() for line in ending.said.splitlines() if line.strip()]
    last = f": {words[-1][:200]}" if words else ""
    if ending.exit < 0:
        try:
            name = signal.Signals(-ending.exit).name
        except ValueError:
            name = f"signal {-ending.exit}"
        return f"it was ended by {name}{last}"
    return f"it ended with status {ending.exit}{last}"


def _tell(on_event: OnProposerEvent | None, sentence: str) -> None:
    if on_event is not None:
        on_event(ProposerEvent("status", sentence))
