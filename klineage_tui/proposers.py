"""Who can be asked for a proposal, as the person's configuration and this machine have it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klineage.numbers import plural

if TYPE_CHECKING:
    from threading import Event

    from klineage.kernel import Feature, Kernel
    from klineage.ledger import Estimate, Ledger, Limit
    from klineage.lineage import Step
    from klineage.proposer.base import Proposer
    from klineage.proposer.features import Finding
    from klineage.proposer.features.opinions import Opinion
    from klineage.proposer.settings import Settings
    from klineage.walk import Walk
    from klineage.walk.putting_back import Ask

    from klineage_tui.presentation.spending import SpendBar

_FAILURES = {"rules": 20}  # attempts in a row that may fail before a walk ends: rules cost nothing
_PAID_FAILURES = 5


@dataclass(frozen=True)
class Choice:
    """A proposer that can be asked: its name for the registry, and a word about it."""

    name: str
    note: str


def choices(settings: Settings, estimate: Estimate | None = None, *, walk: bool = False) -> list[Choice]:
    """The model of the configuration, the person's own commands, and the presets that are installed here.

    estimate: what the model may cost from here, for one call and (``walk``) for all.
    """
    from klineage.proposer.command import PRESETS

    limit = "no limit" if settings.budget is None else f"at most ${settings.budget} for this lineage"
    likely = _likely(estimate, walk) if estimate is not None else "costs money"
    found = [Choice(f"model:{settings.model}", f"{likely}, {limit}")]
    found += [Choice(f"command:{name}", " ".join(words)) for name, words in settings.commands.items()]
    for name, agent in PRESETS.items():
        if name not in settings.commands and shutil.which(agent.words[0]):
            found.append(Choice(f"command:{name}", "installed here"))
    return found


def walkers(settings: Settings, estimate: Estimate | None = None) -> list[Choice]:
    """Who can walk by itself: the rules, and everybody who can be asked."""
    rules = Choice("rules", "no cost, no network")
    return [rules, *choices(settings, estimate, walk=True)]


def _likely(estimate: Estimate, walk: bool) -> str:
    from klineage_tui.presentation.spending import money

    if walk:
        return f"about {money(estimate.dollars)} for {plural(estimate.calls, 'call')}"
    return f"about {money(estimate.dollars / estimate.calls)}"


def estimated(
    walk: Walk, ledger: Ledger, model: str, max_steps: int | None = None, best_of: int = 1
) -> Estimate | None:
    """What walking on may cost: a call for each mechanism that is seen, and one that finds nothing more.

    None for a model without a price.
    """
    from klineage.ledger import estimate

    price = ledger.prices.find(model)
    if price is None:
        return None
    state = walk.state()
    steps = len(state.features) if max_steps is None else min(max_steps, len(state.features))
    size = len(state.kernel.source) + len(walk.workload.source)
    return estimate(ledger.read(), model, price, steps * best_of + 1, size)


def likely_cost(walk: Walk, settings: Settings) -> Estimate | None:
    """What the model of the configuration may cost from here; None where nobody can say."""
    from klineage.errors import KlineageError
    from klineage.ledger import Ledger

    try:
        return estimated(walk, Ledger.of(walk.workspace.git.place), settings.model)
    except KlineageError:
        return None


def failures_in_a_row(name: str) -> int:
    """After how many attempts in a row that failed a walk ends, where nobody says."""
    return _FAILURES.get(name, _PAID_FAILURES)


def limit_of(walk: Walk, name: str, settings: Settings) -> Limit | None:
    """What the calls of a lineage may cost when the app asks. A command is the person's own, and has no price."""
    from klineage.ledger import Limit

    if settings.budget is None or name.startswith("command:"):
        return None
    return Limit(settings.budget, walk.id)


def spent(walk: Walk, settings: Settings) -> SpendBar:
    """What the calls for a lineage have cost so far; empty where there were none.

    A ledger or a price table that cannot be read is told to whoever asks for a proposal, and keeps nobody from walking.
    """
    from klineage.errors import KlineageError
    from klineage.ledger import Ledger, Meter

    from klineage_tui.presentation.spending import SpendBar, spend_bar

    try:
        reading = Meter(Ledger.of(walk.workspace.git.place), walk.id, limit_of(walk, "", settings)).read()
    except KlineageError:
        return SpendBar("cost unknown")
    return spend_bar(reading)


def named(walk: Walk, name: str, settings: Settings, limit: Limit | None) -> Proposer:
    """The proposer of a name, at work on a walk. Raises KlineageError for one that is not known."""
    from klineage.proposer.registry import Context, proposer_named

    limits = () if limit is None else (limit,)
    return proposer_named(name, Context(walk.workspace.git.place, walk.id, settings, limits=limits))


def opinions(
    walk: Walk, kernel: Kernel, asked: Sequence[Finding], settings: Settings, cancel: Event
) -> dict[Feature, Opinion]:
    """What the model of the configuration says of mechanisms that no detector can tell, in one paid call."""
    from klineage.proposer.registry import Context, auditor_named

    limit = limit_of(walk, "model", settings)
    context = Context(walk.workspace.git.place, walk.id, settings, limits=(limit,) if limit else ())
    auditor = auditor_named("model", context)
    return {opinion.feature: opinion for opinion in auditor.opinions(kernel, asked, cancel=cancel)}


def makers(steps: Sequence[Step], settings: Settings) -> tuple[str, ...]:
    """Who is asked for forward edits when these steps are sealed: who made them, a model only within a budget."""
    from klineage.walk.putting_back import maker_of

    names = dict.fromkeys(filter(None, map(maker_of, steps)))
    return tuple(name for name in names if settings.budget is not None or not name.startswith("model"))


def asking(walk: Walk, names: Sequence[str], settings: Settings) -> Ask:
    """The proposers of these names, and of no others, for ``Walk.seal``."""

    def ask(name: str) -> Proposer | None:
        return named(walk, name, settings, limit_of(walk, name, settings)) if name in names else None

    return ask
