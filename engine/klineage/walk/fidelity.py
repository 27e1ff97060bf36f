"""Whether a derived kernel is the kernel that it should come to, as far as can be measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from klineage.executor import Cancelled, Died, current
from klineage.gate import Effect, GateRequest, Report, Verdict, cache
from klineage.gate.policy import POLICY
from klineage.kernel import Kernel

if TYPE_CHECKING:
    from klineage.lineage import Step
    from klineage.walk.session import Walk

#: The least part of the richer kernel's speed that a derived kernel must have, in every trial.
FIDELITY = 0.99
#: Trials of a derived kernel with bytes of its own, the one in a fresh worker included.
TRIALS = 3
#: How often a trial that was too noisy is taken again.
_RETRIES = 1
#: Effects by exact counts under which a derived kernel does no more work.
_NO_MORE_WORK = (Effect.SAME_WORK, Effect.LESS_WORK)


@dataclass(frozen=True)
class Outcome:
    """What was found out about an edit. ``lasting``: whether it would be found out again the same."""

    holds: bool
    why: str
    fidelity: tuple[float, ...] = ()
    confirmed: bool = False
    lasting: bool = True


class Gating(Protocol):
    """Who can gate, and remember."""

    walk: Walk
    platform: str
    renew: bool
    confirmed: set[str]

    def gated(
        self,
        kernel: Kernel,
        baseline: Kernel | None,
        what: str,
        *,
        fresh: bool = False,
        again: bool = False,
        patient: bool = False,
    ) -> Report: ...


def judged(gating: Gating, step: Step, before: Kernel, derived: Kernel, after: Kernel) -> Outcome:
    """Whether ``derived`` comes to ``after``. Remembered by the kernels, the workload, the platform and the tools."""
    name = _name(gating, before, derived, after)
    known = cache.load_outcome(name) if name and not gating.renew else None
    if known is not None:
        return Outcome(
            bool(known["holds"]), str(known["why"]), tuple(known["fidelity"]), bool(known["confirmed"])
        )
    outcome = _judged(gating, step, before, derived, after)
    if name and outcome.lasting:
        cache.store_outcome(name, {k: v for k, v in asdict(outcome).items() if k != "lasting"})
    return outcome


def _name(gating: Gating, before: Kernel, derived: Kernel, after: Kernel) -> str:
    """Where the outcome is kept; empty when the machine that decides it cannot be asked."""
    request = GateRequest(derived, gating.walk.workload, gating.platform, baseline=after)
    executor = current()
    try:
        elsewhere = None if executor.here else executor.machine()
    except (Died, Cancelled):
        return ""
    return f"{cache.key(request, f'{POLICY.name} forward {FIDELITY} {TRIALS}', elsewhere)}-{before.hash[:16]}"


def _judged(gating: Gating, step: Step, before: Kernel, derived: Kernel, after: Kernel) -> Outcome:
    if derived.source == before.source:
        return Outcome(False, "the edit changes nothing")
    if derived == after:
        return _confirmed(gating, step, derived)
    if problem := _features_lost(gating.walk, derived, after):
        return Outcome(False, problem)
    return _tried(gating, step, derived, after)


def _features_lost(walk: Walk, derived: Kernel, after: Kernel) -> str:
    """Which features the edit did not restore, or brought in beside them; empty when they are exactly those."""
    from klineage.proposer.features import features

    words = walk.workspace.settled(walk.id)
    got, wanted = set(features(derived, words)), set(features(after, words))
    if wanted - got:
        return f"the edit does not bring {min(wanted - got)} back"
    return f"the edit brings in {min(got - wanted)}, which was not there" if got - wanted else ""


def _confirmed(gating: Gating, step: Step, derived: Kernel) -> Outcome:
    """The same bytes need no trial: only a worker that has run nothing yet, and new seeds."""
    if derived.hash in gating.confirmed:
        return Outcome(True, "the same bytes, confirmed in a fresh worker", confirmed=True)
    report = gating.gated(derived, None, f"the derived {step.action} in a fresh worker", fresh=True)
    if report.verdict is not Verdict.PASS:
        lasting = report.verdict is Verdict.FAIL
        return Outcome(False, f"the same bytes did not pass in a fresh worker: {report.why}", lasting=lasting)
    return Outcome(True, "the same bytes, confirmed in a fresh worker", confirmed=True)


def _tried(gating: Gating, step: Step, derived: Kernel, after: Kernel) -> Outcome:
    """Other bytes: the same machine code needs no trial; else each must pass and keep up, the last in a fresh worker."""
    first = gating.gated(derived, None, f"the derived {step.action} in a fresh worker", fresh=True)
    if first.verdict is not Verdict.PASS:
        lasting = first.verdict is Verdict.FAIL
        return Outcome(False, f"it does not pass the gate: {first.why}", lasting=lasting)
    if code := first.evidence.get("artifact"):
        recorded = gating.gated(after, None, f"the recorded {step.action}", fresh=True)
        if recorded.evidence.get("artifact") == code:
            return Outcome(
                True, "other bytes, the same machine code, confirmed in a fresh worker", confirmed=True
            )
    found: list[float] = []
    seen: list[Report] = []
    for trial in range(1, TRIALS + 1):
        last = trial == TRIALS
        if seen and not last and _exact(seen[0]):
            continue  # counts are exact: the same again
        where = " in a fresh worker" if last else ""
        report = _trial(
            gating, derived, after, f"the derived {step.action} against the recorded one{where}", trial
        )
        seen.append(report)
        problem, lasting, part = _keeps_up(report)
        found += [part] if part is not None else []
        if problem:
            return Outcome(False, f"{problem} in trial {trial}{where}", tuple(found), lasting=lasting)
    return Outcome(True, _told(seen, found), tuple(found), confirmed=True)


def _trial(gating: Gating, derived: Kernel, after: Kernel, what: str, trial: int) -> Report:
    report = gating.gated(derived, after, what, fresh=trial == TRIALS, again=trial > 1)
    for _ in range(_RETRIES):
        profile = report.stage("profile")
        if profile is None or profile.verdict is not Verdict.NOISY:
            break
        report = gating.gated(
            derived, after, f"{what}, longer", fresh=trial == TRIALS, again=True, patient=True
        )
    return report


def _exact(report: Report) -> bool:
    """Whether the profile counts, and times nothing."""
    profile = report.stage("profile")
    return profile is not None and profile.measurement is None and profile.counts is not None


def _keeps_up(report: Report) -> tuple[str, bool, float | None]:
    """(why a trial does not count, whether it would fail again, the part of the speed)."""
    if report.verdict is not Verdict.PASS:
        return f"it does not pass the gate: {report.why}", report.verdict is Verdict.FAIL, None
    profile = report.stage("profile")
    if profile is None:
        return "it was not profiled", False, None
    if _exact(report):
        effect = profile.effect
        if effect in _NO_MORE_WORK:
            return "", True, None
        return (
            f"it does {effect.value if effect else 'unknown work'} by exact counts ({profile.summary})",
            True,
            None,
        )
    if profile.measurement is None or profile.measurement.ratio is None:
        return f"no ratio could be measured ({profile.summary})", False, None
    part = 1 / profile.measurement.ratio
    if part < FIDELITY:
        return f"it has {part:.3f} of the recorded kernel's speed, and {FIDELITY} is asked for", False, part
    return "", True, part


def _told(reports: list[Report], found: list[float]) -> str:
    """What the trials showed, in one sentence."""
    profile = reports[-1].stage("profile")
    known = "other bytes with the same features"
    if found and profile is not None and profile.measurement is not None:
        parts = ", ".join(f"{part:.3f}" for part in found)
        timer = profile.measurement.timer
        return f"{known}, {parts} of the speed in {len(found)} trials ({timer}), the last in a fresh worker"
    effect = profile.effect.value if profile is not None and profile.effect is not None else "the same"
    return f"{known}, {effect} by exact counts ({reports[-1].trust}), confirmed in a fresh worker"
