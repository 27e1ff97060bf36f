"""Why a card is found for a target, and what keeps it from holding there: each in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from klineage.errors import KlineageError
from klineage.skill.card import ContractFeature, Place
from klineage.skill.retrieval import likeness
from klineage.skill.retrieval.index import Condition, Row
from klineage.skill.retrieval.target import Target

if TYPE_CHECKING:
    from klineage.skill.checks.checking import Answer, State


_PLACES: Mapping[Place, str] = {
    "anchor": "its place", "function": "the function", "kernel": "the kernel", "hardware": "the hardware",
}  # fmt: skip


@dataclass(frozen=True)
class Match:
    """One dimension in which a card is like the target: how much, and why."""

    dimension: str
    likeness: float
    why: str


@dataclass(frozen=True)
class Need:
    """One thing that is missing or in the way.

    kind: ``requires`` (a mechanism must come first), ``conflict`` (one is in the way, or it is there already), ``check`` (a
    precondition fails), ``surface`` (it is written in another language), ``platform`` (verified on other hardware only),
    ``anchor`` (its place is not in this kernel).
    """

    kind: Literal["requires", "conflict", "check", "surface", "platform", "anchor"]
    what: str
    why: str


@dataclass(frozen=True)
class Checked:
    """A precondition with what its check says of the target, and what its probe found when it was broken."""

    condition: Condition
    state: State
    why: str


def matches(row: Row, target: Target) -> tuple[Match, ...]:
    """The dimensions of a target in which the card is alike at all, the most alike first."""
    found = [
        *_by_workload(row, target),
        *_by_surface(row, target),
        *_by_platform(row, target),
        *_by_prior(row, target),
    ]
    return tuple(sorted(found, key=lambda match: -match.likeness))


def _by_workload(row: Row, target: Target) -> Iterator[Match]:
    best = max(row.workloads, key=lambda word: likeness.of_workload(target.workload, word), default="")
    worth = likeness.of_workload(target.workload, best) if target.workload and best else 0
    if worth:
        near = "" if worth in (1, likeness.DECLARED) else f", which is like {target.workload}"
        yield Match(
            "workload", worth, f"{_how(best, row.verified.workloads, (w for w, _ in row.lifted))}{near}"
        )


def _by_surface(row: Row, target: Target) -> Iterator[Match]:
    if target.surface in row.surfaces:
        yield Match(
            "surface",
            1.0,
            f"written in {row.surface}" if row.surface == target.surface else f"verified in {target.surface}",
        )


def _by_platform(row: Row, target: Target) -> Iterator[Match]:
    best = max(row.platforms, key=lambda word: likeness.of_platform(target.platform, word), default="")
    worth = likeness.of_platform(target.platform, best) if target.platform and best else 0
    if worth:
        more = (
            f", which {target.platform} satisfies" if best not in (target.platform, likeness.ANYWHERE) else ""
        )
        yield Match(
            "platform", worth, f"{_how(best, row.verified.platforms, (p for _, p in row.lifted))}{more}"
        )


def _by_prior(row: Row, target: Target) -> Iterator[Match]:
    if target.prior is None:
        return
    had, has = set(row.priors), set(target.prior)
    if likeness.ANYWHERE in had:
        yield Match("prior", likeness.DECLARED, "declared for any earlier optimization")
    elif not had | has:
        yield Match("prior", 1.0, "verified on kernels that have no optimization yet")
    elif had & has:
        yield Match(
            "prior", len(had & has) / len(had | has), f"verified on kernels that have {_words(had & has)} too"
        )


def _how(value: str, verified: tuple[str, ...], lifted: Iterator[str]) -> str:
    if value in verified:
        return f"verified on {value}"
    if value in lifted:
        return f"lifted from {value}"
    return "declared for any" if value == likeness.ANYWHERE else f"declared for {value}"


def _words(names: set[str]) -> str:
    first, *rest = sorted(names)
    return f"{', '.join([first, *rest][:-1])} and {rest[-1]}" if rest else first


class Judge:
    """Says what cards need at one target. What the kernel is asked for several cards is asked once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._seen = {feature.name for feature in target.features}
        self._places = lru_cache(maxsize=None)(self._find)

    def of(self, row: Row) -> tuple[tuple[Need, ...], tuple[Checked, ...], tuple[str, ...]]:
        """(what is missing or in the way, each check's answer, what is not known)."""
        checked = tuple(self._checks(row))
        needs = [*self._language(row), *self._hardware(row), *self._contract(row)]
        needs += [Need("check", c.condition.text, c.why) for c in checked if c.state == "fails"]
        unknown = tuple(f"not known: {c.condition.text} ({c.why})" for c in checked if c.state == "unknown")
        return tuple(needs), checked, unknown

    def _language(self, row: Row) -> Iterator[Need]:
        wanted = self._target.surface
        if wanted and wanted not in row.surfaces:
            yield Need(
                "surface", wanted, f"it is written in {row.surface}: its idea has to be put into {wanted}"
            )

    def _hardware(self, row: Row) -> Iterator[Need]:
        wanted = self._target.platform
        if wanted and not any(likeness.of_platform(wanted, p) for p in row.platforms):
            yield Need(
                "platform", " or ".join(row.platforms) or "a trial", f"nobody has shown it on {wanted}"
            )

    def _contract(self, row: Row) -> Iterator[Need]:
        prior = self._target.prior
        if prior is None:
            return
        missing = [f for f in row.requires if f.where != "hardware" and f.name not in prior]
        if missing or self._target.kernel is None:
            yield from (_required(feature) for feature in missing)
            yield from (
                _in_the_way(row, feature)
                for feature in row.conflicts
                if feature.where == "kernel" and feature.name in prior
            )
            return
        places = self._places(row.anchor) if row.anchor else ("",)
        if not places:
            there = [feature for feature in row.conflicts if feature.name in self._seen]
            yield from (_in_the_way(row, feature) for feature in there)
            if not there:
                yield Need("anchor", "a place of its kind", "its anchor is nowhere in this kernel")
            return
        # It holds where one of its places has what it requires, and nothing that is in its way.
        faults = [list(self._faults(row, place)) for place in places]
        if all(faults):
            yield from min(faults, key=len)

    def _faults(self, row: Row, place: str) -> Iterator[Need]:
        from klineage.skill.contract import is_there, seen_from

        seen = seen_from(place, self._target.features)
        if not place or self._target.surface != "triton":  # a mechanism of C or CUDA is one of its whole file
            seen = tuple(ContractFeature(name) for name in self._seen)
        platform = self._target.platform
        for feature in row.requires:
            by_word = (
                feature.where != "hardware" and feature.name not in self._seen
            )  # somebody's word has no place
            if not by_word and not is_there(feature, seen, platform):
                yield _required(feature)
        for feature in row.conflicts:
            if is_there(feature, seen, platform):
                yield _in_the_way(row, feature)

    def _find(self, query: str) -> tuple[str, ...]:
        from klineage.skill.anchors.finding import find_anchor

        if self._target.kernel is None:
            return ()
        try:
            return tuple(dict.fromkeys(place.locus for place in find_anchor(query, self._target.kernel)))
        except KlineageError:
            return ("",)  # a query that does not compile finds nothing and proves nothing; lint says so

    def _checks(self, row: Row) -> Iterator[Checked]:
        from klineage.skill.checks.checking import check

        if self._target.facts is None:
            return
        facts = replace(self._target.facts, settings=row.settings)
        for condition in row.conditions:
            if condition.check:
                answer: Answer = check(condition.check, facts)
                yield Checked(condition, answer.state, answer.why)


def _required(feature: ContractFeature) -> Need:
    if feature.where == "hardware":
        return Need("requires", feature.name, f"the hardware must have {feature.name}")
    return Need("requires", feature.name, f"{_PLACES[feature.where]} must have {feature.name} first")


def _in_the_way(row: Row, feature: ContractFeature) -> Need:
    if any(feature.name == provided.name for provided in row.provides):
        return Need("conflict", feature.name, f"{feature.name} is there already")
    return Need("conflict", feature.name, f"{feature.name} is in the way: {_PLACES[feature.where]} has it")
