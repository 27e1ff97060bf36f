"""Judge one violation: does the optimization fail under it, or lose its effect, and does the form without it stand?

Three gates at most. The card's own states as they are say what the effect is here. The optimized kernel under the
violation says whether it still stands and what it still gains. Where it fails, the kernel without the optimization is judged
under the same violation: when that fails too, the violation says nothing of this optimization.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from klineage.gate import GateEvent, Report, Verdict
from klineage.gate.policy import Phase
from klineage.skill.probe.state import State
from klineage.skill.probe.weighing import (
    Finding,
    compiled,
    declared_gains,
    failed,
    finding_of,
    instructions_of,
    neutral,
    spilled,
    stage_of,
    timed,
    weighed,
    why_of,
)  # fmt: skip
from klineage.skill.trial import gain_of, judged, leading

OnEvent = Callable[[str, GateEvent | None], None]


@dataclass(frozen=True)
class Judge:
    """How violations of states are judged.

    kind, declared: of the precondition, and what the card declares to gain: both decide what can show that it matters
    (see ``weighed``).
    code: a mechanism whose instructions show the effect (see ``MECHANISMS``). known: what states as they are were found
    to be, so that several violations of one are held against the same measurement.
    """

    phase: Phase = "acceptance"
    code: str = ""
    kind: str = ""
    declared: frozenset[str] = frozenset()
    on_event: OnEvent | None = None
    cancel: threading.Event | None = None
    known: dict[str, Report] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, state: State, broken: State, words: str) -> Finding:
        """Judge ``broken``, which is ``state`` with what ``words`` say.

        Raises KlineageError when cancelled.
        """
        own = self._own(state)
        if own.verdict is Verdict.UNSUPPORTED and compiled(own):
            return self._statically(own, broken, words)
        if own.verdict is not Verdict.PASS:
            return finding_of(
                "untested", f"the card's own kernel does not pass here as it is: {why_of(own)}", own
            )
        report = self._gate(broken, words, baseline=True)
        if failed(report):
            return self._failure(broken, words, report)
        if report.verdict is not Verdict.PASS:
            return finding_of("untested", f"{words}: nothing was judged: {why_of(report)}", report)
        found = self._by_code(own, report, words) or self._weighed(own, report, words)
        if found.outcome == "untested" and timed(report):  # a clock was in the way: once more
            report = self._gate(broken, words, baseline=True, fresh=True)
            found = (
                self._failure(broken, words, report) if failed(report) else self._weighed(own, report, words)
            )
        return found

    def _weighed(self, own: Report, report: Report, words: str) -> Finding:
        """What a clock says; without one, of storage, what the compiler says of registers before any count."""
        spills = spilled(own, report, words) if self.kind == "storage" and not timed(report) else None
        return spills or weighed(own, report, words, self.kind, self.declared)

    def as_it_is(self, state: State, why: str) -> Finding:
        """Judge a state that does not meet the precondition to begin with; ``why``: what its check says."""
        own = self._own(state)
        words = f"the card's own state does not meet it ({why})"
        if own.verdict is not Verdict.PASS:
            return finding_of("untested", f"{words}, and does not pass here: {why_of(own)}", own)
        gain = leading(declared_gains(own, self.declared))
        if gain is None or not gain.better:
            return finding_of(
                "untested", f"{words}, and shows no gain here: there is nothing to violate", own
            )
        return finding_of("refuted", f"{words}, and gains {gain} all the same", own)

    def _own(self, state: State) -> Report:
        """What a state is as it is; measured anew where what is remembered was too noisy to decide anything."""
        name = f"{state.after.hash} {state.before.hash} {state.workload.hash} {state.platform}"
        if name not in self.known:
            report = self._gate(state, "as it is", baseline=True)
            undecided = report.verdict is Verdict.PASS and gain_of(report) is None and not neutral(report)
            if undecided and timed(report):
                report = self._gate(state, "as it is", baseline=True, fresh=True)
            self.known[name] = report
        return self.known[name]

    def _statically(self, own: Report, broken: State, words: str) -> Finding:
        """What a compiler alone can say, where nothing here runs the kernel."""
        report = self._gate(broken, words, baseline=True)
        if not compiled(report) and failed(report):
            plain = self._gate(broken, f"{words}, without it", baseline=False)
            case = f"{words}: {stage_of(report)} fails: {why_of(report)}"
            if compiled(plain):
                text = f"{case}; without the optimization the kernel compiles"
                return finding_of("confirmed", text, report, plain, trust="static")
            return finding_of(
                "untested",
                f"{words}: the kernel without the optimization does not compile either",
                report,
                plain,
            )
        found = self._by_code(own, report, words) if compiled(report) else None
        return found or finding_of(
            "untested", f"{words}: it compiles, and nothing here can run it: {why_of(own)}", report, own
        )

    def _gate(self, state: State, words: str, *, baseline: bool, fresh: bool = False) -> Report:
        def tell(event: GateEvent) -> None:
            if self.on_event:
                self.on_event(words, event)

        if self.on_event:
            self.on_event(words, None)
        kernel = state.after if baseline else state.before
        report = judged(
            kernel, state.before if baseline else None, state.workload, state.platform, self.phase,
            on_event=tell, cancel=self.cancel, fresh=fresh,
        )  # fmt: skip
        if not fresh and report.decisive is not None and report.decisive.stage == "profile":
            return self._gate(
                state, words, baseline=baseline, fresh=True
            )  # a clock must say twice that a kernel is wrong
        return report

    def _failure(self, broken: State, words: str, report: Report) -> Finding:
        plain = self._gate(broken, f"{words}, without it", baseline=False)
        case = f"{words}: {stage_of(report)} fails: {why_of(report)}"
        if plain.verdict is Verdict.PASS:
            return finding_of(
                "confirmed", f"{case}; without the optimization the kernel passes", report, plain
            )
        if failed(plain):
            return finding_of(
                "untested",
                f"{words}: the kernel without the optimization fails as well: {why_of(plain)}",
                report,
                plain,
            )
        return finding_of(
            "untested", f"{case}; without the optimization nothing was judged: {why_of(plain)}", report, plain
        )

    def _by_code(self, own: Report, report: Report, words: str) -> Finding | None:
        """What the instructions say that are the mechanism: a fact of the code, not of time. None where they say nothing.

        Where they are still there, a quantity that was measured or counted has the last word.
        """
        before, after = (instructions_of(r, self.code) for r in (own, report))
        if not self.code or before == 0:
            return None
        if 2 * after <= before:
            text = f"{words}: the compiled code has {after:.0f} {self.code} instructions, not {before:.0f}"
            return finding_of("confirmed", text, report, own, trust="static")
        found = self._weighed(own, report, words)
        if found.outcome != "untested":
            return found
        text = f"{words}: nothing breaks: the compiled code has {after:.0f} {self.code} instructions, and {before:.0f} as it is"
        return finding_of("refuted", text, report, own, trust="static")
