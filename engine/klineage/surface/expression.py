"""Small integer expressions over named values, as data: parsed here, evaluated where a kernel is launched.

A tree is a number, a name, or ``[operator, operand, ...]``. Nothing but arithmetic can be said in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

Tree = int | float | str | list["Tree"]

_LONGEST = 2000
_SUFFIXED = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)(?:[uU][lL]{0,2}|[lL]{1,2}[uU]?)\b")
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "//", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_CALLS = {"cdiv": (2, 2), "min": (2, 8), "max": (2, 8)}
_SIZES = {
    "char": 1, "int8_t": 1, "uint8_t": 1, "bool": 1, "__nv_fp8_e4m3": 1, "__nv_fp8_e5m2": 1,
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2, "short": 2, "int16_t": 2, "uint16_t": 2,
    "half2": 4, "__half2": 4, "__nv_bfloat162": 4, "float": 4, "int": 4, "unsigned": 4, "int32_t": 4, "uint32_t": 4,
    "double": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8, "float2": 8, "int2": 8, "uint2": 8,
    "float4": 16, "int4": 16, "uint4": 16, "double2": 16,
}  # fmt: skip


class NotAnExpression(ValueError):
    """The text is no expression of the kind allowed here. The message says what is wrong with it."""


def parse_expression(text: str) -> Tree:
    """``cdiv(n, 128) * 2`` as ``["*", ["cdiv", "n", 128], 2]``. ``/`` divides integers, rounding down.

    Allowed: numbers, names, + - * / // % << >>, comparisons, and/or/not, ``a if c else b``, cdiv, min, max,
    sizeof(type). Raises NotAnExpression.
    """
    if len(text) > _LONGEST:
        raise NotAnExpression(f"has {len(text):,} characters, more than any launch needs")
    try:
        return _tree(ast.parse(_SUFFIXED.sub(r"\1", text.strip()), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, NotAnExpression):
            raise
        raise NotAnExpression(f"{_short(text)!r} is not an expression") from error


def names_of(tree: Tree) -> Iterator[str]:
    """Every name that a tree needs a value for."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, list):
        for operand in tree[1:]:
            yield from names_of(operand)


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Constant(value=bool() as value):
            return int(value)
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return name
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            return [_BINARY[type(operator)], _tree(left), _tree(right)]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ["-", 0, _tree(operand)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ["==", _tree(operand), 0]
        case ast.BoolOp(op=joined, values=values):
            return ["and" if isinstance(joined, ast.And) else "or", *map(_tree, values)]
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARED:
            return [_COMPARED[type(operator)], _tree(left), _tree(right)]
        case ast.IfExp(test=test, body=body, orelse=other):
            return ["if", _tree(test), _tree(body), _tree(other)]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, arguments)
    raise NotAnExpression(f"{_short(ast.unparse(node))!r} is not allowed in an expression")


def _call(name: str, arguments: list[ast.expr]) -> Tree:
    if name == "sizeof" and len(arguments) == 1:
        type_ = ast.unparse(arguments[0])
        if type_ not in _SIZES:
            raise NotAnExpression(f"the size of {_short(type_)} is not known here; write the number")
        return _SIZES[type_]
    least, most = _CALLS.get(name, (1, 0))
    if not least <= len(arguments) <= most:
        raise NotAnExpression(
            f"{name}() with {len(arguments)} arguments is not known; known are cdiv, min, max, sizeof"
        )
    return [name, *map(_tree, arguments)]


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
