"""What an ablation says to the cards of its lineage: what their optimization is worth first and last, as effects."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from klineage.gate import report_to_json
from klineage.skill.ablation.measuring import Ablation, Offer, Row, Worth
from klineage.skill.card import Card, Effect, Evidence
from klineage.skill.library.library import Library, report_name
from klineage.skill.trial import effect_of


def row_of(card: Card, ablation: Ablation) -> Row | None:
    """The optimization of the lineage that the card was lifted from, by the transition that it cites; None for none."""
    cited = {
        item.commit
        for item in card.evidence
        if item.kind == "transition" and item.lineage == ablation.lineage
    }
    return next((row for row in ablation.rows if row.commit in cited), None)


def ablated(card: Card, ablation: Ablation) -> tuple[Card, tuple[str, ...]]:
    """The card with what its optimization is worth first and last, where that is shown to be better, and the reports.

    An effect of the same quantity, platform, workload and position is replaced, since it was measured again. What
    the optimization stands on is offered (``offers``) and not written: that is for a person to say.
    """
    row = row_of(card, ablation)
    if row is None:
        return card, ()
    reports: list[str] = []
    for worth in (row.first, row.last):
        if worth.pays and worth.report is not None and worth.report.baseline is not None:
            told = report_to_json(worth.report)
            card = _with(card, ablation, row, worth, report_name(told))
            reports.append(told)
    return card, tuple(reports)


def record(library: Library, ablation: Ablation) -> tuple[str, ...]:
    """Write the effects into the library's cards; returns the ids of those that it says something of."""
    done = []
    for entry in library.cards():
        reports = ablated(entry.card, ablation)[1] if entry.card is not None else ()
        if reports:
            title = f"Measure {entry.id} first and last on {ablation.lineage}"
            change = partial(_ablated, ablation=ablation)
            library.update(
                entry.id, change, reason="ablation", title=title, reports=reports, machine=True
            )  # fmt: skip
            done.append(entry.id)
    return tuple(done)


def _ablated(card: Card, ablation: Ablation) -> Card:
    return ablated(card, ablation)[0]


def with_offer(card: Card, offer: Offer) -> Card:
    """The card that requires what its optimization was shown to stand on, and is believed where that is there.

    A requirement that the card has already stays as it is, also at another place; a card that says all of it is returned
    as it is.
    """
    known = {feature.name for feature in card.contract.requires}
    requires = (*card.contract.requires, *(f for f in offer.requires if f.name not in known))
    prior = () if "*" in card.scope.prior_actions else card.scope.prior_actions
    return replace(
        card,
        contract=replace(card.contract, requires=requires),
        scope=replace(card.scope, prior_actions=tuple(dict.fromkeys((*prior, *offer.prior_actions)))),
    )


def _with(card: Card, ablation: Ablation, row: Row, worth: Worth, name: str) -> Card:
    assert worth.gain is not None
    known = next((item for item in card.evidence if item.report == name), None)
    evidence = known or Evidence(_next_key(card), "ablation", report=name, note=_note(ablation, row, worth))
    effect = effect_of(worth.gain, ablation.platform, ablation.workload, worth.position, (evidence.key,))
    kept = tuple(other for other in card.effects if not _same(other, effect))
    more = () if known is not None else (evidence,)
    return replace(card, effects=(*kept, effect), evidence=(*card.evidence, *more))


def _note(ablation: Ablation, row: Row, worth: Worth) -> str:
    how = (
        f"added alone to {worth.state}" if worth.position == "first" else f"taken alone out of {worth.state}"
    )
    return f"{row.name} of {ablation.lineage} {how}: {worth.gain}"


def _same(one: Effect, other: Effect) -> bool:
    def key(effect: Effect) -> tuple[str, ...]:
        return effect.quantity, effect.trust, effect.platform, effect.workload, effect.position

    return key(one) == key(other)


def _next_key(card: Card) -> str:
    numbers = [int(item.key[1:]) for item in card.evidence if item.key[:1] == "e" and item.key[1:].isdigit()]
    return f"e{max(numbers, default=0) + 1}"
