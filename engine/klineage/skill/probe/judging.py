"""Judge one violation: does the optimization fail under it, or lose its effect, and does the form without it stand?

Three gates at most. The card's own states as they are say what the effect is here. The optimized kernel under the
violation says whether it still stands and what it still gains. Where it fails, the kernel without the optimization is judged
under the same violation: when that fails too, the violation says nothing of this optimization.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from klineage.gate import GateEvent, Report, Trust, Verdict
from klineage.gate.counts import MECHANISMS
from klineage.gate.policy import Phase
from klineage.numbers import three
from klineage.skill.card import Outcome
from klineage.skill.probe.state import State
from klineage.skill.trial import Gain, gain_of, gains_of, judged

_WHY = 200  # characters of a gate's own sentence
#: A time within 3 % of the baseline's, known to 6 %, is no effect.
_SMALL, _TIGHT = 0.03, 1.06

OnEvent = Callable[[str, GateEvent | None], None]


@dataclass(frozen=True)
class Finding:
    """What came of a violation.

    found:   one sentence: the failing case, the effect that was lost, the number that shows that nothing broke, or why
             nothing can be said.
    reports: the gates that show it, the deciding one first.
    """

    outcome: Outcome
    found: str
    trust: str = ""
    platform: str = ""
    when: str = ""
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True)
class Judge:
    """How violations of one state are judged. ``code``: a mechanism whose instructions show it (see ``MECHANISMS``)."""

    phase: Phase = "acceptance"
    code: str = ""
    on_event: OnEvent | None = None
    cancel: threading.Event | None = None

    def __call__(self, state: State, broken: State, words: str) -> Finding:
        """Judge ``broken``, which is ``state`` with what ``words`` say.

        Raises KlineageError when cancelled.
        """
        own = self._surely(state, "as it is", lambda report: gain_of(report) is not None or _neutral(report))
        if own.verdict is not Verdict.PASS:
            return _finding(
                "untested", f"the card's own kernel does not pass here as it is: {_why(own)}", own
            )
        report = self._gate(broken, words, baseline=True)
        if _failed(report):
            return self._failure(broken, words, report)
        if report.verdict is not Verdict.PASS:
            return _finding("untested", f"{words}: nothing was judged: {_why(report)}", report)
        found = self._by_code(own, report, words) or _weighed(own, report, words)
        if found.outcome == "untested" and _timed(report):  # a clock was in the way: once more
            report = self._gate(broken, words, baseline=True, fresh=True)
            found = self._failure(broken, words, report) if _failed(report) else _weighed(own, report, words)
        return found

    def as_it_is(self, state: State, why: str) -> Finding:
        """Judge a state that does not meet the precondition to begin with; ``why``: what its check says."""
        own = self._surely(state, "as it is", lambda report: gain_of(report) is not None)
        words = f"the card's own state does not meet it ({why})"
        if own.verdict is not Verdict.PASS:
            return _finding("untested", f"{words}, and does not pass here: {_why(own)}", own)
        gain = gain_of(own)
        if gain is None or not gain.better:
            return _finding("untested", f"{words}, and shows no gain here: there is nothing to violate", own)
        return _finding("refuted", f"{words}, and gains {gain} all the same", own)

    def _surely(self, state: State, words: str, enough: Callable[[Report], bool]) -> Report:
        """A gate whose time decides something; taken anew where the one that is remembered does not."""
        report = self._gate(state, words, baseline=True)
        if report.verdict is Verdict.PASS and _timed(report) and not enough(report):
            return self._gate(state, words, baseline=True, fresh=True)
        return report

    def _gate(self, state: State, words: str, *, baseline: bool, fresh: bool = False) -> Report:
        def tell(event: GateEvent) -> None:
            if self.on_event:
                self.on_event(words, event)

        if self.on_event:
            self.on_event(words, None)
        kernel = state.after if baseline else state.before
        return judged(
            kernel, state.before if baseline else None, state.workload, state.platform, self.phase,
            on_event=tell, cancel=self.cancel, fresh=fresh,
        )  # fmt: skip

    def _failure(self, broken: State, words: str, report: Report) -> Finding:
        plain = self._gate(broken, f"{words}, without it", baseline=False)
        case = f"{words}: {_stage(report)} fails: {_why(report)}"
        if plain.verdict is Verdict.PASS:
            return _finding("confirmed", f"{case}; without the optimization the kernel passes", report, plain)
        if _failed(plain):
            return _finding(
                "untested",
                f"{words}: the kernel without the optimization fails as well: {_why(plain)}",
                report,
                plain,
            )
        return _finding(
            "untested", f"{case}; without the optimization nothing was judged: {_why(plain)}", report, plain
        )

    def _by_code(self, own: Report, report: Report, words: str) -> Finding | None:
        """What the instructions say that are the mechanism: a fact of the code, not of time. None where they say nothing.

        Where they are still there, a quantity that was measured or counted has the last word.
        """
        before, after = (_instructions(r, self.code) for r in (own, report))
        if not self.code or before == 0:
            return None
        if 2 * after <= before:
            text = f"{words}: the compiled code has {after:.0f} {self.code} instructions, not {before:.0f}"
            return _finding("confirmed", text, report, own, trust="static")
        found = _weighed(own, report, words)
        if found.outcome != "untested":
            return found
        text = f"{words}: nothing breaks: the compiled code has {after:.0f} {self.code} instructions, and {before:.0f} as it is"
        return _finding("refuted", text, report, own, trust="static")


def _failed(report: Report) -> bool:
    """Whether the kernel itself is at fault: a missing tool, or a workload that does not take the size, is not."""
    stage = report.decisive
    if stage is None or stage.reason in ("workload", "workload_timeout", "signature"):
        return False
    slow_compiler = stage.stage == "compile" and report.verdict is Verdict.TIMEOUT
    return report.verdict in (Verdict.FAIL, Verdict.TIMEOUT) and not slow_compiler


def _why(report: Report) -> str:
    """Why a gate ended as it did, without what only a debugger of the compiler wants."""
    return cut(report.why.partition(" Repro command")[0], _WHY)


def _stage(report: Report) -> str:
    return report.decisive.stage if report.decisive else "the gate"


def _instructions(report: Report, code: str) -> float:
    stage = report.stage("compile")
    numbers = stage.numbers if stage else {}
    return sum(numbers.get(f"sass {name}", 0.0) for name in MECHANISMS.get(code, ()))


def _timed(report: Report) -> bool:
    """Whether a clock was asked, and not an interpreter or a compiler."""
    return report.trust in (Trust.MEASURED_CPU, Trust.MEASURED_GPU)


def _neutral(report: Report) -> bool:
    """Whether a time was measured well enough to say that there is no effect."""
    profile = report.stage("profile")
    time = profile.measurement if profile and profile.verdict is Verdict.PASS else None
    if time is None or time.low is None or time.high is None or gain_of(report) is not None:
        return False
    return time.high / time.low < _TIGHT and time.low < 1 + _SMALL and time.high > 1 - _SMALL


def _weighed(own: Report, report: Report, words: str) -> Finding:
    """What a kernel that still stands still gains, beside what it gains where the precondition holds."""
    gain = gain_of(own)
    if gain is None or not gain.better:
        if gain is None and _neutral(own):
            text = (
                f"{words}: nothing breaks; there is no effect to lose, for its time is what it is without it"
            )
            return _finding("refuted", text, report, own)
        text = f"{words}: it computes the right thing, but shows no gain here even as it is, so a loss could not be seen"
        return _finding("untested", text, report, own)
    now = next((g for g in gains_of(report) if g.quantity == gain.quantity), None)
    if now is None:
        profile = report.stage("profile")
        why = profile.summary if profile else "there was no profile"
        text = f"{words}: it computes the right thing; what it gains is not known: {why}"
        return _finding("untested", text, report, own)
    half = 1 + (gain.gain - 1) / 2
    if now.high < half:
        return _finding(
            "confirmed", f"{words}: loses its effect: {now}, where it gains {_short(gain)}", report, own
        )
    if now.low >= half:
        return _finding(
            "refuted", f"{words}: nothing breaks: {now}, and {_short(gain)} as it is", report, own
        )
    text = f"{words}: too close to call: {now}, where half of the effect would be {three(half)}x"
    return _finding("untested", text, report, own)


def _short(gain: Gain) -> str:
    return f"{three(gain.gain)}x"


def _finding(outcome: Outcome, found: str, *reports: Report, trust: str = "") -> Finding:
    first = reports[0]
    return Finding(outcome, found, trust or str(first.trust), first.platform, first.finished, reports)


def cut(text: str, most: int = 300) -> str:
    """One line, of a length that is read."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
