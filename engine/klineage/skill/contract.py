"""The contract of a card: derived from transitions, and held against every transition that the card cites.

A contract is the precondition and the effect of a planning operator (Fikes and Nilsson, STRIPS, 1971) over mechanisms:
``requires`` must be there, ``conflicts`` must not, ``provides`` comes. What merely happened to be there before is no
requirement: see ``derived``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.platform import parse
from klineage.proposer import rules
from klineage.proposer.features import features
from klineage.skill.anchors.making import acted
from klineage.skill.card import Contract, ContractFeature, Place
from klineage.skill.transitions import RULE_PREFIX, Transition
from klineage.surface.tree import function_locus, parse_kernel

_LEAST = re.compile(r'satisfies\("([\w-]+)"\)')
_WIDTH: tuple[Place, ...] = ("anchor", "function", "kernel")


def derived(transitions: Sequence[Transition], pool: Iterable[Transition] = ()) -> Contract:
    """The contract that all of the transitions keep.

    provides:  what each of them added, as near to the anchor as it always was.
    requires:  what was there before each of them, and without which its edit cannot be made on any earlier state of
               its lineage. The states are those of ``pool``, the other transitions of the same lineages. And the platform
               that its rule names as the least, where every transition was made on one that has it.
    conflicts: what it provides, at that place already: it cannot be put on twice.
    """
    if not transitions:
        return Contract()
    provides = _common([_relative(t, t.added) for t in transitions])
    before = _common([_relative(t, t.features_before) for t in transitions])
    states = tuple(pool)
    needed = set.intersection(*({f.name for f in _necessary(t, states)} for t in transitions))
    requires = (*_hardware(transitions), *(feature for feature in before if feature.name in needed))
    conflicts = tuple(f for f in provides if not any(_begins_with(t, f) for t in transitions))
    return Contract(requires, provides, conflicts)


def _hardware(transitions: Sequence[Transition]) -> tuple[ContractFeature, ...]:
    """The capabilities that a rule's own check asks of the platform, ``satisfies("nvidia-sm80")``."""
    first = transitions[0]
    known = [rule.known for rule in rules.RULES[first.surface] if rule.name == first.rule]
    checks = (_LEAST.fullmatch(one.check.strip()) for each in known for one in each.values())
    names = sorted({match[1] for match in checks if match is not None})
    return tuple(
        ContractFeature(name, "hardware")
        for name in names
        if all(capable(t.platform, name) for t in transitions)
    )


@lru_cache(maxsize=512)
def _necessary(transition: Transition, pool: tuple[Transition, ...]) -> frozenset[Feature]:
    """What is common to all states that a transition's edit can be made on; nothing where no rule can make it at all.

    They are the earlier states of its lineage, and the simplest one with some of the optimizations between them made on
    it: of those that seem to be needed, all but one. What the simplest state has already says nothing: there is no state
    without it.
    """
    if not can_be_made(transition, transition.before):
        return frozenset()
    earlier = [t for t in pool if t.lineage == transition.lineage and t.step.number < transition.step.number]
    simplest = min(earlier, key=lambda t: t.step.number, default=transition)
    always = {feature.name for feature in simplest.features_before}
    needed = {feature for feature in transition.features_before if feature.name not in always}
    for other in earlier:
        needed = _still(needed, transition, other.before)
    for feature in sorted(needed):
        if feature in needed and earlier:
            wanted = [t for t in earlier if (needed - {feature}) & set(t.added)]
            needed = _still(needed, transition, _with_all(simplest.before, wanted))
    return frozenset(needed)


def _still(needed: set[Feature], transition: Transition, state: Kernel) -> set[Feature]:
    """What is needed still, given another state: less what it lacks, if the edit can be made on it all the same."""
    names = {feature.name for feature in features(state)}
    if all(feature.name in names for feature in needed) or not can_be_made(transition, state):
        return needed
    return {feature for feature in needed if feature.name in names}


def _with_all(kernel: Kernel, wanted: Sequence[Transition]) -> Kernel:
    """The kernel with the edits of these transitions made on it, as far as they can be."""
    for transition in wanted:
        if can_be_made(transition, kernel) and (source := _made(transition, kernel)) is not None:
            kernel = replace(kernel, source=source)
    return kernel


def can_be_made(transition: Transition, kernel: Kernel) -> bool:
    """Whether the edit of a transition can be made on another state, and does there what it did in its own.

    By its rule where one made it, else by the rules of its action, from what its step recorded. It says nothing of whether
    the result passes a gate, or pays.
    """
    source = _made(transition, kernel)
    if source is None:
        return False
    result = replace(kernel, source=source)
    broken = parse_kernel(result).broken_lines()
    if len(broken) > len(parse_kernel(kernel).broken_lines()):
        return False
    had = {f.name for f in features(kernel)}
    has = {f.name for f in features(result)}
    return has - had == {f.name for f in transition.added} - had and had <= has


