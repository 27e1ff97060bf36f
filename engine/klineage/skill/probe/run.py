"""Probe a card of a library: each precondition that can be violated, one after the other, each written when it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from klineage.errors import KlineageError
from klineage.gate import Report, report_to_json
from klineage.skill.card import Card, Precondition, Probe
from klineage.skill.library.library import Library
from klineage.skill.probe.choosing import Violated, Violation, violation
from klineage.skill.probe.judging import Judge
from klineage.skill.probe.recording import doubted, recorded, with_precondition
from klineage.skill.probe.renumbering import Untestable
from klineage.skill.probe.search import Boundary, search, with_boundary
from klineage.skill.probe.state import State, states_of
from klineage.skill.probe.weighing import Finding, cut
from klineage.skill.staleness import probe_is_stale

_MOST_STATES = 3  # of a card's own states that are tried until one says something


@dataclass(frozen=True)
class Probed:
    """What became of one precondition.

    change, settings: the violation, empty where none could be made. state: the card's own state that it was made on.
    boundary: what a search saw, if there was one; unsearched: why there is none.
    """

    key: str
    finding: Finding
    change: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    state: State | None = None
    boundary: Boundary | None = None
    unsearched: str = ""


def probe(
    card: Card,
    key: str,
    states: Sequence[State],
    judge: Judge,
    *,
    searching: bool = False,
    instead: Probe | None = None,
) -> Probed:
    """Violate one precondition on the card's own states, the first that says something.

    instead: what to break in place of the card's own probe.
    Raises KlineageError for a key that the card does not have, and when cancelled.
    """
    own = precondition_of(card, key)
    own = replace(own, probe=instead) if instead is not None else own
    last: Probed | None = None
    for state in states[:_MOST_STATES]:
        probed = _on(card, own, state, judge, searching)
        if probed.finding.outcome != "untested":
            return probed
        last = last if last is not None and last.change else probed
    if last is None:
        raise KlineageError(f"{card.id} has no state of its own to probe {key} on")
    return last


def by_effect(card: Card, states: Iterable[State]) -> tuple[State, ...]:
    """The states, those first on which the card gains most: an effect that is not there cannot be lost."""
    gains = {effect.workload: effect.gain for effect in card.effects if effect.position == "in-order"}
    return tuple(sorted(states, key=lambda state: -gains.get(state.workload.name, 1.0)))


def _on(card: Card, own: Precondition, state: State, judge: Judge, searching: bool) -> Probed:
    gains = frozenset(effect.quantity for effect in card.effects)
    judge = replace(judge, kind=own.kind, declared=gains)
    try:
        found = violation(card, own, state)
    except Violated as already:
        return Probed(own.key, judge.as_it_is(state, str(already)), "", {}, state)
    except Untestable as reason:
        return Probed(own.key, Finding("untested", str(reason)), "", {}, state)
    judge = replace(judge, code=found.settings.get("code", ""))
    finding = judge(state, found.state, found.words)
    probed = Probed(own.key, finding, found.change, dict(found.settings), state)
    return _searched(own, state, found, judge, probed) if searching else probed


def _searched(own: Precondition, state: State, found: Violation, judge: Judge, probed: Probed) -> Probed:
    try:
        boundary = search(own, state, found, judge)
    except Untestable as reason:
        return Probed(probed.key, probed.finding, probed.change, probed.settings, state, None, str(reason))
    return Probed(probed.key, probed.finding, probed.change, probed.settings, state, boundary)


def precondition_of(card: Card, key: str) -> Precondition:
    """Raises KlineageError that lists the keys when there is none of that name."""
    found = next((p for p in card.preconditions if p.key == key), None)
    if found is None:
        known = ", ".join(p.key for p in card.preconditions) or "none"
        raise KlineageError(f"{card.id} has no precondition {key!r}; it has {known}")
    return found


def written(card: Card, probed: Probed) -> Card:
    """The card with what became of a precondition.

    A precondition that the card's own state does not meet, and yet gains, is doubted. Where no violation can be made, a
    probe that showed nothing so far says why.
    """
    state = probed.state
    if state is None or not any(p.key == probed.key for p in card.preconditions):
        return card
    own = precondition_of(card, probed.key)
    if not probed.change and not probed.finding.reports:
        return _without_violation(card, own, probed.finding)
    if not probed.change:
        return doubted(card, probed.key, probed.finding, state.lineage, state.commit)
    fresh = own.probe is not None and own.probe.outcome != "untested" and not probe_is_stale(own)
    if probed.finding.outcome == "untested" and fresh:
        return card  # a noisy day takes back nothing that was seen
    card = recorded(
        card, probed.key, probed.change, dict(probed.settings), probed.finding, state.lineage, state.commit
    )
    if probed.boundary is not None:
        card = with_boundary(card, probed.key, probed.boundary, state.lineage, state.commit)
    return card


def _without_violation(card: Card, own: Precondition, finding: Finding) -> Card:
    if own.probe is None or own.probe.outcome != "untested":
        return card
    return with_precondition(
        card, replace(own, probe=replace(own.probe, found=cut(finding.found), evidence=()))
    )


def probe_card(
    library: Library,
    card_id: str,
    keys: Iterable[str] = (),
    *,
    judge: Judge | None = None,
    lineage_id: str = "",
    trusted: bool = False,
    searching: bool = False,
    instead: Probe | None = None,
    keep: bool = True,
    who: str = "",
    on_probed: Callable[[Probed], None] | None = None,
) -> tuple[Card, tuple[Probed, ...]]:
    """Probe preconditions of a card, all by default, and write each outcome into the library when it is known.

    instead: what to break in place of the card's own probe. trusted: see ``states_of``.
    keep: False leaves the library as it is, as for a folder, which has no history. on_probed: called after each.
    Raises KlineageError for an unknown card or key, a card without states of its own, and when cancelled; what was
    known by then is written.
    """
    card = library.get(card_id)
    states = by_effect(card, states_of(library, card, lineage_id, trusted=trusted))
    wanted = tuple(keys) or tuple(p.key for p in card.preconditions)
    for key in wanted:
        precondition_of(card, key)
    done: list[Probed] = []
    for key in wanted:
        probed = probe(card, key, states, judge or Judge(), searching=searching, instead=instead)
        card = _kept(library, card, probed, who) if keep and library.writable else written(card, probed)
        done.append(probed)
        if on_probed:
            on_probed(probed)
    return card, tuple(done)


def _kept(library: Library, card: Card, probed: Probed, who: str) -> Card:
    if probed.state is None:
        return card
    return library.update(
        card.id,
        lambda present: written(present, probed),
        who,
        probed.finding.found,
        title=f"Probe {card.id}: {probed.key} {probed.finding.outcome}",
        reports=[report_to_json(report) for report in shown(probed)],
        machine=True,
    )


def shown(probed: Probed) -> tuple[Report, ...]:
    """The gates that the card will cite for what became of a precondition."""
    sides = (probed.boundary.standing, probed.boundary.broken) if probed.boundary else ()
    findings = [probed.finding, *(rung.finding for rung in sides if rung)]
    return tuple(finding.reports[0] for finding in findings if finding.reports)
