"""What a probe works on: the card's own kernel with and without the optimization, as one transition has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.skill.card import Card
from klineage.skill.facts import Facts, facts
from klineage.skill.library import Library
from klineage.skill.transitions import Transition, transitions
from klineage.walk.trust import require
from klineage.workload import Workload


@dataclass(frozen=True)
class State:
    """One transition as it can be judged anywhere: ``after`` has the optimization, ``before`` has not.

    settings: the instance's own numbers, which the rule put the optimization on with at ``locus``.
    name:     how people are told of it: ``gemm-c K3``.
    """

    before: Kernel = field(repr=False)
    after: Kernel = field(repr=False)
    workload: Workload = field(repr=False)
    platform: str
    locus: str = ""
    rule: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    lineage: str = ""
    commit: str = ""

    def facts(self) -> Facts:
        """Of the state before, which preconditions speak of."""
        return facts(self.before, self.workload, self.platform, settings=self.settings)


def state_of(transition: Transition) -> State:
    """The two kernels of a transition, under its workload and on its platform."""
    step = transition.step
    return State(
        transition.before,
        transition.after,
        transition.workload,
        transition.platform,
        step.locus,
        transition.rule,
        dict(step.settings),
        transition.name,
        transition.lineage,
        transition.commit,
    )


def states_of(library: Library, card: Card, lineage_id: str = "") -> tuple[State, ...]:
    """The card's own states, in the order of its evidence; of one lineage alone if ``lineage_id`` names it.

    Raises KlineageError when the card cites no transition that is here, with what is missing, and Untrusted for the code
    of somebody else.
    """
    cited = [e for e in card.evidence if e.kind == "transition" and lineage_id in ("", e.lineage)]
    if not cited:
        of = f" of {lineage_id}" if lineage_id else ""
        raise KlineageError(
            f"{card.id} cites no transition{of}, so there is no state of its own to probe; lift it first"
        )
    found: list[State] = []
    missing = ""
    for name in dict.fromkeys(e.lineage for e in cited):
        wanted = {e.commit for e in cited if e.lineage == name}
        try:
            with library.lineage(name) as workspace:
                if library.writable:  # a folder's bundle is opened apart, and is trusted as the folder is
                    require(workspace, name)
                found += [state_of(t) for t in transitions(workspace, name) if t.commit in wanted]
        except KlineageError as error:
            missing = missing or str(error)
    if not found:
        raise KlineageError(
            missing or f"no transition that {card.id} cites is in {library.path} any more; lift it again"
        )
    order = {e.commit: place for place, e in enumerate(cited)}
    return tuple(sorted(found, key=lambda state: order[state.commit]))
