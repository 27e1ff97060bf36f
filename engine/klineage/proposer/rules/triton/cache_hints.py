"""Cache and eviction hints on loads and stores."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    identifiers,
    jit_functions,
    keywords,
    positional,
    stale_comments,
    tl_call,
    tl_calls,
    value_of,
)
from klineage.surface.lists import add_element, remove_elements
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel

HINTS = ("cache_modifier", "eviction_policy")
STALE = r"(?i)\bcache|evict|\bL[12]\b"


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        settings = {
            f"{place}.{hint}": unit.text(value_of(keywords(unit, call)[hint]))
            for place, call in _accesses(unit, function).items()
            for hint in HINTS
            if _meaningful(unit, keywords(unit, call).get(hint))
        }
        if settings:
            sites.append(Site(function.locus, (Feature(function.locus, "cache_policy"),), settings))
    return tuple(sites)


def _meaningful(unit: Unit, hint: Node | None) -> bool:
    return hint is not None and unit.text(value_of(hint)) not in ('""', "''")


def _accesses(unit: Unit, function: Function) -> dict[str, Node]:
    """Loads and stores by what they touch: ``load(x_ptr)``, the second of them ``load(x_ptr)#2``."""
    found: dict[str, Node] = {}
    for call in tl_calls(unit, function.body, "load", "store"):
        given = positional(call)
        base = next((unit.text(n) for n in identifiers(given[0])), "") if given else ""
        place, number = f"{tl_call(unit, call)}({base})", 2
        while place in found:
            place = f"{tl_call(unit, call)}({base})#{number}"
            number += 1
        found[place] = call
    return found


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    edits: list[Edit] = []
    for call in _accesses(unit, function).values():
        listing = call.child_by_field_name("arguments")
        gone = [k for hint in HINTS if (k := keywords(unit, call).get(hint)) is not None]
        if listing is not None and gone:
            edits += remove_elements(unit, listing, gone)
    return Rewrite(merge_edits(tuple(edits), stale_comments(unit, function.node, STALE)))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None:
        raise NotApplicable("no such function")
    accesses = _accesses(unit, function)
    edits = []
    for name, value in settings.items():
        place, _, hint = name.rpartition(".")
        listing = accesses[place].child_by_field_name("arguments") if place in accesses else None
        if listing is None or hint not in HINTS:
            raise NotApplicable(f"no access {place!r} to give a hint to")
        edits.append(add_element(unit, listing, f"{hint}={value}"))
    return tuple(edits)


CACHE_HINTS = Rule(
    name="cache-hints",
    action="cache_policy",
    surface="triton",
    title="Drop cache and eviction hints",
    adds="Add cache and eviction hints",
    at="Loads and stores of data that is used once, or again and again",
    rationale="Eviction policies and cache modifiers tell the caches what will be used again; without them "
    "every access is treated alike.",
    preconditions=(
        "Storage: the data that is asked to stay fits in the cache beside what streams through it.",
        "Pipeline: the access pattern does use some data once and other data often, or the hint evicts "
        "what is needed.",
        "Hardware: loads and stores with cache operators and eviction priorities (sm_70 and later).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
