"""Why a card is found for a target, and what keeps it from holding there: each in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from klineage.kernel import Feature
from klineage.skill import likeness
from klineage.skill.card import ContractFeature
from klineage.skill.index import Condition, Row
from klineage.skill.target import Target

if TYPE_CHECKING:
    from klineage.skill.checks import Answer, State


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
        near = "" if worth in (1, 0.25) else f", which is like {target.workload}"
        yield Match(
            "workload", worth, f"{_how(row, best, row.verified.workloads, (w for w, _ in row.lifted))}{near}"
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
            "platform", worth, f"{_how(row, best, row.verified.platforms, (p for _, p in row.lifted))}{more}"
        )


def _by_prior(row: Row, target: Target) -> Iterator[Match]:
    if target.prior is None:
        return
    had, has = set(row.priors), set(target.prior)
    if likeness.ANYWHERE in had:
        yield Match("prior", 0.25, "declared for any earlier optimization")
    elif not had | has:
        yield Match("prior", 1.0, "verified on kernels that have no optimization yet")
    elif had & has:
        yield Match(
            "prior", len(had & has) / len(had | has), f"verified on kernels that have {_words(had & has)} too"
        )


def _how(row: Row, value: str, verified: tuple[str, ...], lifted: Iterator[str]) -> str:
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
        self._here: dict[str, list[Feature]] = {}
        for feature in target.features:
            self._here.setdefault(feature.name, []).append(feature)
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
        if wanted and row.platforms and not any(likeness.of_platform(wanted, p) for p in row.platforms):
            yield Need("platform", " or ".join(row.platforms), f"nobody has shown it on {wanted}")

    def _contract(self, row: Row) -> Iterator[Need]:
        if self._target.prior is None:
            return
        missing = [f for f in row.requires if f.where != "hardware" and f.name not in self._target.prior]
        for feature in missing:
            yield Need("requires", feature.name, f"{_place(feature)} must have {feature.name} first")
        if missing or self._target.kernel is None:
            yield from self._known_conflicts(row)
            return
        yield from self._at_anchors(row)

    def _known_conflicts(self, row: Row) -> Iterator[Need]:
        """Where no place can be looked at: a mechanism that may be nowhere in the kernel."""
        prior = self._target.prior or ()
        for feature in row.conflicts:
            if feature.where == "kernel" and feature.name in prior:
                yield Need("conflict", feature.name, _in_the_way(row, feature, "the kernel"))

    def _at_anchors(self, row: Row) -> Iterator[Need]:
        """The card holds where one of its places has what it requires and nothing that is in its way."""
        places = self._places(row.anchor) if row.anchor else ()
        if row.anchor and not places:
            yield Need("anchor", "a place of its kind", "its anchor is nowhere in this kernel")
            return
        faults = [list(self._faults(row, locus)) for locus in places or ("",)]
        if all(faults):
            yield from min(faults, key=len)

    def _faults(self, row: Row, locus: str) -> Iterator[Need]:
        for feature in row.requires:
            if feature.where in ("anchor", "function") and locus and not self._has(feature, locus):
                yield Need("requires", feature.name, f"{_place(feature)} must have {feature.name} first")
        for feature in row.conflicts:
            if feature.where != "hardware" and self._has(feature, locus):
                yield Need("conflict", feature.name, _in_the_way(row, feature, locus or "the kernel"))

    def _has(self, feature: ContractFeature, locus: str) -> bool:
        from klineage.surface.tree import function_locus

        here = self._here.get(feature.name, ())
        if feature.where == "kernel" or not locus:
            return bool(here)
        if feature.where == "function":
            return any(function_locus(f.locus) == function_locus(locus) for f in here)
        return any(f.locus == locus for f in here)

    def _find(self, query: str) -> tuple[str, ...]:
        from klineage.errors import KlineageError
        from klineage.skill.anchors import find_anchor

        assert self._target.kernel is not None
        try:
            return tuple(place.locus for place in find_anchor(query, self._target.kernel))
        except KlineageError:
            return ("",)  # a query that does not compile finds nothing and proves nothing; lint says so

    def _checks(self, row: Row) -> Iterator[Checked]:
        from klineage.skill.checks import check

        if self._target.facts is None:
            return
        facts = replace(self._target.facts, settings=row.settings)
        for condition in row.conditions:
            if condition.check:
                answer: Answer = check(condition.check, facts)
                yield Checked(condition, answer.state, answer.why)


def _place(feature: ContractFeature) -> str:
    places: Mapping[str, str] = {"anchor": "its place", "function": "the function", "kernel": "the kernel"}
    return places.get(feature.where, feature.where)


def _in_the_way(row: Row, feature: ContractFeature, where: str) -> str:
    if any(feature.name == provided.name for provided in row.provides):
        return f"{where} has {feature.name} already"
    return f"{feature.name} at {where} is in the way"
