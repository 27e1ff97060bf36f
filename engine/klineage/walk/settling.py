"""What a kernel of a walk has in it: the detectors' word, a person's where they cannot tell, and what a step may claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.lineage import Settlement, Step

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.proposer.candidate import Candidate
    from klineage.proposer.features import Finding


class FalseClaim(KlineageError):
    """A step that does not remove exactly what it claims."""


def words_at(settled: Sequence[Settlement], steps: Sequence[Step]) -> tuple[Settlement, ...]:
    """What persons' words come to on the last of ``steps`` (the expert first).

    What no text shows is gone once a step has claimed to remove it; what a text shows goes with its cue.
    """
    gone = {feature for step in steps for feature in step.removes}
    return tuple(
        replace(s, state="absent") if not s.cue and s.state == "present" and s.feature in gone else s
        for s in settled
    )


def claim_problem(
    head: Kernel,
    kernel: Kernel,
    candidate: Candidate,
    words: Sequence[Settlement],
    *,
    by_hand: bool = False,
    head_report: Report | None = None,
    report: Report | None = None,
) -> str:
    """Why a candidate may not be taken for what it claims to remove, in one sentence; empty when it may."""
    from klineage.proposer.features import Claim, audit, claim_problem, difference

    before, after = audit(head, words, head_report), audit(kernel, words, report)
    by_rule = candidate.proposer.startswith("rules:")
    found = difference(before, after)
    claim = Claim(
        candidate.removes,
        word=by_hand or candidate.by_hand,
        known_edit=by_rule,
        along=() if by_rule or not found.doubted else _along(head, before, found.gone, words),
    )
    return claim_problem(claim, before, after)


def _along(
    head: Kernel, before: Sequence[Finding], gone: Sequence[Feature], words: Sequence[Settlement]
) -> tuple[Finding, ...]:
    """The doubts of which nothing is left when the rule that sees a mechanism takes it out: they are about its own text."""
    from klineage.proposer import rules
    from klineage.proposer.features import audit, difference

    found: list[Finding] = []
    for finding in before:
        if finding.feature not in gone or not finding.by.startswith("rules:"):
            continue
        try:
            without = rules.taken_out(finding.by, head, [finding.feature])
        except rules.NotApplicable:
            continue  # no rule can say what is this mechanism's alone
        after = audit(without, words)
        left = {f.name for f in after if f.lines}
        found += [doubt for doubt in difference(before, after).doubted if doubt.name not in left]
    return tuple(found)


def question(findings: Sequence[Finding], wanted: str, kernel: Kernel) -> tuple[Feature, str]:
    """(feature, cue) of the question that ``wanted`` asks: ``name``, or ``locus / name`` where a name has several places.

    Raises KlineageError where the detectors know the answer, for a slip, and for a name that several places have.
    """
    from klineage.proposer import vocabulary

    locus, separator, word = wanted.rpartition(" / ")
    name = vocabulary.checked(word, {f.name for f in findings})
    same = [f for f in findings if f.name == name and (not separator or f.locus == locus.strip())]
    open_ = [f for f in same if f.state == "unknown" or f.settled]
    if len(open_) > 1:
        places = ", ".join(str(f.feature) for f in open_)
        raise KlineageError(f"{name} is unknown at several places; name one of them: {places}")
    if open_:
        return open_[0].feature, open_[0].cue
    if same:
        where = f" (line {same[0].lines[0]})" if same[0].lines else ""
        raise KlineageError(
            f"{name} is {same[0].state}{where}: {same[0].why}; only what is unknown can be settled"
        )
    if separator:
        raise KlineageError(
            f"nothing is known of {name} at {locus.strip()}; klineage features lists the places"
        )
    return Feature(f"{kernel.filename}::{kernel.entry.split('+')[0]}", name), ""
