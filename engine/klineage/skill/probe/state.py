"""What a probe works on: the card's own kernel with and without the optimization, as one transition has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.resources import shipped
from klineage.skill.card import Card
from klineage.skill.checks.facts import Facts, facts
from klineage.skill.library.library import Library
from klineage.skill.transitions import Transition, transitions
from klineage.walk.trust import Untrusted, require
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


def states_of(
    library: Library, card: Card, lineage_id: str = "", *, trusted: bool = False
) -> tuple[State, ...]:
    """The card's own states, in the order of its evidence; of one lineage alone if ``lineage_id`` names it.

    trusted: somebody has agreed to run the code of a folder that came from elsewhere.
    Raises KlineageError when the card cites no transition that is here, with what is missing, and Untrusted for the code
    of somebody else.
    """
    cited = [e for e in card.evidence if e.kind == "transition" and lineage_id in ("", e.lineage)]
    if not cited:
        of = f" of {lineage_id}" if lineage_id else ""
        raise KlineageError(
            f"{card.id} cites no transition{of}, so there is no state of its own to probe; lift it first"
        )
    if not library.writable and not trusted:
        _require_shipped(library)
    found: list[State] = []
    missing = ""
    for name in dict.fromkeys(e.lineage for e in cited):
        wanted = {e.commit for e in cited if e.lineage == name}
        try:
            with library.lineage(name) as workspace:
                if library.writable:
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


def _require_shipped(library: Library) -> None:
    """A folder's bundles are opened apart, so that no word on them can be remembered: only what ships runs unasked."""
    place, own = library.path.resolve(), shipped("library").resolve()
    if place != own and own not in place.parents:
        raise Untrusted(
            f"{library.path} came from elsewhere, and a gate runs the code of its lineages: read it, then add --trust, "
            "or klineage library pull it into a workspace"
        )
