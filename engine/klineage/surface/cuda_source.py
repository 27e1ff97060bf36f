"""What a CUDA file says outside its functions' bodies: integer constants, and the parameters of functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.surface.expression import NotAnExpression, Tree, parse_expression
from klineage.surface.tree import Function, Unit, walk

_INTEGERS = re.compile(r"\b(int|unsigned|long|short|size_t|u?int(8|16|32|64)_t|auto)\b")
_DEFINE = re.compile(r"-D(\w+)=(.+)")

Parameter = tuple[str, str, bool]  # (name, type such as "float *" or "int64_t", const)


def constants(unit: Unit, flags: tuple[str, ...] = ()) -> dict[str, Tree]:
    """Integer constants of the file by name: ``#define``, ``constexpr``, ``const``, enumerators, ``-D``.

    One that has two different values (under ``#if``, say) is none.
    """
    found: dict[str, Tree] = {}
    contradicted: set[str] = set()
    for name, text in [*_constant_texts(unit), *(m.groups() for m in map(_DEFINE.fullmatch, flags) if m)]:
        try:
            tree = parse_expression(text)
        except NotAnExpression:
            continue  # a macro that is no integer is not ours to read
        if found.setdefault(name, tree) != tree:
            contradicted.add(name)
    return {name: tree for name, tree in found.items() if name not in contradicted}


def _constant_texts(unit: Unit) -> Iterator[tuple[str, str]]:
    for node in walk(unit.root):
        if node.type in ("preproc_def", "enumerator"):
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None:
                yield unit.text(name), unit.text(value).split("//")[0].strip()
        elif node.type == "declaration" and _is_constant(unit, node):
            for declarator in node.named_children:
                name, value = (
                    declarator.child_by_field_name("declarator"),
                    declarator.child_by_field_name("value"),
                )
                if name is not None and name.type == "identifier" and value is not None:
                    yield unit.text(name), unit.text(value)


def _is_constant(unit: Unit, node: Node) -> bool:
    type_ = node.child_by_field_name("type")
    at_file_scope = node.parent is not None and node.parent.type != "compound_statement"
    words = {unit.text(c) for c in node.children if c.type == "type_qualifier"}
    return (
        at_file_scope
        and bool(words & {"constexpr", "const"})
        and type_ is not None
        and bool(_INTEGERS.search(unit.text(type_)))
    )


def parameters(unit: Unit, function: Function) -> tuple[Parameter, ...]:
    """A function's parameters, with the file's own type names resolved."""
    aliases = _aliases(unit)
    declarator = next((n for n in walk(function.definition) if n.type == "function_declarator"), None)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    nodes = (
        [n for n in listed.named_children if n.type == "parameter_declaration"] if listed is not None else []
    )
    found = [_parameter(unit, node, aliases) for node in nodes]
    return tuple(p for p in found if p[0] or p[1] != "void")


def _parameter(unit: Unit, node: Node, aliases: dict[str, str]) -> Parameter:
    declarator, type_node = node.child_by_field_name("declarator"), node.child_by_field_name("type")
    parts = list(walk(declarator)) if declarator is not None else []
    depth = sum(n.type in ("*", "&", "[") for n in parts)
    name = next((unit.text(n) for n in parts if n.type == "identifier"), "")
    base = " ".join(unit.text(type_node).split()) if type_node is not None else ""
    for _ in range(4):  # an alias of an alias of an alias; a cycle ends here
        base = aliases.get(base, base)
    const = any(c.type == "type_qualifier" and unit.text(c) == "const" for c in node.children)
    return name, base + (" " + "*" * depth if depth else ""), const


def _aliases(unit: Unit) -> dict[str, str]:
    found = {}
    for node in walk(unit.root):
        name, type_ = node.child_by_field_name("name"), node.child_by_field_name("type")
        if node.type == "type_definition":
            name = node.child_by_field_name("declarator")
        if node.type in ("alias_declaration", "type_definition") and name is not None and type_ is not None:
            found[unit.text(name)] = " ".join(unit.text(type_).split())
    return found
