"""Integer constants that a kernel's own text gives: tile sizes, unroll factors, launch options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.triton.code import jit_functions, launches, value_of
from klineage.surface import autotune
from klineage.surface.cuda_source import constants as c_constants
from klineage.surface.expression import Tree
from klineage.surface.lists import elements
from klineage.surface.tree import Edit, Unit, apply_edits, parse_kernel, walk
from klineage.workload.constants import Unknown

_DEEPEST = 16  # a constant of a constant of a constant


def constants(kernel: Kernel) -> dict[str, int]:
    """Name -> value of every integer constant that is certain.

    C and CUDA: ``#define``, ``constexpr``, ``const``, enumerators, and ``-D`` flags; one that has different values under
    ``#if`` is left out. Triton: the pinned configuration, and the constants that every launch of a kernel writes out.
    """
    unit = parse_kernel(kernel)
    return (
        _launched(kernel, unit) if kernel.surface == "triton" else _evaluated(c_constants(unit, kernel.flags))
    )


def with_constant(kernel: Kernel, name: str, value: str) -> Kernel | None:
    """The kernel with one of its constants given another value, everywhere; None where its text does not write it out.

    C and CUDA: a ``#define`` whose value is a literal. Triton: the pinned configuration, and literals at launches.
    """
    unit = parse_kernel(kernel)
    if kernel.surface == "triton":
        config = tuple((known, int(value, 0) if known == name else old) for known, old in kernel.config)
        edits = [
            Edit(node.start_byte, node.end_byte, value.encode())
            for known, node in _literals(unit)
            if known == name
        ]
        if not edits and config == kernel.config and name not in dict(kernel.config):
            return None
        return replace(kernel, source=apply_edits(kernel.source, edits), config=config)
    defined = [node for node in walk(unit.root) if node.type == "preproc_def" and _defines(unit, node, name)]
    values = [v for node in defined if (v := node.child_by_field_name("value")) is not None]
    if not values or not all(unit.text(v).split("//")[0].strip().isdecimal() for v in values):
        return None
    edits = [
        Edit(v.start_byte, v.start_byte + len(unit.text(v).split("//")[0].rstrip()), value.encode())
        for v in values
    ]
    return replace(kernel, source=apply_edits(kernel.source, edits))


def _defines(unit: Unit, node: Node, name: str) -> bool:
    named = node.child_by_field_name("name")
    return named is not None and unit.text(named) == name


def _evaluated(trees: dict[str, Tree]) -> dict[str, int]:
    found = {}
    for name, tree in trees.items():
        try:
            found[name] = _value(tree, trees, _DEEPEST)
        except (Unknown, ArithmeticError, ValueError):
            continue  # what names something else than constants is no constant
    return found


def _value(tree: Tree, known: dict[str, Tree], depth: int) -> int:
    if depth == 0:
        raise Unknown("a circle of constants")
    match tree:
        case int():
            return tree
        case str() if tree in known:
            return _value(known[tree], known, depth - 1)
        case [str() as operator, left, right] if operator in (
            "+",
            "-",
            "*",
            "//",
            "%",
            "<<",
            "min",
            "max",
            "cdiv",
        ):
            return _computed(operator, _value(left, known, depth - 1), _value(right, known, depth - 1))
    raise Unknown(str(tree))


def _computed(operator: str, a: int, b: int) -> int:
    if operator == "<<" and not 0 <= b < 64:
        raise Unknown("a large shift")
    computed = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "//": lambda: a // b, "%": lambda: a % b,
        "<<": lambda: a << b, "min": lambda: min(a, b), "max": lambda: max(a, b), "cdiv": lambda: -(-a // b),
    }  # fmt: skip
    value = computed[operator]()
    if value.bit_length() > 64:
        raise Unknown("a large number")
    return value


def _launched(kernel: Kernel, unit: Unit) -> dict[str, int]:
    found: dict[str, int] = {}
    contradicted: set[str] = set()
    pinned = [pair for function in jit_functions(unit) for pair in autotune.pinned(kernel, function)]
    written = [(name, int(unit.text(node).replace("_", ""), 0)) for name, node in _literals(unit)]
    for name, value in (*pinned, *written):
        if found.setdefault(name, value) != value:
            contradicted.add(name)
    return {name: value for name, value in found.items() if name not in contradicted}


def _literals(unit: Unit) -> Iterator[tuple[str, Node]]:
    """``name=4`` at the launches of the file's kernels: the name, and the node of the literal."""
    for function in jit_functions(unit):
        for launch in launches(unit, function.name):
            for node in elements(launch.arguments):
                named = node.child_by_field_name("name") if node.type == "keyword_argument" else None
                if named is not None and value_of(node).type == "integer":
                    yield unit.text(named), value_of(node)
