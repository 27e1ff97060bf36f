"""What a Python file's constants are, as far as they can be known without running it."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST = 64  # of a sequence
_MOST_BITS = 256  # of a number

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_CALLED: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "abs": abs, "int": int, "float": float, "len": len, "sum": sum,
    "math.ceil": math.ceil, "math.floor": math.floor, "math.prod": math.prod, "math.sqrt": math.sqrt,
}  # fmt: skip


class Unknown(Exception):
    """The value of an expression cannot be known without running the file."""


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression of numbers, texts, tuples and lists (both as tuples). Raises Unknown."""
    try:
        value = _value(node, names)
    except Unknown:
        raise
    except (ArithmeticError, TypeError, ValueError, IndexError, KeyError, RecursionError) as error:
        raise Unknown(str(error)) from error
    return value


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, (ast.Tuple, ast.List)):
        return _sequence(node.elts, names)
    if isinstance(node, ast.Compare):
        return _compared(node, names)
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, names) else node.orelse, names)
    if isinstance(node, ast.Subscript):
        return _value(node.value, names)[_value(node.slice, names)]
    return _computed(node, names)


def _computed(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand, names))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _binary(node.op, _value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.BoolOp):
        values = [_value(v, names) for v in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLED and not node.keywords:
        return _CALLED[ast.unparse(node.func)](*_sequence(node.args, names))
    raise Unknown(ast.unparse(node))


def _sequence(nodes: list[ast.expr], names: Mapping[str, Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found.extend(_value(node.value, names))
        else:
            found.append(_value(node, names))
    return tuple(found)


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    numbers = all(isinstance(v, (int, float)) for v in (left, right))
    if not numbers:
        count = right if isinstance(right, int) else left
        times = count if isinstance(op, ast.Mult) and isinstance(count, int) else 1
        if not isinstance(op, (ast.Add, ast.Mult)) or _length(left) * max(1, times) > _LONGEST:
            raise Unknown("an operation that is not on numbers")
    elif isinstance(op, ast.Pow) and abs(right) > _MOST_BITS:
        raise Unknown("a large power")
    value = _BINARY[type(op)](left, right)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise Unknown("a large number")
    return value


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (tuple, str)) else 1


def _compared(node: ast.Compare, names: Mapping[str, Any]) -> bool:
    left = _value(node.left, names)
    for op, right_node in zip(node.ops, node.comparators):
        right = _value(right_node, names)
        if type(op) not in _COMPARED:
            raise Unknown(ast.unparse(node))
        if not _COMPARED[type(op)](left, right):
            return False
        left = right
    return True


@dataclass(frozen=True)
class Constant:
    """One name at the top of a file: its expression, and the other constants that are in it."""

    name: str
    node: ast.expr
    uses: tuple[str, ...]


class Constants:
    """The constants at the top of a file, and what becomes of them when some get other values."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.values: dict[str, Any] = {}
        self._known: dict[str, Constant] = {}
        for name, node in assigned(body):
            try:
                self.values[name] = evaluate(node, self.values)
            except Unknown:
                self.values.pop(name, None)
                self._known.pop(name, None)
                continue
            used = dict.fromkeys(n for n in used_names(node) if n in self._known and n != name)
            self._known[name] = Constant(name, node, tuple(used))

    def plain(self, names: Iterator[str] | tuple[str, ...] | list[str]) -> list[str]:
        """Those constants that ``names`` come from, and that come from no other, in the file's order."""
        found: set[str] = set()
        left = [name for name in names if name in self._known]
        while left:
            constant = self._known[left.pop()]
            left.extend(constant.uses)
            if not constant.uses:
                found.add(constant.name)
        return [name for name in self._known if name in found]

    def derived(self, changed: set[str]) -> list[Constant]:
        """The constants that are computed from any of ``changed``, in the file's order."""
        touched, found = set(changed), []
        for constant in self._known.values():
            if touched & set(constant.uses):
                touched.add(constant.name)
                found.append(constant)
        return found

    def at(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Every value when the constants ``changed`` have these instead. Raises Unknown."""
        values = {**self.values, **changed}
        for constant in self.derived(set(changed)):
            values[constant.name] = evaluate(constant.node, values)
        return values


def assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Each name and the expression assigned to it, in order; ``a, b = 1, 2`` gives two."""
    for node in body:
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for part, value in zip(target.elts, node.value.elts):
                        if isinstance(part, ast.Name):
                            yield part.id, value


def used_names(node: ast.AST) -> list[str]:
    """The names that are read in a piece of a program, in order, each once."""
    names = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return list(dict.fromkeys(names))
