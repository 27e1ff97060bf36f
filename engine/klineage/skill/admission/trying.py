"""A trial: a card is materialized on a target, gated at the strength of an admission, and held against what it declares."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from klineage.errors import KlineageError
from klineage.gate import POLICY, GateEvent, Policy, Report, Verdict, report_to_json
from klineage.kernel import Kernel
from klineage.skill.admission.criterion import Shown, reproduced
from klineage.skill.admission.held_out import Source, held_out
from klineage.skill.admission.materializer import Failed, Made, Materializer
from klineage.skill.admission.refusing import other_than_the_card, refuse
from klineage.skill.admission.target import Target
from klineage.skill.card import Card, Evidence, Verification
from klineage.skill.staleness import fingerprints
from klineage.skill.trial import LONGER, Gain, gains_of, judged

ATTEMPTS = 3


@dataclass(frozen=True)
class Attempted:
    """One attempt: what was made, what its gate said, and whether it holds. ``why``: one sentence."""

    number: int
    made: Made
    holds: bool
    why: str
    report: Report | None = field(default=None, repr=False)
    gain: Gain | None = None


@dataclass(frozen=True)
class Trial:
    """The whole trial of a card on one target.

    held_out: in what the target differs from the card's sources. rested_on: the fingerprints of the card that was tried.
    """

    target: Target
    attempts: tuple[Attempted, ...]
    held_out: tuple[str, ...]
    when: str
    rested_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> Attempted:
        return self.attempts[-1]

    @property
    def accepted(self) -> bool:
        """Whether one of the attempts passed every gate and showed half of the effect."""
        return self.last.holds

    @property
    def admits(self) -> bool:
        """Whether it makes the card one that is served: accepted, and on a kernel unlike the card's sources."""
        return self.accepted and bool(self.held_out)

    @property
    def why(self) -> str:
        """One sentence for the log."""
        if self.accepted:
            return f"{self.last.made.how}: {self.last.why}" if self.last.made.how else self.last.why
        return "; ".join(f"attempt {a.number}: {a.why}" for a in self.attempts)

    @property
    def reports(self) -> tuple[str, ...]:
        """The gate reports of all attempts, as JSON."""
        return tuple(report_to_json(a.report) for a in self.attempts if a.report is not None)


def admit(
    card: Card,
    target: Target,
    materializer: Materializer,
    known: Sequence[Source] = (),
    *,
    anyway: bool = False,
    on_progress: Callable[[str], None] | None = None,
    on_event: Callable[[GateEvent], None] | None = None,
    cancel: threading.Event | None = None,
) -> Trial:
    """Try a card on a target, at most three times. Nothing is written: see ``recorded``.

    known:  every state that the card was lifted from (``sources``); without it no trial is held out.
    anyway: also where a precondition of the card does not hold on the target.
    Raises KlineageError where the card cannot be tried there: it is retired, declares no effect, needs a mechanism that is
    missing, or the target itself does not pass; and on cancel.
    """
    say = on_progress or (lambda text: None)
    refuse(card, target, anyway=anyway)
    say(f"gating {target.name} itself")
    own = judged(target.kernel, None, target.workload, target.platform, on_event=on_event, cancel=cancel)
    if own.verdict is not Verdict.PASS:
        raise KlineageError(
            f"{target.name} does not pass its own gate, so nothing can be tried on it: {own.why}"
        )
    failed: list[Failed] = []
    attempts: list[Attempted] = []
    for made in materializer.answers(card, target, lambda: tuple(failed)):
        number = len(attempts) + 1
        say(f"attempt {number} of at most {ATTEMPTS}: {made.how or made.problem}")
        attempts.append(_attempt(card, target, made, number, on_event, cancel))
        if attempts[-1].holds or number == ATTEMPTS:
            break
        failed.append(Failed(attempts[-1].why, made.kernel.hash if made.kernel else ""))
    if not attempts:
        raise KlineageError(f"{materializer.name} gave no answer for {card.id} on {target.name}")
    when = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    return Trial(target, tuple(attempts), held_out(target, known), when, fingerprints(card))


