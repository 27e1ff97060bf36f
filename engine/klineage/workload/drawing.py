"""How large the tensors are that a function makes, for any values of the names in it."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from typing import Any

from klineage.workload.constants import Unknown, assigned, evaluate

_FACTORIES = {"rand", "randn", "randint", "zeros", "ones", "empty", "full", "rand_mix"}


def largest(function: ast.FunctionDef, names: Mapping[str, Any]) -> int:
    """Elements of the largest tensor whose shape can be known; 0 when there is none."""
    return max((math.prod(shape) for shape in shapes(function, names)), default=0)


def shapes(function: ast.FunctionDef, names: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    """The shapes that are given to torch.rand and its like, where they can be known."""
    local = dict(names)
    for statement in function.body:
        _assign(statement, local)
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and _called(node) in _FACTORIES:
                shape = _shape(node, local)
                if shape is not None:
                    yield shape


def local_values(function: ast.FunctionDef, names: Mapping[str, Any]) -> dict[str, Any]:
    """The names that a function's last line sees, as far as their values are known."""
    local = dict(names)
    for statement in function.body:
        _assign(statement, local)
    return local


def _assign(statement: ast.stmt, local: dict[str, Any]) -> None:
    for name, node in assigned([statement]):
        try:
            local[name] = evaluate(node, local)
        except Unknown:
            local.pop(name, None)


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _shape(node: ast.Call, names: Mapping[str, Any]) -> tuple[int, ...] | None:
    """A sequence among the arguments, or else all of them."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "size")]
    try:
        values = evaluate(ast.Tuple(given, ast.Load()), names)
    except Unknown:
        return None
    shape = next((value for value in values if isinstance(value, tuple)), values)
    whole = all(isinstance(extent, int) and not isinstance(extent, bool) and extent >= 0 for extent in shape)
    return shape if whole else None


def returned(function: ast.FunctionDef) -> tuple[ast.expr, ...] | None:
    """What a function that ends with ``return [a, b]`` gives; None when it is not written so."""
    last = function.body[-1]
    node = last.value if isinstance(last, ast.Return) else None
    if isinstance(node, ast.Name):
        node = dict(assigned(function.body)).get(node.id)
    return tuple(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else None
