"""The approximate reciprocal square root becomes a square root and a division."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import jit_functions, positional, tl_call, tl_calls
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        calls = tl_calls(unit, function.body, "rsqrt")
        if calls:
            targets = {unit.text(f) for c in calls if (f := c.child_by_field_name("function")) is not None}
            feature = Feature(function.locus, "fast_rsqrt")
            sites.append(Site(function.locus, (feature,), {"function": sorted(targets)[0]}))
    return tuple(sites)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    edits: list[Edit] = []
    for call in tl_calls(unit, function.body, "rsqrt"):
        target = call.child_by_field_name("function")
        if target is None or tl_calls(unit, call, "rsqrt") != [call]:
            raise NotApplicable("reciprocal roots inside each other")
        edits += [
            Edit(call.start_byte, target.end_byte, b"(1.0 / tl.sqrt"),
            Edit(call.end_byte, call.end_byte, b")"),
        ]
    return Rewrite(tuple(edits))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    found = _divisions(unit, function) if function is not None else []
    if not found:
        raise NotApplicable("no 1 / sqrt here")
    edits = []
    for node, argument in found:
        text = f"{settings.get('function', 'tl.rsqrt')}({unit.text(argument)})"
        edits.append(Edit(node.start_byte, node.end_byte, text.encode("utf-8", "surrogateescape")))
    return tuple(edits)


def _divisions(unit: Unit, function: Function) -> list[tuple[Node, Node]]:
    """Every ``1.0 / tl.sqrt(a)``, with its own brackets if it has some, and ``a``."""
    found = []
    for node in walk(function.body):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator")
        if node.type != "binary_operator" or left is None or right is None or sign is None:
            continue
        root = positional(right) if tl_call(unit, right) in ("sqrt", "sqrt_rn") else []
        if unit.text(sign) == "/" and unit.text(left) in ("1", "1.0") and root:
            bracketed = node.parent is not None and node.parent.type == "parenthesized_expression"
            outer = node.parent if bracketed and node.parent is not None else node
            found.append((outer, root[0]))
    return found


RECIPROCAL_ROOT = Rule(
    name="reciprocal-root",
    action="math_approx",
    surface="triton",
    title="Divide by the square root instead of rsqrt",
    adds="Multiply by rsqrt",
    at="A division by a square root",
    rationale="rsqrt is one approximate instruction; a square root and a division are two longer sequences.",
    preconditions=(
        "Data types: results are rounded more coarsely than the two units in the last place of fp32 that it may be off.",
        "Hardware: a native approximate reciprocal square root.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    # What is computed in fp32 is stored as fp32 with the narrowest tolerance that it can meet.
    known={"Data types": Known(change="dtype", settings={"element": "fp32"})},
)