def _attempt(
    card: Card,
    target: Target,
    made: Made,
    number: int,
    on_event: Callable[[GateEvent], None] | None,
    cancel: threading.Event | None,
) -> Attempted:
    if made.kernel is None:
        return Attempted(number, made, False, made.problem)
    if problem := other_than_the_card(card, target, made.kernel):
        return Attempted(number, made, False, problem)
    report = _judged(made.kernel, target, POLICY, on_event, cancel)
    if report.verdict is Verdict.PASS and _undecided(_shown(card, report)):
        report = _judged(made.kernel, target, LONGER, on_event, cancel)
    if report.verdict is not Verdict.PASS:
        stage = report.decisive
        name = f"{stage.stage} {stage.verdict}: " if stage is not None else ""
        return Attempted(number, made, False, f"{name}{report.why}", report)
    shown = _shown(card, report)
    return Attempted(number, made, shown.holds, shown.why, report, shown.gain)


def _judged(
    kernel: Kernel,
    target: Target,
    policy: Policy,
    on_event: Callable[[GateEvent], None] | None,
    cancel: threading.Event | None,
) -> Report:
    return judged(
        kernel, target.kernel, target.workload, target.platform, "admission",
        on_event=on_event, cancel=cancel, fresh=True, policy=policy,
    )  # fmt: skip


def _undecided(shown: Shown) -> bool:
    """Whether the measurement is too coarse to say: what is needed lies inside its interval or its noise."""
    gain, wanted = shown.gain, shown.declared
    if shown.holds or gain is None or wanted is None or gain.exact:
        return False
    return gain.high >= wanted.needed and gain.gain > 1


def _shown(card: Card, report: Report) -> Shown:
    gains, profile = gains_of(report), report.stage("profile")
    if not gains and profile is not None:
        return Shown(False, f"nothing could be measured: {profile.summary}")
    return reproduced(card, gains)


def recorded(card: Card, trial: Trial) -> Card:
    """The card with the trial in its log and its reports as evidence; admitted where the trial admits it.

    Entries are added, and nothing that is there changes: a failure after a success is a further entry too. A card that
    was edited while it was tried gets an entry that is stale from the start, and is not admitted by it.
    """
    from klineage.skill.library.library import report_name

    evidence: list[Evidence] = []
    taken = [item.key for item in card.evidence]
    for attempt in trial.attempts:
        if attempt.report is not None:
            key = _next("e", [*taken, *(item.key for item in evidence)])
            note = f"attempt {attempt.number} on {trial.target.name} by {attempt.made.by}: {attempt.why}"
            evidence.append(
                Evidence(key, "trial", report=report_name(report_to_json(attempt.report)), note=note)
            )
    entry = _entry(card, trial, tuple(item.key for item in evidence))
    same = dict(trial.rested_on) == fingerprints(card)
    status = "admitted" if trial.admits and same and card.status == "hypothesis" else card.status
    return replace(
        card,
        status=status,
        evidence=(*card.evidence, *evidence),
        verification=(*card.verification, entry),
    )


def _entry(card: Card, trial: Trial, evidence: tuple[str, ...]) -> Verification:
    target, last, gain = trial.target, trial.last, trial.last.gain
    return Verification(
        key=_next("v", [entry.key for entry in card.verification]),
        target=target.name,
        workload=target.workload.name,
        surface=target.kernel.surface,
        platform=target.platform,
        prior_actions=target.prior_actions,
        materializer=last.made.by,
        accepted=trial.accepted,
        why=trial.why,
        held_out=trial.held_out,
        attempts=len(trial.attempts),
        quantity=gain.quantity if gain else "",
        gain=_digits(gain.gain) if gain else None,
        low=_digits(gain.low) if gain else None,
        high=_digits(gain.high) if gain else None,
        trust=str(last.report.trust) if last.report is not None else "",
        when=trial.when,
        evidence=evidence,
        rested_on=dict(trial.rested_on),
    )


def _digits(value: float) -> float:
    """Four significant digits: more is no measurement, and the report has them."""
    return float(f"{value:.4g}")


def _next(letter: str, taken: Iterable[str]) -> str:
    numbers = [int(key[1:]) for key in taken if key.startswith(letter) and key[1:].isdigit()]
    return f"{letter}{max(numbers, default=0) + 1}"
