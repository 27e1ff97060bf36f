"""What the gates of transitions show: gains as effects, and everything else that they show as risks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from klineage.gate import Report
from klineage.gate.counts import RESOURCES, WORK
from klineage.numbers import three
from klineage.skill.card import Effect, Risk
from klineage.skill.lift.citing import Cited, failure_of, subject_of
from klineage.skill.lift.groups import Group
from klineage.skill.lift.preconditions import grew_much
from klineage.skill.transitions import Transition
from klineage.skill.trial import TIME, Gain, effect_of, gains_of

_MAIN = (TIME, *WORK)
_ROUNDER = 1.5  # times the RMS error of the state before, from which a change is said to round more
_OF_TOLERANCE = 0.05  # and the least part of the tolerance that it must reach to matter


def gains_shown(report: Report) -> tuple[Gain, ...]:
    """What is better with the optimization, beyond noise: work before resources, and resources only where no work
    changed."""
    found = gains_of(report)
    changed = any(gain.shown and gain.quantity in _MAIN for gain in found)
    wanted = _MAIN if changed else RESOURCES
    return tuple(gain for gain in found if gain.better and gain.quantity in wanted)


def effects_of(group: Group, cited: Cited) -> tuple[Effect, ...]:
    """One effect for each gain of each transition on each platform, with the transition as its evidence."""
    return tuple(
        effect_of(gain, report.platform, t.workload.name, "in-order", cited.of(t.commit))
        for t in group.transitions
        for report in t.comparisons
        for gain in gains_shown(report)
    )


def risks_of(group: Group, cited: Cited) -> tuple[Risk, ...]:
    """What went wrong, or cost something, in what the card cites: each with the commits that show it."""
    return tuple(
        [*_rejections(group, cited), *_losses(group, cited), *_idle(group, cited), *_rounding(group, cited)]
    )


def _rejections(group: Group, cited: Cited) -> Iterable[Risk]:
    for attempt in group.rejected:
        why = failure_of(attempt)
        if not why:
            continue
        gated = attempt.report is not None and attempt.report.decisive is not None
        what = attempt.step.action or "it"
        text = (
            f"An attempt to take {what} out of {attempt.lineage} ({subject_of(attempt)}) was rejected: {why}."
        )
        kind, origin = ("observed", "gate") if gated else ("expected", "person")
        yield Risk(_ended(text), kind, origin, cited.of(attempt.commit))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Measured:
    """What one gate of a transition measured."""

    transition: Transition
    report: Report
    gains: tuple[Gain, ...]


def _measured(group: Group) -> list[_Measured]:
    return [
        _Measured(t, report, gains)
        for t in group.transitions
        for report in t.comparisons
        if (gains := gains_of(report))
    ]


def _losses(group: Group, cited: Cited) -> Iterable[Risk]:
    """What got worse beyond noise: a time, or work and resources that are the price of something else."""
    for quantity in (*_MAIN, *RESOURCES):
        worse = [(m, g) for m in _measured(group) for g in m.gains if g.quantity == quantity and _lost(g)]
        if worse:
            told = _listed([f"{_amount(gain)} on {m.transition.workload.name}" for m, gain in worse])
            what = "It made the kernel slower" if quantity == TIME else f"It costs {_word(quantity)}"
            commits = [m.transition.commit for m, _ in worse]
            yield Risk(f"{what}: {told} ({_trust(worse)}).", "observed", "gate", cited.of(*commits))


def _lost(gain: Gain) -> bool:
    """Whether it is worse by enough to speak of; a few registers more or less are the compiler's mood."""
    if not gain.shown or gain.better:
        return False
    return gain.quantity in _MAIN or grew_much(gain.quantity, gain.before, gain.after)


def _amount(gain: Gain) -> str:
    if gain.quantity == TIME:
        return f"{three(1 / gain.gain)}x [{three(1 / gain.high)}, {three(1 / gain.low)}]"
    return f"{gain.before:,.0f} to {gain.after:,.0f}"


def _word(quantity: str) -> str:
    names = {
        "spill_bytes": "bytes of spilled registers", "shared_bytes": "bytes of shared memory",
        "bytes": "bytes moved", "registers": "registers a thread", "instructions": "instructions in the code",
    }  # fmt: skip
    return names.get(quantity, quantity.replace("_", " "))


def _idle(group: Group, cited: Cited) -> Iterable[Risk]:
    """Where it was measured and nothing was gained: times and counts apart, for they say different things."""
    idle = [m for m in _measured(group) if not any(gain.shown for gain in m.gains)]
    timed = [m for m in idle if not m.gains[0].exact]
    counted = [m for m in idle if m.gains[0].exact]
    if timed:
        where = _listed([f"{m.transition.lineage} ({_short(m.gains[0])})" for m in timed])
        yield _idle_risk(
            f"It gained nothing beyond noise as a step of {where}; {_trust((m, m.gains[0]) for m in timed)}.",
            timed,
            cited,
        )
    if counted:
        where = _listed([m.transition.lineage for m in counted])
        text = f"It changed no count as a step of {where}; {_trust((m, m.gains[0]) for m in counted)}, which says nothing of time."
        yield _idle_risk(text, counted, cited)


def _idle_risk(text: str, idle: Sequence[_Measured], cited: Cited) -> Risk:
    return Risk(text, "observed", "gate", cited.of(*(m.transition.commit for m in idle)))


def _trust(measured: Iterable[tuple[_Measured, Gain]]) -> str:
    """How it is known, and on which platforms where there are several."""
    known = sorted({(gain.trust, m.report.platform) for m, gain in measured})
    trusts = ", ".join(dict.fromkeys(trust for trust, _ in known))
    platforms = list(dict.fromkeys(platform for _, platform in known))
    return trusts if len(platforms) == 1 else f"{trusts} on {_listed(platforms)}"


def _short(gain: Gain) -> str:
    """Without the trust; with the noise, where the interval alone would speak of a difference."""
    apart = not gain.low <= 1 <= gain.high
    return str(gain).rpartition(",")[0] + (f", noise {gain.noise:.1%}" if apart else "")


def _rounding(group: Group, cited: Cited) -> Iterable[Risk]:
    """Where the error of the results grew, as a part of the tolerance."""
    grown = [
        (t, found) for t in group.transitions if t.report is not None and (found := _errors(t.report)) is not None
    ]  # fmt: skip
    if grown:
        told = _listed(
            [f"from {two[0]:.2g} to {two[1]:.2g} of the tolerance on {t.workload.name}" for t, two in grown]
        )
        commits = [t.commit for t, _ in grown]
        yield Risk(f"Results round more: RMS error {told}.", "observed", "gate", cited.of(*commits))


def shows_trouble(transition: Transition) -> bool:
    """Whether a gate of a transition shows a loss, rounding, or that nothing was gained."""
    for report in transition.comparisons:
        gains = gains_of(report)
        if any(_lost(gain) for gain in gains) or _errors(report) is not None:
            return True
        if gains and not any(gain.shown for gain in gains):
            return True
    return False


def _errors(report: Report) -> tuple[float, float] | None:
    """(RMS error before, after) as parts of the tolerance, where it grew by enough to speak of."""
    stage = report.stage("correctness")
    if stage is None or not {"rms", "baseline_rms"} <= stage.numbers.keys():
        return None
    before, after = stage.numbers["baseline_rms"], stage.numbers["rms"]
    return (before, after) if after > _OF_TOLERANCE and after > _ROUNDER * before else None


def _listed(parts: Sequence[str]) -> str:
    parts = list(dict.fromkeys(parts))
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def _ended(text: str) -> str:
    return text.replace("..", ".") if text.endswith("..") else text
