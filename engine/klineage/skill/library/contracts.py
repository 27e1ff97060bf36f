"""Whether the contracts of cards still hold for the transitions that they cite, read from the lineages themselves."""

from __future__ import annotations

from collections.abc import Iterable

from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.skill.card import Card
from klineage.skill.contract import consistent
from klineage.skill.library.library import Library
from klineage.skill.transitions import Transition, transitions


def contract_faults(library: Library, cards: Iterable[Card]) -> dict[str, tuple[str, ...]]:
    """Card id to what is wrong between its contract and a transition that it cites, a sentence each.

    A lineage is read once for all cards. One that cannot be read is such a sentence, too: nobody can tell then.
    """
    citing: dict[str, dict[str, list[Card]]] = {}
    for card in cards:
        for entry in card.evidence:
            if entry.kind == "transition" and entry.lineage and entry.commit:
                citing.setdefault(entry.lineage, {}).setdefault(entry.commit, []).append(card)
    found: dict[str, list[str]] = {}
    for lineage_id, cited in citing.items():
        for card, fault in _of_lineage(library, lineage_id, cited):
            found.setdefault(card.id, []).append(fault)
    return {card_id: tuple(dict.fromkeys(faults)) for card_id, faults in found.items()}


def _of_lineage(
    library: Library, lineage_id: str, cited: dict[str, list[Card]]
) -> Iterable[tuple[Card, str]]:
    try:
        with library.lineage(lineage_id) as workspace:
            steps = _read(workspace, lineage_id)
    except KlineageError:
        return  # it is not here: that is said of the evidence (``Library.dangling``)
    if isinstance(steps, str):
        for citing in cited.values():
            yield from ((card, steps) for card in citing)
        return
    known = {transition.commit: transition for transition in steps}
    for commit, citing in cited.items():
        if commit in known:
            for card in citing:
                yield from ((card, fault) for fault in consistent(card.contract, [known[commit]]))


def _read(workspace: Workspace, lineage_id: str) -> tuple[Transition, ...] | str:
    """The transitions of a lineage, or why they cannot be told."""
    try:
        return transitions(workspace, lineage_id)
    except KlineageError as error:
        return f"it cannot be held against its transitions: {error}"
