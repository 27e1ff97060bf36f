"""Integer constants that a kernel's own text gives: tile sizes, unroll factors, launch options."""

from __future__ import annotations

from klineage.kernel import Kernel
from klineage.surface import autotune
from klineage.surface.cuda_source import constants as c_constants
from klineage.surface.expression import Tree
from klineage.surface.tree import Unit, parse_kernel
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
    from klineage.proposer.rules.triton.code import jit_functions, launches, value_of
    from klineage.surface.lists import elements

    found: dict[str, int] = {}
    contradicted: set[str] = set()

    def told(name: str, value: int) -> None:
        if found.setdefault(name, value) != value:
            contradicted.add(name)

    for function in jit_functions(unit):
        for name, value in autotune.pinned(kernel, function):
            told(name, value)
        for launch in launches(unit, function.name):
            for node in elements(launch.arguments):
                named = node.child_by_field_name("name") if node.type == "keyword_argument" else None
                written = value_of(node) if named is not None else None
                if named is not None and written is not None and written.type == "integer":
                    told(unit.text(named), int(unit.text(written).replace("_", ""), 0))
    return {name: value for name, value in found.items() if name not in contradicted}
