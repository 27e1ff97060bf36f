"""Cache blocking: loops over blocks that fit a cache become one sweep over the whole problem."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import (
    dead_macros,
    defines,
    macro_line,
    macro_text,
    macros_added,
    without_double_blanks,
)
from klineage.proposer.rules.c.reduction import block_reduction
from klineage.proposer.rules.c.zeroing import ZERO, substituted
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, parse_kernel, walk

_APART = "apart"  # the sizes are defined in a group of their own, below a blank line


@dataclass(frozen=True)
class _Block:
    """``for (v = 0; v < extent; v += size) { length = smaller(size, extent - v); ... }``."""

    variable: str
    size: str
    extent: str
    length: str
    loop: Node
    rest: tuple[Node, ...]  # the body after the length's declaration

    @property
    def spelled(self) -> str:
        return f"{self.size} of {self.extent} as {self.length}"


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in unit.functions:
        blocks = _blocks(unit, function)
        if blocks:
            settings = {b.variable: b.spelled for b in blocks}
            dead = dead_macros(unit, [_whole(unit, blocks[0])])
            for name, node in sorted(dead.items(), key=lambda item: item[1].start_byte):
                settings[f"define.{name}"] = macro_text(unit, node)
            if dead and _apart(unit, [macro_line(unit, node) for node in dead.values()]):
                settings[_APART] = "yes"
            feature = Feature(function.locus, "cache_block")
            sites.append(Site(function.locus, (feature,), settings))
    return tuple(sites)


def _apart(unit: Unit, lines: list[Edit]) -> bool:
    """Whether the sizes stand in one group, with a blank line above it."""
    groups = without_double_blanks(unit, _with_comments(unit, lines))
    start = groups[0].start
    above = unit.source[unit.line_start(start - 1) : start] if start else b"code"
    return len(groups) == 1 and not above.strip()


def _whole(unit: Unit, block: _Block) -> Edit:
    return Edit(*unit.lines_of(block.loop))


def _blocks(unit: Unit, function: Function) -> list[_Block]:
    """The function's blocked loops, outermost first."""
    found = [_block(unit, node) for node in walk(function.body) if node.type == "for_statement"]
    return [block for block in found if block is not None]


def _block(unit: Unit, loop: Node) -> _Block | None:
    head = [loop.child_by_field_name(f) for f in ("initializer", "condition", "update")]
    body = loop.child_by_field_name("body")
    if None in head or body is None or body.type != "compound_statement":
        return None
    start, bound, advance = (re.sub(r"\s+", " ", unit.text(n)) for n in head if n is not None)
    begins = re.fullmatch(r"[\w ]*?\b(\w+) = 0;", start)
    ends, steps = re.fullmatch(r"(\w+) < (\w+)", bound), re.fullmatch(r"(\w+) \+= (\w+)", advance)
    if begins is None or ends is None or steps is None or {begins[1], ends[1], steps[1]} != {begins[1]}:
        return None
    variable, extent, size = begins[1], ends[2], steps[2]
    statements = [c for c in body.named_children if c.type != "comment"]
    length = _length(unit, statements[0], f"{extent} - {variable}", size) if statements else None
    if length is None or size not in defines(unit):
        return None
    return _Block(variable, size, extent, length, loop, tuple(statements[1:]))


