"""Kernels that a card could be tried on: shipped ones and the user's own, taken apart as far as the card needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.proposer import rules
from klineage.proposer.rules.fitting import Fit, fits
from klineage.resources import shipped
from klineage.skill.admission.held_out import Source, held_out, why_held_out
from klineage.skill.admission.refusing import unfit
from klineage.skill.admission.target import KERNEL_FILES, Target, less, of_file, of_state
from klineage.skill.card import Card
from klineage.skill.staleness import stale

_SUFFIX = {"c": ".c", "triton": ".py", "cuda": ".cu"}
_ORDER = ("workload", "platform", "surface", "prior_actions", "capabilities")


@dataclass(frozen=True)
class Suggestion:
    """A kernel to try a card on.

    held_out, why: in what it differs from the card's sources.
    fits: whether the card's rule makes an edit here; adapted: what it would have to take otherwise than on the source.
    """

    target: Target
    held_out: tuple[str, ...]
    why: str
    fits: bool
    adapted: tuple[str, ...] = ()


def held_out_targets(
    card: Card, known: Sequence[Source], workspace: Workspace | None = None
) -> tuple[Suggestion, ...]:
    """Kernels of the card's language that differ from everything it was lifted from, the most unlike first.

    Before all others stand those on which a trial accepted the card that an edit has overtaken: they show it again. Of
    those that its rule fits, the ones stand last on which the card as it is was tried already, for a trial that failed
    would fail again.

    They are the shipped experts and the states of the workspace's sealed lineages. What has the mechanism already is
    taken apart by rules until it has not. A kernel that lacks what the card requires is left out. Nothing is gated.
    """
    found: dict[str, Suggestion] = {}
    for target in _all(card, workspace):
        dims = held_out(target, known)
        if dims and not unfit(card, target) and target.kernel.hash not in found:
            fit = _fit(card, target)
            adapted = fit.adapted if fit is not None else ()
            why = why_held_out(target, dims)
            found[target.kernel.hash] = Suggestion(target, dims, why, fit is not None, adapted)
    overtaken = stale(card)
    again = {trial.target for trial in card.verification if trial.accepted and trial.key in overtaken}
    tried = {trial.target for trial in card.verification if trial.key not in overtaken}
    return tuple(sorted(found.values(), key=lambda one: (one.target.name not in again, *_rank(one, tried))))


def _rank(suggestion: Suggestion, tried: Collection[str]) -> tuple[bool, bool, int, int, str]:
    """Where the rule fits and nobody has tried it first, another workload before another state of the same."""
    first = min(_ORDER.index(name) for name in suggestion.held_out)
    name = suggestion.target.name
    return not suggestion.fits, name in tried, first, len(suggestion.adapted), name


def _all(card: Card, workspace: Workspace | None) -> Iterator[Target]:
    for target in _shipped(card):
        try:
            yield less(target, [feature.name for feature in card.contract.provides])
        except KlineageError:
            continue  # rules cannot take the mechanism out of it, so it is no target
    if workspace is not None:
        yield from _states(card, workspace)


def _shipped(card: Card) -> Iterator[Target]:
    suffix = _SUFFIX[card.surface]
    files = [
        file
        for folder in sorted(shipped("experts").glob(f"*/{card.surface}"))
        for file in sorted(folder.glob(f"*{suffix}"), key=_order)
    ]
    for file in files:
        target = of_file(file, platform=_platform(card))
        if target.kernel.surface == card.surface:
            yield target


def _order(file: Path) -> tuple[int, str]:
    """The kernels that every folder may have first, then its further forms."""
    return KERNEL_FILES.index(file.stem) if file.stem in KERNEL_FILES else len(KERNEL_FILES), file.stem


def _platform(card: Card) -> str | None:
    """What the card's effects were found on, where that is one: a suggestion is for the same hardware."""
    platforms = {effect.platform for effect in card.effects}
    return platforms.pop() if len(platforms) == 1 else None


def _states(card: Card, workspace: Workspace) -> Iterator[Target]:
    for summary in workspace.lineages():
        if (
            summary.problem
            or not summary.sealed
            or summary.meta is None
            or summary.meta.surface != card.surface
        ):
            continue
        for step in workspace.lineage(summary.id):
            try:
                yield of_state(workspace, summary.id, f"K{step.number}")
            except KlineageError:
                break  # its code may not run here until a person says so


def _fit(card: Card, target: Target) -> Fit | None:
    """The closest way in which the card's rule makes an edit here."""
    if not card.rule:
        return None
    rule = card.rule.partition(".")[2] or card.rule
    for fit in fits(rule, target.kernel, card.carrier.settings):
        try:
            if rules.derive(f"rules:{rule}", target.kernel, fit.locus, fit.settings) != target.kernel.source:
                return fit
        except rules.NotApplicable:
            continue
    return None
