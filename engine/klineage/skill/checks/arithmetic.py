"""The operators of checks: bounded, and with a reason where a target gives no value."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

Value = bool | int | float | str
MOST_BITS = 256  # of a number on the way


class Doubt(Exception):
    """The target does not give the expression a value. The message says what is missing, in one sentence."""


def bounded(value: Any) -> Value:
    """The value itself. Raises Doubt for what is too large, or neither number, text nor truth."""
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and value.bit_length() <= MOST_BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise Doubt("a number on the way is too large, or no real number")


def number(value: Any) -> int | float:
    """The value itself. Raises Doubt for what cannot be computed with."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Doubt(f"{value!r} is no number, so nothing can be computed with it")
    return value


def whole(value: Any) -> int:
    """The value itself. Raises Doubt for what is no integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Doubt(f"{value!r} is no whole number")
    return value


def arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Value]:
    """An operation on two numbers whose result is bounded, and that has no value where it divides by zero."""

    def computed(left: Any, right: Any) -> Value:
        try:
            return bounded(compute(number(left), number(right)))
        except ZeroDivisionError:
            raise Doubt(f"it divides {left} by zero on this target") from None
        except (OverflowError, ValueError) as error:
            raise Doubt(f"a number on the way cannot be computed ({error})") from error

    return computed


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > MOST_BITS or (isinstance(base, int) and base.bit_length() * abs(exponent) > MOST_BITS):
        raise Doubt("a power on the way is too large")
    return base**exponent


def _shift(sign: int) -> Callable[[Any, Any], Any]:
    def shifted(value: Any, by: Any) -> Any:
        if not 0 <= whole(by) <= MOST_BITS:
            raise Doubt("a shift on the way is too large, or negative")
        return whole(value) << by if sign > 0 else whole(value) >> by

    return shifted


def _alike(left: Any, right: Any) -> None:
    """Raises Doubt for a comparison that is always false, or has no order, because of a slip of the author."""
    kinds = {type(v) if isinstance(v, (bool, str)) else float for v in (left, right)}
    if len(kinds) > 1:
        raise Doubt(f"{left!r} and {right!r} are of different kinds and cannot be compared")


def _compared(compare: Callable[[Any, Any], bool], *, ordered: bool) -> Callable[[Any, Any], bool]:
    def compared(left: Any, right: Any) -> bool:
        _alike(left, right)
        if ordered:
            number(left)
        return compare(left, right)

    return compared


def _among(value: Any, listed: tuple[Any, ...]) -> bool:
    for other in listed:
        _alike(value, other)
    return value in listed


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: arithmetic(lambda a, b: a + b),
    ast.Sub: arithmetic(lambda a, b: a - b),
    ast.Mult: arithmetic(lambda a, b: a * b),
    ast.Div: arithmetic(lambda a, b: a / b),
    ast.FloorDiv: arithmetic(lambda a, b: a // b),
    ast.Mod: arithmetic(lambda a, b: a % b),
    ast.Pow: arithmetic(_power),
    ast.LShift: arithmetic(_shift(1)),
    ast.RShift: arithmetic(_shift(-1)),
    ast.USub: lambda a: -number(a),
    ast.UAdd: lambda a: +number(a),
    ast.Eq: _compared(lambda a, b: a == b, ordered=False),
    ast.NotEq: _compared(lambda a, b: a != b, ordered=False),
    ast.Lt: _compared(lambda a, b: a < b, ordered=True),
    ast.LtE: _compared(lambda a, b: a <= b, ordered=True),
    ast.Gt: _compared(lambda a, b: a > b, ordered=True),
    ast.GtE: _compared(lambda a, b: a >= b, ordered=True),
    ast.In: _among,
    ast.NotIn: lambda value, listed: not _among(value, listed),
}
