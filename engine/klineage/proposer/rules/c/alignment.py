"""Alignment: what the compiler is told of pointers, and how arrays are placed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import (
    arguments,
    body_start,
    calls,
    declarators,
    home,
    lines_inserted,
)
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, ancestors, merge_edits, parse_kernel, walk

_ALIGNED, _PLAIN = "aligned_alloc", "malloc"
_ROOM = "malloc()"  # the memory that a function asks for
_AGAIN = "again "  # the promise is an assignment of its own: x = __builtin_assume_aligned(x, 64);


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    settings: dict[str, str] = {}
    for call in _promises(unit):
        target, own = _target(unit, call)
        settings[f"{_function(unit, call.start_byte)}{target}"] = (_AGAIN if own else "") + _bytes(unit, call)
    for start, end in unit.array_alignments:
        name = _array(unit, start)
        if name is not None:
            text = unit.source[start:end].decode("utf-8", "surrogateescape")
            settings[f"{_function(unit, start)}{name}[]"] = re.sub(
                r".*\(\((.*)\)\)$", r"\1", text, flags=re.DOTALL
            )
    for call in _allocations(unit, _ALIGNED):
        key = f"{_function(unit, call.start_byte)}{_ROOM}"
        settings[key] = " ".join(filter(None, (settings.get(key), unit.text(arguments(call)[0]))))
    if not settings or not any(f.exported for f in unit.functions):
        return ()
    locus = home(unit)
    return (Site(locus, (Feature(locus, "alignment"),), settings),)


def _allocations(unit: Unit, name: str) -> list[Node]:
    """The calls that ask for memory, where the alignment has no white space in it."""
    if name == _PLAIN:
        return [c for c in calls(unit, unit.root, name) if len(arguments(c)) == 1]
    found = [c for c in calls(unit, unit.root, name) if len(arguments(c)) == 2]
    return [c for c in found if " " not in unit.text(arguments(c)[0])]


def _promises(unit: Unit) -> list[Node]:
    """The calls whose answer is assigned or initialises a name."""
    found = calls(unit, unit.root, "__builtin_assume_aligned")
    return [c for c in found if len(arguments(c)) == 2 and _target(unit, c)[0]]


def _target(unit: Unit, call: Node) -> tuple[str, bool]:
    """(name, whether the name is only assigned to itself); an empty name when the call stands elsewhere."""
    parent = call.parent
    if parent is not None and parent.type == "init_declarator":
        name = next((n for n in walk(parent) if n.type == "identifier"), None)
        return (unit.text(name) if name is not None else "", False)
    left = parent.child_by_field_name("left") if parent is not None else None
    if parent is None or left is None or parent.type != "assignment_expression" or left.type != "identifier":
        return "", False
    return unit.text(left), unit.text(left) == unit.text(arguments(call)[0])


def _bytes(unit: Unit, call: Node) -> str:
    return unit.text(arguments(call)[1])


def _function(unit: Unit, offset: int) -> str:
    inside = [f.name for f in unit.functions if f.node.start_byte <= offset < f.node.end_byte]
    return f"{inside[0]}." if inside else ""


def _array(unit: Unit, end: int) -> str | None:
    """The name of the array whose declarator ends at ``end``."""
    node = unit.root.descendant_for_byte_range(max(end - 1, 0), end)
    outer = (
        next((n for n in ancestors(node) if n.type == "array_declarator"), None) if node is not None else None
    )
    name = next((n for n in walk(outer) if n.type == "identifier"), None) if outer is not None else None
    return unit.text(name) if name is not None else None


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    if _needs_alignment(unit):
        raise NotApplicable(
            "vectors that are not declared unaligned are loaded from what would lose its alignment"
        )
    edits = [Edit(start, end) for start, end in unit.array_alignments]
    gone = []
    for call in _promises(unit):
        statement = call.parent.parent if call.parent is not None else None
        if _target(unit, call)[1] and statement is not None and statement.type == "expression_statement":
            gone.append(Edit(*unit.lines_of(statement)))
        else:
            pointer = arguments(call)[0]
            edits += [Edit(call.start_byte, pointer.start_byte), Edit(pointer.end_byte, call.end_byte)]
    for call in _allocations(unit, _ALIGNED):
        callee, size = call.child_by_field_name("function"), arguments(call)[1]
        if callee is not None:
            edits.append(Edit(callee.start_byte, size.start_byte, f"{_PLAIN}(".encode()))
    return Rewrite(merge_edits(edits, _with_blank_line(unit, gone)))


def _needs_alignment(unit: Unit) -> bool:
    """Whether an aligned vector type or an aligned intrinsic is in use."""
    types = [unit.text(n) for n in walk(unit.root) if n.type == "type_definition"]
    aligned = any("vector_size" in t and "aligned(" not in t for t in types)
    return aligned or re.search(rb"\b_mm\d*_(?:maskz?_)?(?:load|store|stream)_", unit.source) is not None


def _with_blank_line(unit: Unit, gone: list[Edit]) -> list[Edit]:
    """A run of deleted statements that opens a block takes the blank line after it along."""
    if not gone:
        return gone
    starts = {e.start for e in gone}
    result = []
    for edit in gone:
        end = unit.line_end(edit.end)
        first = gone[[e.start for e in gone].index(min(starts))]
        opens = unit.source[: first.start].rstrip().endswith(b"{")
        last = edit.end not in starts
        if opens and last and not unit.source[edit.end : end].strip() and end > edit.end:
            edit = Edit(edit.start, end)
        result.append(edit)
    return result


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    edits: list[Edit] = []
    again: dict[str, list[str]] = {}
    for key, value in settings.items():
        name = key.rpartition(".")[2]
        function = key.rpartition(".")[0]
        if value.startswith(_AGAIN):
            text = f"{name} = __builtin_assume_aligned({name}, {value.removeprefix(_AGAIN)});"
            again.setdefault(function, []).append(text)
        elif name == _ROOM:
            edits += _aligned_again(unit, function, value.split())
        elif name.endswith("[]"):
            at = _declared_array(unit, function, name[:-2])
            edits.append(Edit(at, at, f" __attribute__(({value}))".encode("utf-8", "surrogateescape")))
        else:
            pointer = _initial(unit, function, name)
            edits.append(Edit(pointer.start_byte, pointer.start_byte, b"__builtin_assume_aligned("))
            edits.append(
                Edit(pointer.end_byte, pointer.end_byte, f", {value})".encode("utf-8", "surrogateescape"))
            )
    for function, lines in again.items():
        found = unit.function(function)
        if found is None:
            raise NotApplicable(f"there is no function {function!r}")
        at = body_start(unit, found.node)
        added = lines_inserted(unit, at, found.node, lines, b"    ")
        edits.append(Edit(at, at, added.text + unit.newline(at)))
    if not edits:
        raise NotApplicable("the step records no alignment")
    return tuple(edits)


def _aligned_again(unit: Unit, function: str, alignments: list[str]) -> list[Edit]:
    inside = f"{function}." if function else ""
    found = [c for c in _allocations(unit, _PLAIN) if _function(unit, c.start_byte) == inside]
    if len(found) != len(alignments):
        raise NotApplicable(f"{function} asks {len(found)} times for memory, not {len(alignments)} times")
    edits = []
    for call, alignment in zip(found, alignments, strict=True):
        callee = call.child_by_field_name("function")
        if callee is not None:
            edits.append(Edit(callee.start_byte, callee.end_byte, _ALIGNED.encode()))
        at = arguments(call)[0].start_byte
        edits.append(Edit(at, at, f"{alignment}, ".encode("utf-8", "surrogateescape")))
    return edits


def _declared_array(unit: Unit, function: str, name: str) -> int:
    """The offset just after an array's declarator, where its attribute belongs."""
    for node in walk(unit.root):
        if node.type != "array_declarator" or f"{function}." * bool(function) != _function(
            unit, node.start_byte
        ):
            continue
        outer = node.parent is None or node.parent.type != "array_declarator"
        first = next((n for n in walk(node) if n.type == "identifier"), None)
        if outer and first is not None and unit.text(first) == name:
            return node.end_byte
    raise NotApplicable(f"there is no array {name!r}")


def _initial(unit: Unit, function: str, name: str) -> Node:
    """What a local pointer starts from."""
    found = unit.function(function)
    for local, node in declarators(found, unit) if found is not None else ():
        initial = next((n for n in ancestors(node) if n.type == "init_declarator"), None)
        value = initial.child_by_field_name("value") if initial is not None else None
        if local == name and value is not None:
            return value
    raise NotApplicable(f"{function} initialises no {name!r}")


ALIGNMENT = Rule(
    name="alignment-hints",
    action="alignment",
    surface="c",
    title="Drop alignment promises",
    adds="Promise alignment",
    at="Pointers and arrays that vectors are loaded from",
    rationale="The compiler is told how pointers and arrays are aligned, so that it may use aligned "
    "accesses; without that it must assume the least.",
    preconditions=(
        "Storage: the buffers really are aligned as promised, or aligned accesses fault.",
        "Layout: every row starts at an aligned address where the promise is made for rows.",
        "Hardware: aligned accesses, or accesses that stay within a cache line, are cheaper.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("simd",),
    known={
        "Storage": Known("alignment() >= vector_bytes", "misalign", {"buffer": "*", "bytes": "1"}),
        "Layout": Known("row_alignment() >= vector_bytes", "stride"),
    },
)
