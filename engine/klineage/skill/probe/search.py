"""Search for the boundary of a precondition: the smallest alignment, the largest tile, the smallest size that still pays.

A ladder of values leads from where the card's own state stands in the direction that violates the precondition. It is gone
down rung by rung until the optimization fails or loses its effect, so that what is reported was seen on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from klineage.gate import Report
from klineage.skill.card import Card, Precondition, Risk
from klineage.skill.checks.checking import check
from klineage.skill.probe.choosing import Violation
from klineage.skill.probe.judging import Judge
from klineage.skill.probe.ladders import MOST_RUNGS, ladder
from klineage.skill.probe.recording import of_search, with_none_found, with_precondition, with_reports
from klineage.skill.probe.renumbering import Untestable, told_numbers
from klineage.skill.probe.state import State
from klineage.skill.probe.violations import violated
from klineage.skill.probe.weighing import Finding, cut


@dataclass(frozen=True)
class Rung:
    """One value that was tried. ``words``: ``k = 256``; ``violates``: whether the precondition's check fails there."""

    words: str
    change: str
    settings: Mapping[str, str]
    finding: Finding
    violates: bool


@dataclass(frozen=True)
class Boundary:
    """What a search saw. ``text``: one sentence with both sides of the boundary, or how far nothing broke."""

    text: str
    rungs: tuple[Rung, ...]

    @property
    def broken(self) -> Rung | None:
        """The first value at which the optimization failed or lost its effect."""
        return next((rung for rung in self.rungs if rung.finding.outcome == "confirmed"), None)

    @property
    def standing(self) -> Rung | None:
        """The last value before it at which it was seen to stand."""
        return next((rung for rung in reversed(self.rungs) if rung.finding.outcome == "refuted"), None)


def search(precondition: Precondition, state: State, found: Violation, judge: Judge) -> Boundary:
    """Go from the card's own state towards a violation, and beyond. Raises Untestable where there is no order to follow."""
    rungs: list[Rung] = []
    subject, steps = ladder(precondition.check, state, found)
    for words, change, settings in steps:
        try:
            broken = violated(state, change, settings)
        except Untestable:
            continue  # no such value: the next rung may be one
        words = told_numbers(state.settings, broken.settings) or words
        violates = bool(precondition.check) and check(precondition.check, broken.facts()).state == "fails"
        rungs.append(Rung(words, change, settings, judge(state, broken, words), violates))
        if rungs[-1].finding.outcome == "confirmed" or len(rungs) == MOST_RUNGS:
            break
    if not rungs:
        raise Untestable(f"no further value of {subject} can be tried on this state")
    return Boundary(_told(subject, Boundary("", tuple(rungs))), tuple(rungs))


def _told(subject: str, seen: Boundary) -> str:
    last, first = seen.standing, seen.broken
    tried = f"{seen.rungs[0].words} to {seen.rungs[-1].words}" if len(seen.rungs) > 1 else seen.rungs[0].words
    if first is not None and last is not None:
        return f"boundary of {subject}: stands at {last.words}; {first.finding.found}"
    if first is not None:
        return f"boundary of {subject}: stands only as the card has it; {first.finding.found}"
    if last is not None:
        return f"boundary of {subject}: nothing broke from {tried}"
    return f"boundary of {subject}: not found; {seen.rungs[-1].finding.found}"


def with_boundary(card: Card, key: str, boundary: Boundary, lineage: str = "", commit: str = "") -> Card:
    """The card with what a search saw: both sides as evidence, a risk, and a doubt where the check asks for too much."""
    reports: list[Report] = [
        r.finding.reports[0] for r in (boundary.standing, boundary.broken) if r and r.finding.reports
    ]
    card, keys = with_reports(card, reports, f"{key}: {boundary.text}", lineage, commit)
    own = next(p for p in card.preconditions if p.key == key)
    last = boundary.standing
    too_strong = last is not None and last.violates
    doubt = f"a search found that it stands at {last.words} too" if last and too_strong else own.doubt
    card = with_precondition(card, replace(own, doubt=doubt))
    kept = tuple(r for r in card.risks if not of_search(r, key))
    kind = "observed" if boundary.broken else "none-found"
    if boundary.broken or last:
        kept = (*kept, Risk(cut(f"{key}: {boundary.text}"), kind, "probe", keys))  # type: ignore[arg-type]
    return with_none_found(replace(card, risks=kept))