def _length(unit: Unit, statement: Node, left: str, size: str) -> str | None:
    """The name in ``length = smaller(size, extent - v)``, or of the same with ``? :``."""
    declarator = statement.child_by_field_name("declarator") if statement.type == "declaration" else None
    value = declarator.child_by_field_name("value") if declarator is not None else None
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if value is None or name is None or value.type not in ("call_expression", "conditional_expression"):
        return None
    text = unit.text(value)
    return unit.text(name) if left in text and re.search(rf"\b{size}\b", text) else None


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    blocks = _blocks(unit, function) if function is not None else []
    if function is None or not blocks:
        raise NotApplicable("no loop over blocks here")
    for outer, inner in pairwise(blocks):
        if outer.rest != (inner.loop,):
            raise NotApplicable(
                f"the loop over {outer.variable} does more than to hold the next: unpack first"
            )
    values = {b.variable: ZERO for b in blocks} | {b.length: b.extent for b in blocks}
    indent = unit.indent(blocks[0].loop.start_byte)
    text = b""
    for statement in blocks[-1].rest:
        own = unit.indent(statement.start_byte)
        lines = (own.decode() + substituted(unit, statement, values)).encode("utf-8", "surrogateescape")
        moved = [indent + s[len(own) :] if s.startswith(own) else s for s in lines.splitlines(keepends=True)]
        text += b"".join(moved) + unit.newline(statement.end_byte)
    start, end = unit.lines_of(blocks[0].loop)
    edits = [Edit(start, end, text)]
    dead = [macro_line(unit, node) for node in dead_macros(unit, edits).values()]
    return Rewrite(merge_edits(edits, without_double_blanks(unit, _with_comments(unit, dead))))


def _with_comments(unit: Unit, lines: list[Edit]) -> list[Edit]:
    """Runs of macro lines together with the comment above."""
    edits = []
    for edit in merge_edits(lines):
        before = unit.source[: edit.start]
        comment = re.search(rb"(?:^[ \t]*/\*[^\n]*\*/[ \t]*\r?\n|^[ \t]*//[^\n]*\n)+\Z", before, re.MULTILINE)
        edits.append(Edit(comment.start() if comment else edit.start, edit.end))
    return edits


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """Block every sweep that the settings name: over rows or columns by its loop, over a sum by its calls."""
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    macros = {n.removeprefix("define."): v for n, v in settings.items() if n.startswith("define.")}
    blocks = [(n, _parsed(v)) for n, v in settings.items() if not n.startswith("define.") and n != _APART]
    nest = (
        next((n for n in function.body.named_children if n.type == "for_statement"), None)
        if function
        else None
    )
    if function is None or nest is None or not blocks:
        raise NotApplicable("no loop nest to block here")
    edits: list[Edit] = []
    sums = [(v, extent, length) for v, (_, extent, length) in blocks if _sweep(unit, nest, extent) is None]
    summed: list[Edit] = []
    operands: list[Node] = []
    for variable, extent, length in sums:
        made, moved = block_reduction(unit, nest, variable, extent, length)
        summed += made
        operands += moved
    for variable, (_, extent, length) in blocks:
        swept = _sweep(unit, nest, extent)
        if swept is not None:
            edits += _offset(unit, nest, swept, (variable, extent, length), operands)
    edits += summed  # behind the block's corner
    start, end = unit.lines_of(nest)
    inner = apply_edits(unit.source[start:end], [Edit(e.start - start, e.end - start, e.text) for e in edits])
    text = _nested(unit, nest, inner, blocks)
    return (*_sizes(unit, macros, apart=_APART in settings), Edit(start, end, text))


def _sizes(unit: Unit, macros: Mapping[str, str], *, apart: bool) -> list[Edit]:
    """The sizes of the blocks, defined again: in a group behind the last macro, or where they are spoken of."""
    known = sorted(defines(unit).values(), key=lambda n: n.start_byte)
    if not apart or not known or any(name in defines(unit) for name in macros):
        return macros_added(unit, macros)
    at = unit.line_end(known[-1].start_byte)
    newline = unit.newline(at - 1)
    lines = [f"#define {name} {value}".encode("utf-8", "surrogateescape") for name, value in macros.items()]
    return [Edit(at, at, newline + b"".join(line + newline for line in lines))]


def _parsed(spelled: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"(\w+) of (\w+) as (\w+)", spelled)
    if match is None:
        raise NotApplicable(f"not a block: {spelled!r}")
    return match[1], match[2], match[3]


def _sweep(unit: Unit, nest: Node, extent: str) -> str | None:
    """The variable of the loop in the nest that runs up to the extent."""
    for node in walk(nest):
        condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
        match = (
            re.fullmatch(rf"(\w+)\s*<\s*{extent}", unit.text(condition)) if condition is not None else None
        )
        if match:
            return match[1]
    return None


