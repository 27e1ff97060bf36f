"""Walking without a person: ask, gate, accept what passes, reject what does not, stop at a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from klineage.errors import KlineageError
from klineage.gate import GateEvent, Report, Verdict
from klineage.ledger import OverBudget
from klineage.lineage import Moved, Step, line_ops
from klineage.proposer.base import Attempt, OnProposerEvent, Proposer
from klineage.proposer.by_rules import RulesProposer
from klineage.proposer.candidate import Candidate
from klineage.walk import asking
from klineage.walk.session import Walk

Clock = Callable[[], float]
_Passed = tuple[Candidate, Report]
Decide = Callable[[Candidate, Report], str | None]


@dataclass(frozen=True)
class WalkLimits:
    """When to stop early; None means no limit. Dollars are the proposer's limit, checked before each call.

    steps:              accepted steps.
    rejections_in_a_row: attempts without an accepted step between them, answers that cannot be used included.
    seconds:            nothing new is begun after them; a call or a gate that runs is finished, since it may be paid.
    """

    steps: int | None = None
    rejections_in_a_row: int = 20
    seconds: float | None = None


@dataclass(frozen=True)
class Listener:
    """Who wants to know what an automatic walk does; each may be None.

    on_step:    a step was accepted or rejected, and is on disk.
    on_attempt: a proposer has answered.
    on_answer:  the answer as it comes.
    on_gate:    what a gate does now, of a candidate or (None) of the kernel itself.
    """

    on_step: Callable[[Step], None] | None = None
    on_attempt: Callable[[Attempt], None] | None = None
    on_answer: OnProposerEvent | None = None
    on_gate: Callable[[Candidate | None, GateEvent], None] | None = None


@dataclass(frozen=True)
class WalkOutcome:
    """What an automatic walk did, and why it stopped. ``note``: more about that, for a person."""

    accepted: tuple[Step, ...]
    rejected: tuple[Step, ...]
    stopped: str  # "simplest form", or "step", "rejection", "time" or "spending limit", or "cancelled"
    note: str = ""


def walk_automatically(
    walk: Walk,
    limits: WalkLimits = WalkLimits(),
    *,
    proposer: Proposer | None = None,
    hint: str = "",
    best_of: int = 1,
    decide: Decide | None = None,
    listener: Listener = Listener(),
    cancel: threading.Event | None = None,
    clock: Clock = time.monotonic,
) -> WalkOutcome:
    """Accept what passes until the proposer (None: the rules) has nothing left.

    For each step up to ``best_of`` answers are asked for and gated, and of those that pass the one that changes
    the fewest lines is taken. When none passes the proposer is asked again, and told the reasons.

    decide: a person's word on a candidate that passed: None takes it, text is the reason why it is rejected.

    Every decision is on disk before the next gate starts, so a killed walk resumes at the step it
    had reached. Raises KlineageError when the expert itself does not pass its gate, since a lineage
    of a wrong kernel teaches nothing, and when the proposer cannot go on at all.
    """
    if best_of < 1:
        raise KlineageError("a step needs at least one candidate to choose from")
    run = _Run(walk, limits, proposer or RulesProposer(), hint, best_of, decide, listener, cancel, clock)
    _check_expert(walk, listener, cancel)
    while not run.stopped:
        run.step()
    return WalkOutcome(tuple(run.accepted), tuple(run.rejected), run.stopped, run.note)


@dataclass
class _Run:
    """One automatic walk on its way."""

    walk: Walk
    limits: WalkLimits
    proposer: Proposer
    hint: str
    best_of: int
    decide: Decide | None
    listener: Listener
    cancel: threading.Event | None
    clock: Clock
    accepted: list[Step] = field(default_factory=list)
    rejected: list[Step] = field(default_factory=list)
    in_a_row: int = 0
    note: str = ""
    head: str = ""  # the commit that the answers are about
    over: str = ""  # what the proposer said of its end

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def _cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    @property
    def stopped(self) -> str:
        """Why the walk ends here; empty while it goes on."""
        limits = self.limits
        if self._cancelled:
            return "cancelled"
        if limits.steps is not None and len(self.accepted) >= limits.steps:
            return "step limit"
        if self.in_a_row >= limits.rejections_in_a_row:
            return "rejection limit"
        if limits.seconds is not None and self.clock() - self._began >= limits.seconds:
            return "time limit"
        return self.over

    def step(self) -> None:
        """One state: ask, gate, and decide on what came, unless another klineage has gone on from there meanwhile."""
        state = self.walk.state()
        self.head = state.head.commit
        with suppress(Moved):
            self._decide(state.kernel.source)

    def _decide(self, source: bytes) -> None:
        passing = sorted(self._passing(), key=lambda item: _changed_lines(source, item[0].source))
        while passing and not self._cancelled:
            best, *others = passing
            why = self.decide(*best) if self.decide is not None else None
            if self._cancelled:
                return
            if why is None:  # a person would settle a doubt about what it claims; nobody is there
                why = self.walk.claim_problem(*best)
            if not why:
                self._take(best, others)
                return
            self._record(self.walk.reject(*best, why=why, on=self.head))
            self.in_a_row += 1
            passing = others

    def _take(self, best: _Passed, others: Sequence[_Passed]) -> None:
        for candidate, report in others:
            why = f"passed, as did {best[0].title!r}, which was taken: it changes no more lines"
            self._record(self.walk.reject(candidate, report, why=why, on=self.head))
        self._record(self.walk.accept(*best))
        self.in_a_row = 0

    def _passing(self) -> list[_Passed]:
        """The candidates that passed, of up to ``best_of``; what failed is recorded by then."""
        passing: list[_Passed] = []
        answered = gated = 0
        answers = asking.ask(
            self.walk, self.proposer, self._hint(), self.listener.on_answer, self.cancel, self._record
        )
        with closing(answers):
            try:
                for attempt in answers:
                    answered += 1
                    gated += self._try(attempt, passing)
                    if gated == self.best_of or self.stopped:
                        break
            except OverBudget as error:
                self.over, self.note = "spending limit", str(error)
        if not answered and not self.over:
            self.over = "simplest form"
        return passing

    def _hint(self) -> str:
        """What a person said, and what became of the last attempt on this state, in this run or in an earlier one."""
        state = self.walk.state()
        here = [step for step in state.rejected if step.parent == state.head.commit]
        if not here:
            return self.hint
        last = f"The last attempt on this kernel, {here[-1].subject!r}, was rejected: {here[-1].why}"
        return f"{self.hint}\n{last}".strip()

    def _try(self, attempt: Attempt, passing: list[_Passed]) -> bool:
        """Gate what an attempt proposes; whether it proposed anything."""
        if self.listener.on_attempt is not None:
            self.listener.on_attempt(attempt)
        candidate = attempt.candidate
        if candidate is None:
            self.in_a_row += 1
            return False
        if self.walk.state().head.commit != self.head:
            raise Moved("the answer is about another state")
        report = self.walk.gate(candidate, _gate_listener(candidate, self.listener), self.cancel)
        if self._cancelled:
            return True
        if report.verdict is Verdict.ERROR or candidate.proposer.startswith("rules:"):
            _stop_if_gate_is_broken(report)
        if report.verdict is Verdict.PASS:
            passing.append((candidate, report))
        else:
            self._record(self.walk.reject(candidate, report, why=report.why, on=self.head))
            self.in_a_row += 1
        return True

    def _record(self, step: Step) -> None:
        (self.rejected if step.decision == "rejected" else self.accepted).append(step)
        if self.listener.on_step is not None:
            self.listener.on_step(step)


def _changed_lines(old: bytes, new: bytes) -> int:
    """The fewer lines a step changes, the more surely it is one mechanism."""
    ops = line_ops(old, new)
    return sum(max(op.a1 - op.a0, op.b1 - op.b0) for op in ops if op.tag != "equal")


def _gate_listener(candidate: Candidate | None, listener: Listener) -> Callable[[GateEvent], None] | None:
    on_gate = listener.on_gate
    return None if on_gate is None else lambda event: on_gate(candidate, event)


def _check_expert(walk: Walk, listener: Listener, cancel: threading.Event | None) -> None:
    """Gate the head once before anything is built on it; a passing report in the notes is enough."""
    head = walk.state().head
    if any(r.verdict is Verdict.PASS and r.kernel == head.kernel for r in walk.reports(head.commit)):
        return
    report = walk.gate_commit(head.commit, _gate_listener(None, listener), cancel)
    if cancel is not None and cancel.is_set():
        return
    _stop_if_gate_is_broken(report)
    if report.verdict is not Verdict.PASS:
        raise KlineageError(
            f"{walk.id}: the kernel does not pass its own gate, so it cannot be walked: {report.why}"
        )


def _stop_if_gate_is_broken(report: Report) -> None:
    """A gate that could not judge must not be taken for a rejection of the kernel."""
    if report.verdict in (Verdict.ERROR, Verdict.UNSUPPORTED):
        raise KlineageError(f"the gate could not judge this kernel: {report.why}")
