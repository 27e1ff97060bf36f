"""Which way on: the lineages whose first steps a kernel has already taken, and the cards of the steps that are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from klineage.errors import KlineageError
from klineage.skill.library.library import Library
from klineage.skill.retrieval.index import Index, Row
from klineage.skill.retrieval.ranking import alike
from klineage.skill.retrieval.target import Target

#: The commits of a sealed lineage, the naive kernel first; () where it cannot be read.
Order = Callable[[str], Sequence[str]]

_LOOKED_AT = 12  # lineages
_MANY = 3  # of them are told


@dataclass(frozen=True)
class PathStep:
    """One card on the way. state: ``there`` (the kernel has it), ``next`` (it can be put on now), ``later``.

    needs: names of mechanisms that must come before it and are not there.
    """

    row: Row
    state: Literal["there", "next", "later"]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Path:
    """The cards of one lineage in the order of its steps. ``without``: steps of it that no card speaks for."""

    lineage: str
    steps: tuple[PathStep, ...]
    without: int = 0

    @property
    def there(self) -> int:
        """How many of its steps the kernel has taken already."""
        return sum(step.state == "there" for step in self.steps)

    @property
    def left(self) -> tuple[PathStep, ...]:
        return tuple(step for step in self.steps if step.state != "there")


def paths(index: Index, target: Target, order: Order, *, hypotheses: bool = False) -> tuple[Path, ...]:
    """The lineages that lead on from what the target has, the one furthest along first.

    Only lineages of the target's language with a step left. Needs ``target.prior``: without it, no way is known.
    """
    if target.prior is None:
        return ()
    found = []
    for lineage, numbers in _lineages(index, target, hypotheses):
        path = _path(lineage, [index.row(number) for number in numbers], target.prior, order(lineage))
        if path.left:
            found.append(path)
    ranked = sorted(enumerate(found), key=lambda item: (-item[1].there, item[0]))
    return tuple(path for _, path in ranked[:_MANY])


def order_of(*libraries: Library) -> Order:
    """The order of steps as the lineages themselves have it, wherever a library (its workspace, its bundles) has one."""

    def order(lineage: str) -> Sequence[str]:
        for library in libraries:
            try:
                with library.lineage(lineage) as workspace:
                    return [step.commit for step in workspace.lineage(lineage)]
            except KlineageError:
                continue  # cited, but not here: its cards are still ordered by their contracts
        return ()

    return order


def _lineages(index: Index, target: Target, hypotheses: bool) -> list[tuple[str, list[int]]]:
    """The lineages that have cards for this language, those most like the target first, with the numbers of the cards."""
    import numpy as np

    lists = index.column("lineages")
    asked = index.column("status").having(("admitted", "hypothesis") if hypotheses else ("admitted",))
    if target.surface:
        asked = asked & index.column("surface").having((target.surface,))
    total = sum(alike(index, target).values(), np.zeros(len(index)))
    kept = np.flatnonzero(asked.take(lists.owners))
    codes, cards = lists.codes.take(kept), lists.owners.take(kept)
    worth = np.full(len(lists.words), -1.0)
    np.maximum.at(worth, codes, total.take(cards))
    best = [int(code) for code in np.argsort(-worth, kind="stable")[:_LOOKED_AT] if worth[code] >= 0]
    return [(lists.words[code], cards[codes == code].tolist()) for code in best]


def _path(lineage: str, rows: Sequence[Row], prior: Sequence[str], commits: Sequence[str]) -> Path:
    place = {commit: number for number, commit in enumerate(commits)}
    have, steps = set(prior), []
    ordered = _by_place(rows, lineage, place) if place else _by_contract(rows)
    for row in ordered:
        provided = {feature.name for feature in row.provides} or set(row.action.split("+"))
        needs = tuple(
            dict.fromkeys(f.name for f in row.requires if f.where != "hardware" and f.name not in have)
        )
        state: Literal["there", "next", "later"] = (
            "there" if provided <= have else "later" if needs else "next"
        )
        steps.append(PathStep(row, state, needs if state == "later" else ()))
    spoken = {commit for row in rows for name, commit in row.steps if name == lineage}
    return Path(lineage, tuple(steps), len([c for c in commits[1:] if c not in spoken]))


def _by_place(rows: Sequence[Row], lineage: str, place: dict[str, int]) -> list[Row]:
    first = {
        row.id: min((place.get(c, len(place)) for name, c in row.steps if name == lineage)) for row in rows
    }
    return sorted(rows, key=lambda row: (first[row.id], row.id))


def _by_contract(rows: Sequence[Row]) -> list[Row]:
    """Where the lineage itself cannot be read: what is required before what requires it, else by id."""
    left, have = sorted(rows, key=lambda row: row.id), set[str]()
    offered = {feature.name for row in rows for feature in row.provides}
    ordered: list[Row] = []
    while left:
        ready = [r for r in left if all(f.name in have or f.name not in offered for f in r.requires)]
        row = (ready or left)[0]
        left.remove(row)
        have |= {feature.name for feature in row.provides}
        ordered.append(row)
    return ordered
