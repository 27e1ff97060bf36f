"""Exponentials in base two: exp2 with log2(e) folded into a factor becomes exp."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    assignment,
    enclosing_statement,
    jit_functions,
    stale_comments,
    tl_call,
    tl_calls,
)
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_LOG2_E = math.log2(math.e)
STALE = r"exp2|log2"


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    using = [f for f in jit_functions(unit) if tl_calls(unit, f.body, "exp2")]
    factors = _factors(unit)
    targets = [_target(unit, f) for f in factors]
    if len(using) != 1 or not factors or None in targets or _needs_base_two(unit, using[0]):
        return ()
    if len(set(targets)) != len(targets):
        return ()
    settings = {str(t): unit.text(f) for t, f in zip(targets, factors, strict=True)}
    locus = using[0].locus
    return (Site(locus, (Feature(locus, "math_approx"),), settings),)


def _needs_base_two(unit: Unit, function: Function) -> bool:
    """Whether logarithms in base two leave the kernel, so that the base is part of the answer."""
    return bool(tl_calls(unit, function.body, "log2"))


def _factors(unit: Unit) -> list[Node]:
    """Every place where the number log2(e) is written out."""
    found = []
    for node in walk(unit.root):
        if node.type == "float":
            text = unit.text(node)
            if re.fullmatch(r"\d+\.\d+", text) and abs(float(text) - _LOG2_E) < 1e-6:
                found.append(node)
        elif node.type == "call" and re.fullmatch(r"(math|np|numpy)\.log2\(\s*\w+\.e\s*\)", unit.text(node)):
            found.append(node)
    return found


def _target(unit: Unit, factor: Node) -> str | None:
    """The variable that is assigned a product with the factor; None when the factor stands elsewhere."""
    node = assignment(enclosing_statement(factor))
    left = node.child_by_field_name("left") if node is not None else None
    if left is None or left.type != "identifier" or _without(unit, factor) is None:
        return None
    return unit.text(left)


def _without(unit: Unit, factor: Node) -> Edit | None:
    """The edit that takes the factor out of its product or quotient."""
    parent = factor.parent
    if parent is None or parent.type != "binary_operator":
        return None
    left, right = parent.child_by_field_name("left"), parent.child_by_field_name("right")
    sign = parent.child_by_field_name("operator")
    if left is None or right is None or sign is None:
        return None
    if unit.text(sign) == "*" and left == factor:
        return Edit(factor.start_byte, right.start_byte)
    if unit.text(sign) == "*":
        return Edit(left.end_byte, factor.end_byte)
    if unit.text(sign) == "/" and left == factor:
        return Edit(factor.start_byte, factor.end_byte, b"1.0")
    return None


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    edits = [e for f in _factors(unit) if (e := _without(unit, f)) is not None]
    edits += _renamed(unit, function, "exp2", b"exp")
    return Rewrite(merge_edits(tuple(edits), stale_comments(unit, unit.root, STALE)))


def _renamed(unit: Unit, function: Function, name: str, new: bytes) -> list[Edit]:
    edits = []
    for call in tl_calls(unit, function.body, name):
        target = call.child_by_field_name("function")
        if target is not None and tl_call(unit, call) == name:
            edits.append(Edit(target.end_byte - len(name), target.end_byte, new))
    return edits


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    edits = _renamed(unit, function, "exp", b"exp2") if function is not None else []
    if not edits or not settings:
        raise NotApplicable("no exponentials here, or no factor recorded")
    for variable, factor in settings.items():
        edits += _with_factor(unit, _assigned(unit, variable), factor)
    return tuple(edits)


def _assigned(unit: Unit, variable: str) -> Node:
    for node in walk(unit.root):
        left = node.child_by_field_name("left") if node.type == "assignment" else None
        right = node.child_by_field_name("right") if node.type == "assignment" else None
        if left is not None and right is not None and unit.text(left) == variable:
            return right
    raise NotApplicable(f"{variable!r} is not assigned in this file, so it cannot take the factor")


def _with_factor(unit: Unit, value: Node, factor: str) -> list[Edit]:
    left, sign = value.child_by_field_name("left"), value.child_by_field_name("operator")
    if left is not None and sign is not None and unit.text(sign) == "/" and unit.text(left) in ("1", "1.0"):
        return [Edit(left.start_byte, left.end_byte, factor.encode("utf-8", "surrogateescape"))]
    if sign is not None and unit.text(sign) in ("*", "/"):
        return [Edit(value.end_byte, value.end_byte, f" * {factor}".encode("utf-8", "surrogateescape"))]
    if value.type in ("identifier", "integer", "float", "call", "attribute", "subscript"):
        return [Edit(value.end_byte, value.end_byte, f" * {factor}".encode("utf-8", "surrogateescape"))]
    return [
        Edit(value.start_byte, value.start_byte, b"("),
        Edit(value.end_byte, value.end_byte, f") * {factor}".encode("utf-8", "surrogateescape")),
    ]


BASE_TWO = Rule(
    name="base-two",
    action="math_approx",
    surface="triton",
    title="Use exp instead of exp2 with a folded factor",
    adds="Use exp2 with the factor folded in",
    at="Exponentials of an argument that is multiplied by a constant",
    rationale="A factor that is multiplied anyway takes log2(e) in, which saves one multiplication an element; the "
    "hardware's exponential is in base two, so that exp multiplies each time.",
    preconditions=(
        "Data types: exponents are fp32; the folded factor is rounded once.",
        "Pipeline: every exponential's argument already carries a multiplied factor that can absorb log2(e).",
        "Hardware: a native base-two exponential (ex2).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
