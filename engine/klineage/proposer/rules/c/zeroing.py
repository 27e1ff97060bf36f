"""Expressions in which some names become zero and others are renamed, simplified on the way."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.surface.tree import Unit, walk

ZERO = "0"


def substituted(unit: Unit, node: Node, values: Mapping[str, str]) -> str:
    """The text of a node with names replaced; sums and products that meet ``"0"`` are simplified.

    What mentions none of the names keeps its exact text.
    """
    if node.type == "identifier":
        return values.get(unit.text(node), unit.text(node))
    if not any(n.type == "identifier" and unit.text(n) in values for n in walk(node)):
        return unit.text(node)
    if node.type == "parenthesized_expression" and len(node.named_children) == 1:
        inner = substituted(unit, node.named_children[0], values)
        return inner if inner.isidentifier() or inner == ZERO else f"({inner})"
    if node.type == "binary_expression":
        simpler = _binary(unit, node, values)
        if simpler is not None:
            return simpler
    return _rebuilt(unit, node, values)


def _binary(unit: Unit, node: Node, values: Mapping[str, str]) -> str | None:
    """The simplified text of ``left op right`` when one side is zero, else None."""
    sides = [node.child_by_field_name(field) for field in ("left", "right")]
    sign = node.child_by_field_name("operator")
    if sides[0] is None or sides[1] is None or sign is None:
        return None
    left, right = (substituted(unit, side, values) for side in sides if side is not None)
    operator = unit.text(sign)
    if operator == "*" and ZERO in (left, right):
        return ZERO
    if operator == "+" and left == ZERO:
        return right
    if operator in ("+", "-") and right == ZERO:
        return left
    if operator == "==" and left == right == ZERO:
        return "1"
    return None


def _rebuilt(unit: Unit, node: Node, values: Mapping[str, str]) -> str:
    """The node with every child substituted and the text between them kept."""
    parts, position = [], node.start_byte
    for child in node.children:
        between = unit.source[position : child.start_byte].decode("utf-8", "surrogateescape")
        parts += [between, substituted(unit, child, values)]
        position = child.end_byte
    parts.append(unit.source[position : node.end_byte].decode("utf-8", "surrogateescape"))
    return "".join(parts)
