"""Trying a card alone on a kernel that it has never seen: which kernels there are, and the trial itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.lineage import Workspace
    from klineage.skill.admission.suggest import Suggestion
    from klineage.skill.card import Card
    from klineage.skill.library import Library


@dataclass(frozen=True)
class Offer:
    """Kernels that a trial could admit a card on, the most promising first.

    others: how many more there are where neither its rule nor its code finds a place, so that a model, a command or a
    person has to put it there.
    """

    found: tuple[Suggestion, ...]
    others: int = 0


def offer(library: Library, workspace: Workspace, card: Card) -> Offer:
    """Where a card can be tried from here.

    Raises KlineageError when a lineage that the card cites cannot be read: then nothing is known to be held out.
    """
    from klineage.skill.admission.by_patch import has_place
    from klineage.skill.admission.held_out import sources
    from klineage.skill.admission.suggest import held_out_targets

    every = held_out_targets(card, sources(card, library.lineage), workspace)
    found = tuple(one for one in every if one.fits or has_place(card, one.target))
    return Offer(found, len(every) - len(found))


def told(suggestion: Suggestion) -> str:
    """Who would put the card on a kernel, and in what that is held out."""
    dims = ", ".join(suggestion.held_out).replace("_", " ")
    return f"{'by its rule' if suggestion.fits else 'as a patch'}; differs in {dims}"


def try_on(
    library: Library,
    card_id: str,
    suggestion: Suggestion,
    say: Callable[[str], None],
    on_event: Callable[[GateEvent], None],
    cancel: threading.Event,
) -> str:
    """Try a card with its rule where that fits, else with its carrier as a patch; the trial is in its log when this
    returns its outcome. Models, commands and persons are asked on the command line.

    Raises KlineageError where nothing can be tried, and on cancel: then nothing is written.
    """
    from klineage.skill.admission.held_out import sources
    from klineage.skill.admission.materializer import materializer_named
    from klineage.skill.admission.trying import admit, recorded

    card, target = library.get(card_id), suggestion.target
    known = sources(card, library.lineage)
    name = "rules" if suggestion.fits else "patch"
    trial = admit(
        card, target, materializer_named(name), known, on_progress=say, on_event=on_event, cancel=cancel
    )  # fmt: skip
    word = "accepted" if trial.accepted else "failed"
    library.update(
        card_id,
        lambda present: recorded(present, trial),
        reason=trial.why,
        title=f"Try {card_id} on {target.name}: {word}",
        reports=trial.reports,
        machine=True,
    )
    admits = "; it admits the card" if trial.admits else ""
    return f"{word.upper()}{admits}: {trial.why}"
