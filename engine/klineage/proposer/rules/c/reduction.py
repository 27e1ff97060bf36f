"""Blocking a sum that is computed by calls: their operands start later, their results are added up."""

from __future__ import annotations

import re

from tree_sitter import Node

from klineage.proposer.rules.c.code import arguments, macro_text
from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.tree import Edit, Function, Unit, walk


def block_reduction(
    unit: Unit, nest: Node, variable: str, extent: str, length: str
) -> tuple[list[Edit], list[Node]]:
    """The edits that let the calls in a nest sum one block of ``extent``, from ``variable`` on; and the operands.

    A call takes part when it passes the extent to a parameter that bounds a loop of the called function:
    it gets the block's length, and the pointers that this loop advances get the block's start. A flag that
    chooses between storing and adding becomes true for the first block only. Raises NotApplicable.
    """
    edits: list[Edit] = []
    operands: list[Node] = []
    summing, adding = False, False
    for call in (n for n in walk(nest) if n.type == "call_expression"):
        name = call.child_by_field_name("function")
        called = unit.function(unit.text(name)) if name is not None else None
        if called is None:
            continue
        parameters, given = _parameters(unit, called), arguments(call)
        for parameter, argument in zip(parameters, given, strict=False):
            text = unit.text(argument)
            loop = _bounded_loop(unit, called, parameter) if text == extent else None
            if loop is not None:
                summing = True
                edits.append(
                    Edit(argument.start_byte, argument.end_byte, length.encode("utf-8", "surrogateescape"))
                )
                moved = _later(unit, called, loop, dict(zip(parameters, given, strict=False)))
                operands += [argument for argument, _ in moved]
                edits += [_begun(argument, f" + {variable}{stride}") for argument, stride in moved]
            if text == "1" and _chooses(unit, called, parameter):
                adding = True
                edits.append(
                    Edit(
                        argument.start_byte,
                        argument.end_byte,
                        f"{variable} == 0".encode("utf-8", "surrogateescape"),
                    )
                )
    if not (summing and adding):
        raise NotApplicable(f"no calls sum over {extent} and add up what they find")
    return edits, operands


def _begun(argument: Node, text: str) -> Edit:
    """The start of the block behind the pointer that an argument ``x + row * k`` begins with."""
    pointer = argument
    while pointer.type == "binary_expression" and (left := pointer.child_by_field_name("left")) is not None:
        pointer = left
    at = pointer.end_byte
    return Edit(at, at, text.encode("utf-8", "surrogateescape"))


def _parameters(unit: Unit, function: Function) -> list[str]:
    declarator = function.definition.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    listing = declarator.child_by_field_name("parameters") if declarator is not None else None
    names = []
    for node in listing.named_children if listing is not None else ():
        found = [n for n in walk(node) if n.type == "identifier"]
        names.append(unit.text(found[-1]) if found else "")
    return names


def _bounded_loop(unit: Unit, function: Function, parameter: str) -> Node | None:
    """The loop of a function that runs up to a parameter."""
    for node in walk(function.body):
        condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
        if condition is not None and re.fullmatch(rf"\w+\s*<\s*{parameter}", unit.text(condition)):
            return node
    return None


def _later(unit: Unit, called: Function, loop: Node, given: dict[str, Node]) -> list[tuple[Node, str]]:
    """Every pointer argument that the loop advances, with the factor by which the block's start moves it."""
    found = []
    for pointer, step in _advanced(unit, loop).items():
        origin = _origin(unit, called, pointer)
        if origin in given:
            found.append((given[origin], "" if step == "1" else f" * {step}"))
    return found


def _advanced(unit: Unit, loop: Node) -> dict[str, str]:
    """Pointers that ``p += step`` moves directly in the loop's body, with the step; macros that are 1 read 1."""
    body = loop.child_by_field_name("body")
    found = {}
    for statement in body.named_children if body is not None else ():
        match = re.fullmatch(r"(\w+)\s*\+=\s*(\w+);", unit.text(statement))
        if match:
            found[match[1]] = "1" if _is_one(unit, match[2]) else match[2]
    return found


def _is_one(unit: Unit, text: str) -> bool:
    """Whether products and quotients of macros and numbers make 1."""
    macros = {}
    for node in walk(unit.root):
        name = node.child_by_field_name("name") if node.type == "preproc_def" else None
        if name is not None:
            macros[unit.text(name)] = macro_text(unit, node)
    for _ in range(8):  # macros that speak of macros
        text = re.sub(r"[A-Za-z_]\w*", lambda m: macros.get(m[0], m[0]), text)
    parts = re.findall(r"\d+|[*/]|\w+", text)
    value = 1.0
    for sign, part in zip(["*", *parts[1::2]], parts[::2], strict=False):
        if not part.isdigit():
            return False
        value = value * int(part) if sign == "*" else value / int(part)
    return value == 1


def _origin(unit: Unit, function: Function, pointer: str) -> str:
    """The parameter that a local pointer starts from, or the name itself."""
    match = re.search(rf"\b{pointer}\s*=\s*(\w+)\s*;", unit.text(function.body))
    return match[1] if match else pointer


def _chooses(unit: Unit, function: Function, parameter: str) -> bool:
    """Whether ``parameter ? 0 : ...`` decides between storing and adding."""
    pattern = rf"\b{parameter}\s*\?\s*0(?:\.0f?)?\s*:"
    return re.search(pattern, unit.text(function.body)) is not None
