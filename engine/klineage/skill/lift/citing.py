"""The evidence of a card: one entry for each transition and each rejected attempt, with a key that claims can name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from klineage.gate import Report, Verdict
from klineage.proposer.features.claims import is_claim_problem
from klineage.skill.card import Evidence
from klineage.skill.lift.groups import Group
from klineage.skill.transitions import Rejected, Transition
from klineage.skill.trial import gains_of

_LONGEST = 200
_LONGEST_SUBJECT = 80
#: What only says that a machine could not judge: nothing about the kernel, so nothing about the optimization.
_NO_WORD = (Verdict.ERROR, Verdict.UNSUPPORTED, Verdict.NOISY, Verdict.SKIPPED)
#: Words of a traceback, and paths of a machine.
TRACE = re.compile(r'Traceback|File "|\.py", line|(?<![\w.<])/(?:[\w.-]+/)+|site-packages|Error:|Exception\b')


@dataclass(frozen=True)
class Cited:
    """The evidence of a card, and the key of each commit in it."""

    evidence: tuple[Evidence, ...]
    keys: Mapping[str, str]

    def of(self, *commits: str) -> tuple[str, ...]:
        """The keys of these commits, in the order of the evidence."""
        wanted = {self.keys[commit] for commit in commits}
        return tuple(item.key for item in self.evidence if item.key in wanted)


def cited(group: Group, known: Iterable[Evidence] = ()) -> Cited:
    """What a group is evidence of. Commits that a card cites already keep their keys, and its other entries stay."""
    old = tuple(known)
    keys = keys_of(old)
    taken = {item.key for item in old}
    number = 0
    fresh: list[Evidence] = []
    for item in _entries(group):
        if item.commit in keys:
            continue
        number += 1
        while f"e{number}" in taken:
            number += 1
        keys[item.commit] = f"e{number}"
        taken.add(f"e{number}")
        fresh.append(Evidence(f"e{number}", item.kind, item.lineage, item.commit, note=item.note))
    return Cited((*old, *fresh), keys)


def keys_of(evidence: Iterable[Evidence]) -> dict[str, str]:
    """Commit to key, of transitions and rejected attempts: a probe or a trial of the same commit is something else."""
    return {item.commit: item.key for item in evidence if item.kind in ("transition", "rejected")}


def _entries(group: Group) -> Iterable[Evidence]:
    for transition in group.transitions:
        yield Evidence(
            "", "transition", transition.lineage, transition.commit, note=transition_note(transition)
        )
    for attempt in group.rejected:
        yield Evidence("", "rejected", attempt.lineage, attempt.commit, note=rejected_note(attempt))


def transition_note(transition: Transition) -> str:
    """``K8 of gemm-c, derived by rules:prefetch: 1.00x [0.98, 1.02] time, measured-cpu``."""
    step = transition.step
    how = f"{step.forward or 'sealed'} by {step.proposer.partition(';')[0].strip() or step.who or 'a person'}"
    return f"K{step.number} of {transition.lineage}, {how}: {measured_text(transition.report)}"


def measured_text(report: Report | None) -> str:
    """What a gate measured, in a few words, with its trust; or why there is no number."""
    if report is None:
        return "no gate report"
    gains = gains_of(report)
    if not gains:
        profile = report.stage("profile")
        return f"no number ({profile.verdict})" if profile is not None else "not profiled"
    told = [gain for gain in gains if gain.shown] or list(gains[:1])
    return "; ".join(str(gain) for gain in told[:3])


def rejected_note(attempt: Rejected) -> str:
    """What was tried on which state, and why it was turned down."""
    return f"{subject_of(attempt)} on {attempt.lineage}: {failure_of(attempt) or 'rejected'}"


def subject_of(attempt: Rejected) -> str:
    """What was tried, in at most a line."""
    subject = attempt.step.subject
    return subject if len(subject) <= _LONGEST_SUBJECT else subject[: _LONGEST_SUBJECT - 1].rstrip() + "…"


def failure_of(attempt: Rejected) -> str:
    """Why an attempt failed, in one sentence of the gate or of the person who turned it down.

    Empty where only a machine was at fault, where the edit was not what it claimed to be, which says nothing of the
    mechanism, or where nobody said anything of use.
    """
    report = attempt.report
    decisive = report.decisive if report is not None else None
    if decisive is not None:
        if decisive.verdict in _NO_WORD:
            return ""
        return f"{decisive.stage} {decisive.verdict}, {_sober(decisive.summary) or decisive.reason}"
    return "" if is_claim_problem(attempt.step.why) else _sober(attempt.step.why)


def _sober(text: str) -> str:
    """A sentence without the words of a traceback or the paths of a machine; empty where nothing else is left."""
    line = " ".join(text.split())
    found = TRACE.search(line)
    if found is not None:
        line = line[: found.start()].rstrip(" :;,(")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
