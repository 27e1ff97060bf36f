"""What a loop is told to become: written out, or dealt to warps with different tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    jit_functions,
    keywords,
    mentions,
    tl_call,
    value_of,
)
from klineage.surface.lists import add_element, remove_elements
from klineage.surface.tree import Edit, Unit, ancestors, parse_kernel

_STATIC = "static_range"
_UNROLL = ("loop_unroll_factor",)
_WARPS = ("warp_specialize",)
_NOTHING = ("None", "False", "0", "1")
_SHAPES = (
    "arange",
    "zeros",
    "full",
    "static_assert",
    "static_print",
    "constexpr",
    "reshape",
    "view",
    "broadcast_to",
)


def _detect(kernel: Kernel, *, words: tuple[str, ...], feature: str) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for locus, counted in _ranges(unit):
        settings = {w: unit.text(value_of(k)) for w, k in keywords(unit, counted).items() if w in words}
        settings = {word: value for word, value in settings.items() if value not in _NOTHING}
        if feature == "unroll" and tl_call(unit, counted) == _STATIC:
            settings[_STATIC] = _callee(unit, counted)
        if settings:
            sites.append(Site(locus, (Feature(locus, feature),), settings))
    return tuple(sites)


def _ranges(unit: Unit) -> list[tuple[str, Node]]:
    """The loops of kernels that count through a call, with that call."""
    kernels = tuple(f"{function.locus}/" for function in jit_functions(unit))
    found = []
    for locus, node in unit.loci.items():
        right = node.child_by_field_name("right") if node.type == "for_statement" else None
        if right is not None and right.type == "call" and locus.startswith(kernels):
            found.append((locus, right))
    return found


def _callee(unit: Unit, call: Node) -> str:
    function = call.child_by_field_name("function")
    return unit.text(function) if function is not None else ""


def _counted(unit: Unit, locus: str) -> Node:
    found = next((call for place, call in _ranges(unit) if place == locus), None)
    if found is None:
        raise NotApplicable("no loop that counts through a range at this place")
    return found


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    call = _counted(unit, site.locus)
    function, listing = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or listing is None:
        raise NotApplicable("no loop that counts through a range at this place")
    if _STATIC in site.settings:
        _refuse_constant(unit, unit.loci[site.locus])
        return Rewrite((Edit(function.start_byte, function.end_byte, b"range"),))
    gone = [k for word, k in keywords(unit, call).items() if word in site.settings]
    return Rewrite(remove_elements(unit, listing, gone))


def _refuse_constant(unit: Unit, loop: Node) -> None:
    """Raise NotApplicable where the loop's variable must be known when the kernel is compiled."""
    left, body = loop.child_by_field_name("left"), loop.child_by_field_name("body")
    for use in mentions(unit, body, unit.text(left)) if left is not None and body is not None else ():
        for outer in ancestors(use):
            if outer == body:
                break
            indexed = outer.type == "subscript" and outer.child_by_field_name("value") not in [
                use,
                *ancestors(use),
            ]
            annotated = outer.type == "assignment" and outer.child_by_field_name("type") is not None
            if indexed or annotated or tl_call(unit, outer) in _SHAPES:
                line = unit.line(use.start_byte)
                raise NotApplicable(f"line {line} needs {unit.text(use)} when the kernel is compiled")


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    call = _counted(unit, locus)
    function, listing = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or listing is None or not settings:
        raise NotApplicable("the step records no hint")
    if _STATIC in settings:
        if unit.text(function) not in ("range", "tl.range") or keywords(unit, call):
            raise NotApplicable("the loop counts through no plain range")
        text = settings[_STATIC].encode("utf-8", "surrogateescape")
        return (Edit(function.start_byte, function.end_byte, text),)
    if tl_call(unit, call) != "range":
        raise NotApplicable("the loop is no tl.range that could be told")
    return tuple(add_element(unit, listing, f"{word}={value}") for word, value in settings.items())


LOOP_UNROLL = Rule(
    name="loop-unroll",
    action="unroll",
    surface="triton",
    title="Keep the loop a loop",
    adds="Write the loop out",
    at="A short loop whose number of iterations is a constant",
    rationale="A loop of a few iterations that is written out has its variable as a constant and lets "
    "iterations overlap; as a loop, each iteration computes, tests and jumps.",
    preconditions=(
        "Pipeline: the trip count is a constant, and small, or the code outgrows the instruction cache.",
        "Storage: what the iterations hold at the same time fits in the registers.",
    ),
    detect=partial(_detect, words=_UNROLL, feature="unroll"),
    remove=remove,
    apply=apply,
    after=("autotune",),
)

WARP_SPECIALIZE = Rule(
    name="warp-specialization",
    action="warp_specialize",
    surface="triton",
    title="Let every warp do the same",
    adds="Give warps different tasks",
    at="The loop that loads tiles and multiplies them",
    rationale="Some warps only load and others only compute, joined by barriers in shared memory; without "
    "that, every warp loads, waits and computes.",
    preconditions=(
        "Pipeline: the loop loads and multiplies, and a load does not wait for the product of its iteration.",
        "Storage: the buffers between the warps fit in shared memory.",
        "Hardware: asynchronous copies and barriers with transaction counts (sm_90 and later).",
    ),
    detect=partial(_detect, words=_WARPS, feature="warp_specialize"),
    remove=remove,
    apply=apply,
    after=("autotune",),
    known={
        "Hardware": Known('satisfies("nvidia-sm90")', "platform"),
    },
)
