"""Fits of ``base-two``: which value takes log2(e), so that every exponential of a kernel can be in base two."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.proposer.rules.triton.code import (
    jit_functions,
    mentions,
    names,
    positional,
    tl_call,
    tl_calls,
)
from klineage.surface.tree import Function, Unit, parse_kernel, walk

_LOG2_E = "1.4426950408889634"


def base_two(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """log2(e) folded into a factor that every exponential's argument already has."""
    unit = parse_kernel(kernel)
    factors = list(settings.values())
    factor = factors[0] if factors else _LOG2_E
    imported = re.search(rb"^import math$", unit.source, re.MULTILINE) is not None
    why: tuple[str, ...] = ()
    if "math." in factor and not imported:
        factor, why = _LOG2_E, ("the factor is written as a number, for this file imports no math",)
    for function in jit_functions(unit):
        arguments = [call for call in tl_calls(unit, function.body, "exp") if positional(call)]
        if not arguments:
            continue
        loaded = _loaded_exponents(unit, function, arguments)
        if loaded:
            told = f"{' and '.join(loaded)} take{'s' if len(loaded) == 1 else ''} the factor here"
            yield Fit(function.locus, dict.fromkeys(loaded, factor), (told, *why))
        for name in _scales(unit, function, arguments):
            yield Fit(function.locus, {name: factor}, (f"{name} takes the factor here", *why))


def _assigned_in(unit: Unit, function: Function) -> dict[str, list[Node]]:
    """The right sides that each name is given in a kernel, also by ``+=``."""
    found: dict[str, list[Node]] = {}
    for node in walk(function.body):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type in ("assignment", "augmented_assignment") and left is not None and right is not None:
            found.setdefault(unit.text(left), []).append(right)
    return found


def _loaded_exponents(unit: Unit, function: Function, calls: list[Node]) -> list[str]:
    """The loaded values that all exponents are made of, where they are used for nothing else."""
    given = _assigned_in(unit, function)
    found = dict.fromkeys(n for call in calls for n in names(unit, positional(call)[0]))
    loaded = [n for n in found if len(given.get(n, ())) == 1 and tl_calls(unit, given[n][0], "load")]
    spans = [(call.start_byte, call.end_byte) for call in calls]
    inside = all(
        any(start <= use.start_byte < end for start, end in spans) or _is_target(use)
        for name in loaded
        for use in mentions(unit, function.body, name)
    )
    covered = all(names(unit, positional(call)[0]) & set(loaded) for call in calls)
    return sorted(loaded) if loaded and inside and covered else []


def _is_target(use: Node) -> bool:
    return (
        use.parent is not None
        and use.parent.type == "assignment"
        and use.parent.child_by_field_name("left") == use
    )


def _scales(unit: Unit, function: Function, calls: list[Node]) -> list[str]:
    """Names that are given a value somewhere and multiplied on the way to an exponent, addresses left out."""
    given, reached, found = _assigned_in(unit, function), set[str](), list[str]()
    pending = [positional(call)[0] for call in calls]
    while pending:
        for node in _without_loads(unit, pending.pop()):
            sign = node.child_by_field_name("operator") if node.type == "binary_operator" else None
            if sign is not None and unit.text(sign) == "*":
                found += [unit.text(n) for n in node.named_children if n.type == "identifier"]
            if node.type == "identifier" and unit.text(node) not in reached:
                reached.add(unit.text(node))
                pending += given.get(unit.text(node), [])
    anywhere = {
        unit.text(left)
        for node in walk(unit.root)
        if node.type == "assignment" and (left := node.child_by_field_name("left")) is not None
    }
    return [name for name in dict.fromkeys(found) if name in anywhere and name not in given]


def _without_loads(unit: Unit, root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "call" and tl_call(unit, node) in ("load", "arange", "program_id"):
            continue
        yield node
        stack.extend(reversed(node.children))
