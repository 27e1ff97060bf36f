"""Hints that the compiler cannot prove: divisibility, contiguity, and assumptions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    argument,
    delete_statements,
    enclosing_statement,
    jit_functions,
    parameters,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
)
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

HINTS = ("multiple_of", "max_contiguous", "max_constancy")
OF = " of "


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        settings = _hints(unit, function)
        if settings:
            sites.append(Site(function.locus, (Feature(function.locus, "alignment"),), settings))
    return tuple(sites)


def _hints(unit: Unit, function: Function) -> dict[str, str]:
    """The hints by how they stand: ``again.1`` (``x = hint(x)``), ``value.1`` (``x = hint(...)``),
    ``inside.1`` (within an expression): ``max_contiguous(multiple_of(_, 16), 16) of x``; and ``assume.1``.
    """
    found: dict[str, str] = {}
    for call in _outermost(unit, function):
        inner, pair = _hinted(unit, call), sides(enclosing_statement(call))
        if inner is None:
            continue
        kind, target = "inside", unit.text(inner)
        if pair is not None and pair[1] == call:
            kind, target = ("again" if unit.text(pair[0]) == target else "value"), unit.text(pair[0])
        found[_numbered(found, kind)] = f"{_shape(unit, call)}{OF}{target}"
    for call in tl_calls(unit, function.body, "assume"):
        found[_numbered(found, "assume")] = argument(unit, call, 0)
    return found


def _numbered(found: Mapping[str, str], kind: str) -> str:
    return f"{kind}.{1 + sum(key.startswith(f'{kind}.') for key in found)}"


def _outermost(unit: Unit, function: Function) -> list[Node]:
    calls = tl_calls(unit, function.body, *HINTS)
    inside = {inner.id for call in calls for inner in tl_calls(unit, call, *HINTS) if inner != call}
    return [c for c in calls if c.id not in inside and len(positional(c)) == 2]


def _hinted(unit: Unit, call: Node) -> Node | None:
    """The expression inside the hints."""
    current = call
    while tl_call(unit, current) in HINTS:
        given = positional(current)
        if not given:
            return None
        current = given[0]
    return current


def _shape(unit: Unit, call: Node) -> str:
    if tl_call(unit, call) not in HINTS:
        return "_"
    first, *rest = positional(call)
    return f"{tl_call(unit, call)}({', '.join([_shape(unit, first), *map(unit.text, rest)])})"


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    gone, edits = [enclosing_statement(c) for c in tl_calls(unit, function.body, "assume")], []
    for call in _outermost(unit, function):
        inner, statement = _hinted(unit, call), enclosing_statement(call)
        if inner is None:
            continue
        pair = sides(statement)
        bare = pair is None and statement.type == "expression_statement" and statement.children == [call]
        if bare or (pair is not None and pair[1] == call and unit.text(pair[0]) == unit.text(inner)):
            gone.append(statement)
        else:
            edits += [Edit(call.start_byte, inner.start_byte), Edit(inner.end_byte, call.end_byte)]
    return Rewrite(merge_edits(delete_statements(unit, gone), tuple(edits)))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None or not statements(function.body):
        raise NotApplicable("no such function")
    first = statements(function.body)[0]
    hints = {kind: _of_kind(settings, kind) for kind in ("assume", "again", "value", "inside")}
    assumed = b"".join(_line(unit, first, f"tl.assume({text})") for text in hints["assume"])
    edits = [Edit(first.start_byte, first.start_byte, assumed)] if assumed else []
    edits += _hinted_again(unit, function, [_parts(text) for text in hints["again"]])
    wrapped = [(_assigned(unit, function, name), hint) for hint, name in map(_parts, hints["value"])]
    wrapped += [(_expression(unit, function, text), hint) for hint, text in map(_parts, hints["inside"])]
    for node, hint in wrapped:
        before, after = _spell(hint, "\0").encode("utf-8", "surrogateescape").split(b"\0")
        edits += [Edit(node.start_byte, node.start_byte, before), Edit(node.end_byte, node.end_byte, after)]
    return tuple(edits)


def _of_kind(settings: Mapping[str, str], kind: str) -> list[str]:
    return [value for key, value in settings.items() if key.startswith(f"{kind}.")]


def _parts(text: str) -> tuple[str, str]:
    """(hint, what it is given to)."""
    hint, _, target = text.partition(OF)
    return hint, target


def _hinted_again(unit: Unit, function: Function, again: list[tuple[str, str]]) -> list[Edit]:
    """The assignments ``x = hint(x)``; those of one block stay together after the last definition there."""
    blocks: dict[int, list[str]] = {}
    last: dict[int, Node] = {}
    for hint, name in again:
        definition = _definition(unit, function, name)
        block = definition.parent.id if definition is not None and definition.parent is not None else 0
        blocks.setdefault(block, []).append(f"{name} = {_spell(hint, name)}")
        if definition is not None and (block not in last or definition.end_byte > last[block].end_byte):
            last[block] = definition
        elif definition is None and name not in parameters(unit, function):
            raise NotApplicable(
                f"{name!r} has no assignment of its own in the function, so it cannot be hinted"
            )
    edits = []
    for block, lines in blocks.items():
        node = last.get(block, statements(function.body)[0])
        at = unit.line_end(node.end_byte) if block in last else unit.line_start(node.start_byte)
        indent, newline = unit.indent(node.start_byte), unit.newline(node.start_byte)
        edits.append(
            Edit(
                at, at, b"".join(indent + line.encode("utf-8", "surrogateescape") + newline for line in lines)
            )
        )
    return edits


def _definition(unit: Unit, function: Function, name: str) -> Node | None:
    """The last plain assignment to ``name``: at the top of the function if there is one, else anywhere in it."""
    everywhere = [n for n in walk(function.body) if n.type == "expression_statement"]
    for candidates in (statements(function.body), everywhere):
        for statement in reversed(candidates):
            pair = sides(statement)
            if pair is not None and unit.text(pair[0]) == name:
                return statement
    return None


def _assigned(unit: Unit, function: Function, name: str) -> Node:
    definition = _definition(unit, function, name)
    pair = sides(definition) if definition is not None else None
    if pair is None:
        raise NotApplicable(f"{name!r} has no assignment of its own in the function, so it cannot be hinted")
    return pair[1]


def _expression(unit: Unit, function: Function, text: str) -> Node:
    """The first expression that reads as ``text``."""
    for node in walk(function.body):
        statement = node.type in ("block", "expression_statement")
        if node.is_named and not statement and " ".join(unit.text(node).split()) == " ".join(text.split()):
            return node
    raise NotApplicable(f"nothing reads {text!r} any more, so it cannot be hinted")


def _spell(hint: str, inner: str) -> str:
    """The hint as code, around ``inner``."""
    before, hole, after = re.sub(rf"\b({'|'.join(HINTS)})\(", r"tl.\1(", hint).partition("(_")
    if not hole:
        raise NotApplicable(f"not a hint: {hint!r}")
    return f"{before}({inner}{after}"


def _line(unit: Unit, before: Node, text: str) -> bytes:
    """A line to insert at the first character of a statement."""
    return (
        text.encode("utf-8", "surrogateescape")
        + unit.newline(before.start_byte)
        + unit.indent(before.start_byte)
    )


ALIGNMENT = Rule(
    name="alignment-hints",
    action="alignment",
    surface="triton",
    title="Drop alignment and contiguity hints",
    adds="Add alignment and contiguity hints",
    at="Where offsets and strides are computed, before they are used in loads and stores",
    rationale="multiple_of, max_contiguous and assume promise the compiler what it cannot prove, so that "
    "it may use wide accesses; without them it must believe the worst.",
    preconditions=(
        "Layout: what is promised holds for every program and every shape; a false promise reads the wrong "
        "elements.",
        "Data types: contiguous elements fill a wide access (16 bytes), or the promise changes nothing.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    known={
        "Data types": Known("row_alignment() >= 16", "misalign", {"buffer": "*", "bytes": "1"}),
    },
)