def _made(transition: Transition, kernel: Kernel) -> bytes | None:
    step = transition.step
    name = f"{RULE_PREFIX}{transition.rule}" if transition.rule else step.action
    try:
        return rules.derive(name, kernel, step.locus, dict(step.settings))
    except rules.NotApplicable:
        return None


def consistent(contract: Contract, transitions: Iterable[Transition]) -> tuple[str, ...]:
    """What is wrong between a contract and transitions, a sentence each; empty when every one of them keeps it.

    ``provides`` is exactly what each added, ``requires`` was there before it, and nothing of ``conflicts`` was.
    """
    return tuple(fault for transition in transitions for fault in _faults(contract, transition))


def _faults(contract: Contract, transition: Transition) -> Iterable[str]:
    added = _relative(transition, transition.added)
    before = _relative(transition, transition.features_before)
    for wanted in contract.provides:
        if not _among(wanted, added):
            yield f"{transition.name} does not add {_said(wanted)}, which the card provides"
    for feature in added:
        if feature.name not in {provided.name for provided in contract.provides}:
            yield f"{transition.name} also adds {feature.name}, which the card does not provide"
    for wanted in contract.requires:
        if not is_there(wanted, before, transition.platform):
            yield f"{transition.name} began without {_said(wanted)}, which the card requires"
    for unwanted in contract.conflicts:
        if is_there(unwanted, before, transition.platform):
            yield f"{transition.name} began with {_said(unwanted)}, which the card conflicts with"


def is_there(feature: ContractFeature, seen: Sequence[ContractFeature], platform: str) -> bool:
    """Whether a kernel has what a contract speaks of: ``seen`` is ``seen_from`` the place where the card would act."""
    if feature.where == "hardware":
        return capable(platform, feature.name)
    return _among(feature, seen)


def seen_from(locus: str, features: Iterable[Feature]) -> tuple[ContractFeature, ...]:
    """The mechanisms of a kernel as they are seen from one of its places."""
    return tuple(sorted({ContractFeature(f.name, _where(f.locus, locus)) for f in features}))


def _among(wanted: ContractFeature, found: Iterable[ContractFeature]) -> bool:
    """Whether a mechanism is found where it is wanted, or nearer to the anchor than that."""
    if wanted.where == "hardware":
        return wanted in set(found)
    reach = _WIDTH.index(wanted.where)
    return any(f.name == wanted.name and f.where in _WIDTH and _WIDTH.index(f.where) <= reach for f in found)


def _said(feature: ContractFeature) -> str:
    places = {
        "anchor": "at its anchor",
        "function": "in its function",
        "kernel": "",
        "hardware": "in hardware",
    }
    return f"{feature.name} {places[feature.where]}".strip()


def capable(platform: str, capability: str) -> bool:
    """Whether a platform has a capability: the name of a platform that it satisfies (``nvidia-sm80``, ``sm80``,
    ``x86-64-v3``). What names no platform is no capability that can be told, and no platform has it."""
    own = parse(platform)
    for name in (capability, f"{own.vendor}-{capability}"):
        try:
            return own.satisfies(parse(name))
        except KlineageError:
            continue
    return False


def _relative(transition: Transition, features: Iterable[Feature]) -> tuple[ContractFeature, ...]:
    """Mechanisms as they are seen from the anchor of a transition."""
    place = acted(transition).place
    return seen_from(place.locus if place is not None else transition.step.locus, features)


def _where(locus: str, home: str) -> Place:
    """How far a mechanism is from a place; twin loops of one name are one place."""
    if re.sub(r"#\d+(?=\])", "", locus) == re.sub(r"#\d+(?=\])", "", home):
        return "anchor"
    return "function" if function_locus(locus) == function_locus(home) else "kernel"


def _common(seen: Sequence[tuple[ContractFeature, ...]]) -> tuple[ContractFeature, ...]:
    """What every transition has, each name at the widest of the places where it was found nearest."""
    nearest = [_nearest(features) for features in seen]
    names = set.intersection(*(set(near) for near in nearest)) if nearest else set()
    return tuple(
        ContractFeature(name, _WIDTH[max(_WIDTH.index(near[name]) for near in nearest)])
        for name in sorted(names)
    )


def _nearest(features: Iterable[ContractFeature]) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for feature in features:
        if feature.name not in found or _WIDTH.index(feature.where) < _WIDTH.index(found[feature.name]):
            found[feature.name] = feature.where
    return found


def _begins_with(transition: Transition, feature: ContractFeature) -> bool:
    return _among(feature, _relative(transition, transition.features_before))
