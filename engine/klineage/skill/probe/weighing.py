"""What gates show of a violation, as a finding: nothing here runs anything."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from klineage.gate import Report, Trust, Verdict
from klineage.gate.counts import MECHANISMS
from klineage.numbers import three
from klineage.skill.card import Outcome
from klineage.skill.trial import COMPILED, Gain, gain_of, gains_of, leading

#: A time within 3 % of the baseline's, known to 6 %, is no effect.
_SMALL, _TIGHT = 0.03, 1.06
_WHY = 200  # characters of a gate's own sentence
#: Kinds of preconditions of which counts of an interpreter know nothing.
BLIND = ("storage", "hardware")


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


def failed(report: Report) -> bool:
    """Whether the kernel itself is at fault: a missing tool, or a workload that does not take the size, is not."""
    stage = report.decisive
    if stage is None or stage.reason in ("workload", "workload_timeout", "signature"):
        return False
    slow_compiler = stage.stage == "compile" and report.verdict is Verdict.TIMEOUT
    return report.verdict in (Verdict.FAIL, Verdict.TIMEOUT) and not slow_compiler


def compiled(report: Report) -> bool:
    stage = report.stage("compile")
    return stage is not None and stage.verdict is Verdict.PASS


def why_of(report: Report) -> str:
    """Why a gate ended as it did, without what only a debugger of the compiler wants."""
    return cut(report.why.partition(" Repro command")[0], _WHY)


def stage_of(report: Report) -> str:
    return report.decisive.stage if report.decisive else "the gate"


def instructions_of(report: Report, code: str) -> float:
    stage = report.stage("compile")
    numbers = stage.numbers if stage else {}
    return sum(numbers.get(f"sass {name}", 0.0) for name in MECHANISMS.get(code, ()))


def timed(report: Report) -> bool:
    """Whether a clock was asked, and not an interpreter or a compiler."""
    return report.trust in (Trust.MEASURED_CPU, Trust.MEASURED_GPU)


def neutral(report: Report) -> bool:
    """Whether a time was measured well enough to say that there is no effect."""
    profile = report.stage("profile")
    time = profile.measurement if profile and profile.verdict is Verdict.PASS else None
    if time is None or time.low is None or time.high is None or gain_of(report) is not None:
        return False
    return time.high / time.low < _TIGHT and time.low < 1 + _SMALL and time.high > 1 - _SMALL


def spilled(own: Report, report: Report, words: str) -> Finding | None:
    """What the compiler says of registers: confirmed where the optimization now spills more than as it is, and more than
    the kernel without it. None where nothing is known of that, or no more is spilled."""
    then, now = _spills(own), _spills(report)
    if then is None or now is None or now[0] <= max(then[0], now[1]):
        return None
    text = (
        f"{words}: the compiled code spills {now[0]:,} bytes of registers, {then[0]:,} as it is, "
        f"and {now[1]:,} without the optimization"
    )
    return finding_of("confirmed", text, report, own, trust="static")


def _spills(report: Report) -> tuple[int, int] | None:
    """Bytes of spilled registers with the optimization and without."""
    profile = report.stage("profile")
    if profile is None or profile.counts is None or profile.baseline_counts is None:
        return None
    with_, without = profile.counts.values, profile.baseline_counts.values
    both = "spill_bytes" in with_ and "spill_bytes" in without
    return (with_["spill_bytes"], without["spill_bytes"]) if both else None


def declared_gains(report: Report, declared: Collection[str]) -> tuple[Gain, ...]:
    """What a gate shows of the quantities that a card declares to gain; of all where it declares none."""
    return tuple(gain for gain in gains_of(report) if not declared or gain.quantity in declared)


def weighed(
    own: Report, report: Report, words: str, kind: str = "", declared: Collection[str] = ()
) -> Finding:
    """What a kernel that still stands still gains, beside what it gains where the precondition holds.

    kind: of the precondition. Bytes and operations that an interpreter counts are the same wherever they are kept and
    whatever they run on, so of storage and of hardware they show nothing, neither a loss nor that nothing is lost.
    declared: the quantities of the card's effects. Where it declares a time alone, no count says what is left of it.
    """
    found = declared_gains(own, declared)
    if not found and gains_of(own):
        text = f"{words}: it computes the right thing; the card gains {' and '.join(sorted(declared))}, which nothing here shows"
        return finding_of("untested", text, report, own)
    gain = leading(found)
    if gain is not None and kind in BLIND and gain.exact and gain.quantity not in COMPILED:
        text = f"{words}: it computes the right thing; counts of {gain.quantity} say nothing of {kind}: gate it where it is timed"
        return finding_of("untested", text, report, own)
    if gain is None or not gain.better:
        if gain is None and neutral(own):
            text = (
                f"{words}: nothing breaks; there is no effect to lose, for its time is what it is without it"
            )
            return finding_of("refuted", text, report, own)
        text = f"{words}: it computes the right thing, but shows no gain here even as it is, so a loss could not be seen"
        return finding_of("untested", text, report, own)
    now = next((g for g in gains_of(report) if g.quantity == gain.quantity), None)
    if now is None:
        profile = report.stage("profile")
        why = profile.summary if profile else "there was no profile"
        text = f"{words}: it computes the right thing; what it gains is not known: {why}"
        return finding_of("untested", text, report, own)
    half = 1 + (gain.gain - 1) / 2
    if now.high < half:
        return finding_of(
            "confirmed", f"{words}: loses its effect: {now}, where it gains {gain.times}", report, own, trust=now.trust
        )  # fmt: skip
    if now.low >= half:
        return finding_of(
            "refuted", f"{words}: nothing breaks: {now}, and {gain.times} as it is", report, own, trust=now.trust
        )  # fmt: skip
    text = f"{words}: too close to call: {now}, where half of the effect would be {three(half)}x"
    return finding_of("untested", text, report, own)


def finding_of(outcome: Outcome, found: str, *reports: Report, trust: str = "") -> Finding:
    first = reports[0]
    return Finding(outcome, found, trust or str(first.trust), first.platform, first.finished, reports)


def cut(text: str, most: int = 300) -> str:
    """One line, of a length that is read."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
