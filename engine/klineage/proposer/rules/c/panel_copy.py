"""A panel that is copied row by row, so that rows far apart lie one after the other, becomes reads of the rows themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import (
    arguments,
    body_start,
    calls,
    dead_items,
    deleted,
    deleted_item,
    home,
    innermost,
    node_at,
    place_of,
    without_double_blanks,
)
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_COPY = re.compile(r"(\w+)\[(\w+) \* (\w+) \+ (\w+)\] = (\w+)\[\2 \* (\w+) \+ \4\];")
PARTS = ("source", "lead", "depth", "width")


@dataclass(frozen=True)
class _Panel:
    """``copy(source, lead, depth, width, panel);`` with the function, the buffer and the arguments by part."""

    copier: Function
    name: str
    declaration: Node
    element: str
    size: str
    statement: Node
    parts: dict[str, str]


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    panel = _panel(unit)
    if panel is None or not any(f.exported for f in unit.functions):
        return ()
    around = unit.function_at(f"{unit.filename}::{innermost(unit, panel.statement)}")
    settings = {
        "function": panel.copier.name,
        "panel": panel.name,
        "element": panel.element,
        "size": panel.size,
        **panel.parts,
        "loop": innermost(unit, panel.statement),
        "above": around.name if around is not None else kernel.entry,
    }
    locus = home(unit)
    return (Site(locus, (Feature(locus, "layout_pack"),), settings),)


def _panel(unit: Unit) -> _Panel | None:
    """The only panel of the file: one function that copies, called once, into a buffer of the file."""
    found = [(f, order) for f in unit.functions if (order := _order(unit, f)) is not None]
    if len(found) != 1:
        return None
    copier, order = found[0]
    made = calls(unit, unit.root, copier.name)
    statement = made[0].parent if len(made) == 1 else None
    if statement is None or statement.type != "expression_statement":
        return None
    given = [unit.text(argument) for argument in arguments(made[0])]
    parts = {part: given[order[part]] for part in PARTS}
    declared = _buffer(unit, given[order["panel"]])
    if declared is None:
        return None
    declaration, element, size = declared
    return _Panel(copier, given[order["panel"]], declaration, element, size, statement, parts)


def _order(unit: Unit, function: Function) -> dict[str, int] | None:
    """Which parameter of a function that only copies plays which part."""
    declarator = function.definition.child_by_field_name("declarator")
    listing = next((n for n in walk(declarator) if n.type == "parameter_list"), None) if declarator else None
    names = [
        unit.text([n for n in walk(p) if n.type == "identifier"][-1])
        for p in (listing.named_children if listing is not None else ())
        if any(n.type == "identifier" for n in walk(p))
    ]
    writes = [n for n in walk(function.body) if n.type == "assignment_expression" and "[" in unit.text(n)]
    match = _COPY.fullmatch(f"{unit.text(writes[0])};") if len(writes) == 1 else None
    if match is None or len(names) != 5:
        return None
    known = {"panel": match[1], "width": match[3], "source": match[5], "lead": match[6]}
    rest = [name for name in names if name not in known.values()]
    if len(rest) != 1 or any(name not in names for name in known.values()):
        return None
    return {part: names.index(name) for part, name in {**known, "depth": rest[0]}.items()}


def _buffer(unit: Unit, name: str) -> tuple[Node, str, str] | None:
    """(declaration, element, size) of an array of the file."""
    for node in unit.root.named_children:
        match = (
            re.fullmatch(rf"static (\w+) {re.escape(name)}\[([^\]]+)\];", unit.text(node))
            if node.type == "declaration"
            else None
        )
        if match is not None:
            return node, match[1], match[2]
    return None


def pairs(unit: Unit, root: Node, first: str, second: str) -> list[tuple[Node, Node]]:
    """Two neighbouring arguments of a call with these texts, wherever they are passed below a node."""
    found = []
    for call in (n for n in walk(root) if n.type == "call_expression"):
        given = arguments(call)
        texts = [unit.text(argument) for argument in given]
        found += [
            (given[i], given[i + 1]) for i in range(len(given) - 1) if texts[i : i + 2] == [first, second]
        ]
    return found


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    panel = _panel(unit)
    if panel is None:
        raise NotApplicable("no panel is copied here")
    edits = [deleted_item(unit, panel.copier.node), deleted_item(unit, panel.declaration)]
    edits.append(deleted(unit, panel.statement))
    own = (panel.copier.node, panel.declaration, panel.statement)
    reads = [n for n in walk(unit.root) if n.type == "identifier" and unit.text(n) == panel.name]
    reads = [n for n in reads if not any(o.start_byte <= n.start_byte < o.end_byte for o in own)]
    found = pairs(unit, unit.root, panel.name, panel.parts["width"])
    if len(reads) != len(found):
        raise NotApplicable(f"{panel.name} is read in a way that is not 'panel, width' of a call")
    for pointer, step in found:
        edits += [_written(pointer, panel.parts["source"]), _written(step, panel.parts["lead"])]
    edits = list(merge_edits(edits))
    return Rewrite(without_double_blanks(unit, merge_edits(edits, dead_items(unit, edits))))


def _written(node: Node, text: str) -> Edit:
    return Edit(node.start_byte, node.end_byte, text.encode("utf-8", "surrogateescape"))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """The buffer and the function that copies, a call at the top of the loop, and reads of the panel."""
    unit = parse_kernel(kernel)
    part = {name: setting(settings, name) for name in (*PARTS, "function", "panel", "element", "size")}
    loop = node_at(unit, setting(settings, "loop"))
    above = unit.function(setting(settings, "above"))
    if above is None or unit.function(part["function"]) is not None:
        raise NotApplicable("no function to copy a panel for, or something is copied already")
    read = pairs(unit, loop, part["source"], part["lead"])
    if not read:
        raise NotApplicable(
            f"nothing in {place_of(unit, setting(settings, 'loop'))} is passed rows of {part['source']!r}"
        )
    edits = [_written(pointer, part["panel"]) for pointer, _ in read]
    edits += [_written(step, part["width"]) for _, step in read]
    given = ", ".join(part[name] for name in (*PARTS, "panel"))
    edits.append(_call(unit, loop, f"{part['function']}({given});"))
    at = _head(unit, above.node)
    newline = unit.newline(at)
    text = newline.join(line.encode("utf-8", "surrogateescape") for line in _text(part)) + newline
    return (*edits, Edit(at, at, text))


def _head(unit: Unit, node: Node) -> int:
    """The start of a function with the comment above it."""
    before = node.prev_named_sibling
    while (
        before is not None
        and before.type == "comment"
        and unit.line(before.end_byte) + 1 == unit.line(node.start_byte)
    ):
        node, before = before, before.prev_named_sibling
    return unit.line_start(node.start_byte)


def _call(unit: Unit, loop: Node, call: str) -> Edit:
    """A statement after the declarations at the top of a loop's body."""
    body, at = loop.child_by_field_name("body"), body_start(unit, loop)
    inside = body.named_children if body is not None else []
    for child in inside:
        if child.type not in ("declaration", "comment"):
            break
        at = unit.line_end(child.end_byte)
    return Edit(
        at, at, unit.indent(inside[0].start_byte) + call.encode("utf-8", "surrogateescape") + unit.newline(at)
    )


def _text(part: Mapping[str, str]) -> list[str]:
    name, element = part["function"], part["element"]
    return [
        f"static {element} {part['panel']}[{part['size']}];",
        "",
        f"static inline void {name}(const {element} *source, int64_t lead, int64_t depth, int64_t width,"
        f" {element} *panel)",
        "{",
        "    for (int64_t p = 0; p < depth; ++p)",
        "        for (int64_t j = 0; j < width; ++j)",
        "            panel[p * width + j] = source[p * lead + j];",
        "}",
        "",
    ]


PANEL_COPY = Rule(
    name="panel-copy",
    action="layout_pack",
    surface="c",
    title="Read rows that lie far apart, not a copy of them",
    adds="Copy a panel of rows to lie together",
    at="Where a loop over blocks first reads rows that it reads again",
    rationale="A panel that is copied once lies in lines one after the other, which L1 holds however far apart the "
    "rows are; rows that lie a power of two apart fall on the same few sets of the cache, and push each other out.",
    preconditions=(
        "Storage: the panel fits in L1 beside what streams through, and is read often enough to pay for the copy.",
        "Layout: whoever reads the panel is told how far apart its rows are.",
        "Pipeline: the rows do not change while their panel is in use.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("alignment",),
)