def _offset(
    unit: Unit, nest: Node, swept: str, block: tuple[str, str, str], operands: list[Node]
) -> list[Edit]:
    """Bounds of the loop become the block's; other uses of its variable are moved by the block's start.

    What the sum reads starts at the block's corner: ``x + ic * k + ir * k``; the rest counts on: ``(ic + ir) * n``.
    """
    variable, extent, length = block
    edits = []
    for node in walk(nest):
        if node.type != "identifier" or unit.text(node) not in (swept, extent) or node.parent is None:
            continue
        whole = re.sub(r"\s+", " ", unit.text(node.parent))
        operand = next((o for o in operands if o.start_byte <= node.start_byte < o.end_byte), None)
        if unit.text(node) == extent and whole in (f"{extent} - {swept}", f"{swept} < {extent}"):
            edits.append(Edit(node.start_byte, node.end_byte, length.encode("utf-8", "surrogateescape")))
        elif unit.text(node) == swept and operand is not None and (corner := _base(operand)) is not None:
            term = unit.text(node.parent if "*" in whole else node)
            moved = re.sub(rf"\b{swept}\b", variable, term)
            edits.append(Edit(corner, corner, f" + {moved}".encode("utf-8", "surrogateescape")))
        elif unit.text(node) == swept and node.parent.type == "binary_expression":
            sign = node.parent.child_by_field_name("operator")
            operator = unit.text(sign) if sign is not None else ""
            if operator in ("+", "*"):
                text = f"{variable} + {swept}" if operator == "+" else f"({variable} + {swept})"
                edits.append(Edit(node.start_byte, node.end_byte, text.encode("utf-8", "surrogateescape")))
    return edits


def _base(operand: Node) -> int | None:
    """The end of the pointer that an operand ``x + row * k`` starts from."""
    node = operand
    while node.type == "binary_expression":
        left = node.child_by_field_name("left")
        if left is None:
            return None
        node = left
    return node.end_byte if node.type == "identifier" and node != operand else None


def _nested(unit: Unit, nest: Node, inner: bytes, blocks: list[tuple[str, tuple[str, str, str]]]) -> bytes:
    """The nest inside a loop for every block, each with its length."""
    indent, newline = unit.indent(nest.start_byte), unit.newline(nest.start_byte)
    smaller = unit.function("smaller") is not None
    lines: list[bytes] = []
    closing: list[bytes] = []
    for depth, (variable, (size, extent, length)) in enumerate(blocks):
        pad = indent + b"    " * depth
        left = f"{extent} - {variable}"
        least = f"smaller({size}, {left})" if smaller else f"{left} < {size} ? {left} : {size}"
        lines.append(
            pad
            + f"for (int64_t {variable} = 0; {variable} < {extent}; {variable} += {size}) {{".encode(
                "utf-8", "surrogateescape"
            )
        )
        lines.append(pad + f"    int64_t {length} = {least};".encode("utf-8", "surrogateescape"))
        closing.insert(0, pad + b"}")
    head = b"".join(line + newline for line in lines)
    moved = b"".join(b"    " * len(blocks) + line for line in inner.splitlines(keepends=True))
    return head + moved + b"".join(line + newline for line in closing)


CACHE_BLOCK = Rule(
    name="cache-block",
    action="cache_block",
    surface="c",
    title="Sweep the whole problem instead of blocks",
    adds="Block for the caches",
    at="The loops over the whole problem, around what is computed for a part of it",
    rationale="Loops over blocks keep a part of each operand in a cache while everything that needs it is computed; "
    "one sweep reads each operand again from memory for every row or column.",
    preconditions=(
        "Storage: the block of each operand fits in the cache that it is meant for, beside what streams through.",
        "Layout: partial blocks at the edges are shortened, for no size divides every shape.",
        "Pipeline: a blocked sum is added up over the blocks, so the first block stores and the others add.",
        "Hardware: caches of which each level is faster and smaller than the next.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("layout_pack",),
    known={
        "Storage": Known(change="setting", settings={"name": "*", "value": "x16"}),
    },
)
