"""What the Ablation place reads and writes: the matrix of a lineage, and the cards that it speaks of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klineage_tui.presentation.card_evidence import cited
from klineage_tui.presentation.card_form import Ref

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.lineage import Workspace
    from klineage.skill.ablation import Ablation, Offer, Row
    from klineage.skill.card import Card
    from klineage.skill.library import Library


@dataclass(frozen=True)
class Matrix:
    """The worth of each step, and what belongs to it.

    measured: when it was measured here; empty where it was put together from the steps and the cards.
    cards:    sealed commit -> id of the card that was lifted from it.
    offers:   number of a step -> what its card could require, and does not yet.
    """

    ablation: Ablation
    measured: str = ""
    cards: Mapping[str, str] = field(default_factory=dict)
    offers: Mapping[int, Offer] = field(default_factory=dict)

    def card_of(self, row: Row) -> str:
        """The card of a step; empty where none was lifted from it."""
        return self.cards.get(row.commit, "")


def cited_lineages(card: Card, field: Ref, sealed: Collection[str]) -> list[tuple[str, str]]:
    """The sealed lineages that a field of a card rests on, else those of the card, each with the commit of a step."""
    steps = [e for e in card.evidence if e.kind == "transition" and e.lineage in sealed]
    keys = cited(card, field)
    own = [evidence for evidence in steps if evidence.key in keys]
    return list({e.lineage: (e.lineage, e.commit) for e in own or steps}.values())


def read(workspace: Workspace, library: Library, lineage_id: str) -> Matrix:
    """The ablation that was kept last, or what the steps and the cards say. Nothing is gated.

    Raises KlineageError for a lineage that is not sealed.
    """
    from klineage.skill.ablation import kept
    from klineage.skill.ablation.recalling import recalled

    here = kept(workspace, lineage_id)
    if here is not None:
        return _matrix(library, here.ablation, here.when)
    return _matrix(library, recalled(workspace, library, lineage_id), "")


def measure(
    workspace: Workspace,
    lineage_id: str,
    say: Callable[[str], None],
    on_event: Callable[[GateEvent], None],
    on_row: Callable[[Row], None],
    cancel: threading.Event,
) -> str:
    """Gate every optimization in its places and keep what was found; returns that in a sentence.

    Raises KlineageError on cancel: then nothing is kept, but every finished gate is remembered.
    """
    from klineage.skill.ablation import ablate, keep, offers

    found = ablate(
        workspace, lineage_id, on_progress=say, on_event=on_event, on_row=on_row, cancel=cancel
    )  # fmt: skip
    keep(workspace, found)
    paying = sum(row.in_order.pays for row in found.rows)
    standing = len(offers(found))
    return f"{paying} of {len(found.rows)} pay in order, {standing or 'none'} only after another"


def record(library: Library, ablation: Ablation) -> tuple[str, ...]:
    """Write what each step is worth first and last into its cards; returns their ids."""
    from klineage.skill.ablation import cards

    return cards.record(library, ablation)


def take_offer(library: Library, card_id: str, offer: Offer, reason: str) -> None:
    """Let a card require what its optimization stands on."""
    from klineage.skill.ablation.cards import with_offer

    library.update(card_id, lambda card: with_offer(card, offer), reason=reason)


def _matrix(library: Library, ablation: Ablation, measured: str) -> Matrix:
    from klineage.skill.ablation import offers
    from klineage.skill.ablation.cards import with_offer

    cards = {
        item.commit: entry.card
        for entry in library.cards()
        if entry.card is not None and entry.card.status != "retired"
        for item in entry.card.evidence
        if item.kind == "transition" and item.lineage == ablation.lineage
    }
    commits = {row.number: row.commit for row in ablation.rows}
    left = {}
    for offer in offers(ablation):
        card = cards.get(commits[offer.number])
        if card is None or with_offer(card, offer) != card:
            left[offer.number] = offer
    return Matrix(ablation, measured, {commit: card.id for commit, card in cards.items()}, left)
