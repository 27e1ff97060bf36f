"""The statements of a scalar loop written for vectors: with intrinsics, or with a vector type."""

from __future__ import annotations

import re

from tree_sitter import Node

from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.tree import Unit, walk

#: type of intrinsics -> (prefix, suffix)
LANES = {
    "__m128": ("_mm", "ps"), "__m256": ("_mm256", "ps"), "__m512": ("_mm512", "ps"),
    "__m128d": ("_mm", "pd"), "__m256d": ("_mm256", "pd"), "__m512d": ("_mm512", "pd"),
}  # fmt: skip
_OPERATIONS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_CALLS = {"fmaxf": "max", "fminf": "min", "fmax": "max", "fmin": "min", "sqrtf": "sqrt", "sqrt": "sqrt"}


def vector_body(unit: Unit, loop: Node, variable: str, kind: str, *, fused: bool) -> list[str]:
    """The statements of a loop's body for a vector of elements from ``variable`` on.

    Each must set an element of an array from elements at the same place and from values that are the same for all.
    Raises NotApplicable.
    """
    body = loop.child_by_field_name("body")
    inside = body.named_children if body is not None and body.type == "compound_statement" else [body]
    found = [n for n in inside if n is not None and n.type != "comment"]
    writer = _Writer(unit, variable, kind, fused)
    return [writer.statement(n) for n in found]


class _Writer:
    """Writes expressions for one kind of vector."""

    def __init__(self, unit: Unit, variable: str, kind: str, fused: bool) -> None:
        self.unit, self.variable, self.kind, self.fused = unit, variable, kind, fused
        self.prefix, self.suffix = LANES.get(kind, ("", ""))

    def statement(self, node: Node) -> str:
        inner = (
            node.named_children[0] if node.type == "expression_statement" and node.named_children else None
        )
        left = inner.child_by_field_name("left") if inner is not None else None
        right = inner.child_by_field_name("right") if inner is not None else None
        sign = inner.child_by_field_name("operator") if inner is not None else None
        if (
            left is None
            or right is None
            or sign is None
            or inner is None
            or inner.type != "assignment_expression"
        ):
            raise self._unknown(node)
        address, value = self._address(left), self.value(right)
        if address is None or not (self.prefix or self._varies(right)):
            raise self._unknown(left)
        if self.unit.text(sign) != "=":
            value = self._operation(self.unit.text(sign)[0], self.value(left), value)
        if self.prefix:
            return f"{self.prefix}_storeu_{self.suffix}({address}, {value});"
        return f"*({self.kind} *)({address}) = {value};"

    def value(self, node: Node) -> str:
        """A vector that holds what the expression is for each element."""
        if not self._varies(node):
            text = self.unit.text(node)
            return f"{self.prefix}_set1_{self.suffix}({text})" if self.prefix else text
        if node.type == "parenthesized_expression":
            inner = self.value(node.named_children[0])
            return inner if self.prefix else f"({inner})"
        if node.type == "subscript_expression":
            address = self._address(node)
            if address is None:
                raise self._unknown(node)
            return (
                f"{self.prefix}_loadu_{self.suffix}({address})"
                if self.prefix
                else f"*(const {self.kind} *)({address})"
            )
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator")
        if node.type == "binary_expression" and left is not None and right is not None and sign is not None:
            return self._binary(self.unit.text(sign), left, right)
        return self._call(node)

    def _binary(self, sign: str, left: Node, right: Node) -> str:
        sides = [n.named_children[0] if n.type == "parenthesized_expression" else n for n in (left, right)]
        if sign == "+" and self.fused and self.prefix:
            for product, other in (sides, sides[::-1]):
                factors = [product.child_by_field_name("left"), product.child_by_field_name("right")]
                star = (
                    product.child_by_field_name("operator") if product.type == "binary_expression" else None
                )
                if (
                    star is not None
                    and self.unit.text(star) == "*"
                    and factors[0] is not None
                    and factors[1] is not None
                ):
                    given = ", ".join(self.value(n) for n in (factors[0], factors[1], other))
                    return f"{self.prefix}_fmadd_{self.suffix}({given})"
        return self._operation(sign, self.value(left), self.value(right))

    def _operation(self, sign: str, left: str, right: str) -> str:
        if sign not in _OPERATIONS:
            raise NotApplicable(f"vectors have no operation {sign!r} here")
        if self.prefix:
            return f"{self.prefix}_{_OPERATIONS[sign]}_{self.suffix}({left}, {right})"
        return f"{left} {sign} {right}"

    def _call(self, node: Node) -> str:
        name = node.child_by_field_name("function") if node.type == "call_expression" else None
        listing = node.child_by_field_name("arguments")
        operation = _CALLS.get(self.unit.text(name)) if name is not None else None
        if operation is None or listing is None or not self.prefix:
            raise self._unknown(node)
        given = ", ".join(self.value(n) for n in listing.named_children)
        return f"{self.prefix}_{operation}_{self.suffix}({given})"

    def _address(self, node: Node) -> str | None:
        """``x + i`` of ``x[i]`` where neighbouring iterations take neighbouring elements."""
        base, index = node.child_by_field_name("argument"), node.child_by_field_name("index")
        if node.type != "subscript_expression" or base is None or index is None or self._varies(base):
            return None
        text = self.unit.text(index)
        terms = re.split(r" \+ ", text)
        others = [t for t in terms if t != self.variable]
        if len(terms) - len(others) != 1 or any(re.search(rf"\b{self.variable}\b", t) for t in others):
            return None
        return f"{self.unit.text(base)} + {text}"

    def _varies(self, node: Node) -> bool:
        return any(n.type == "identifier" and self.unit.text(n) == self.variable for n in walk(node))

    def _unknown(self, node: Node) -> NotApplicable:
        return NotApplicable(f"{self.unit.text(node)!r} has no form for vectors that is known here")
