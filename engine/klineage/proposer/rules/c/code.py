"""Reading C code: macros, loop pragmas, calls, and the lines that a removed statement takes along."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, readable, walk

_COMMENT = re.compile(rb"/\*.*?\*/|//[^\r\n]*", re.DOTALL)


@dataclass(frozen=True)
class LoopPragma:
    """A pragma on a loop. ``place`` is the loop's locus without the file, ``words`` what follows
    ``pragma``."""

    start: int
    end: int
    words: str
    place: str


def home(unit: Unit) -> str:
    """The locus for a mechanism that is spread over the file: its exported function."""
    exported = [f for f in unit.functions if f.exported]
    if not exported:
        raise NotApplicable("the file exports no function")
    return exported[-1].locus


def place_of(unit: Unit, locus: str) -> str:
    return locus.removeprefix(f"{unit.filename}::")


def node_at(unit: Unit, place: str) -> Node:
    """The loop or function with this locus (without the file). Raises NotApplicable."""
    node = unit.loci.get(f"{unit.filename}::{place}")
    if node is None:
        raise NotApplicable(f"there is no {place!r} in this file")
    return node


def loop_pragmas(unit: Unit, pattern: str) -> list[LoopPragma] | None:
    """The pragmas whose words match, with their loops; None when one of them stands on something else."""
    text = readable(unit.surface, unit.source)
    starts = {node.start_byte: locus for locus, node in unit.loci.items() if node.type == "for_statement"}
    found = []
    for start, end in unit.loop_pragmas:
        words = re.sub(
            r"^\s*#\s*pragma\s+", "", unit.source[start:end].decode("utf-8", "surrogateescape")
        ).strip()
        if not re.match(pattern, words):
            continue
        blank = re.compile(rb"(?:\s|/\*.*?\*/|//[^\r\n]*)*", re.DOTALL).match(text, end)
        locus = starts.get(blank.end() if blank else end)
        if locus is None:
            return None
        found.append(LoopPragma(start, end, words, place_of(unit, locus)))
    return found


def pragma_removed(unit: Unit, pragma: LoopPragma) -> Edit:
    return Edit(unit.line_start(pragma.start), unit.line_end(pragma.end))


def pragma_added(unit: Unit, place: str, words: str, *, indented: bool = False) -> Edit:
    """The pragma on a line of its own in front of a loop: in the first column as is the custom, or indented
    like the loop."""
    at = unit.line_start(node_at(unit, place).start_byte)
    indent = unit.indent(at) if indented else b""
    return Edit(at, at, indent + f"#pragma {words}".encode("utf-8", "surrogateescape") + unit.newline(at))


def calls(unit: Unit, root: Node, *names: str) -> list[Node]:
    """The calls to any of the named functions below a node, in source order."""
    found: list[Node] = []
    if not any(name.encode() in unit.source for name in names):
        return found
    for node in walk(root):
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is not None and unit.text(function) in names:
            found.append(node)
    return found


def arguments(call: Node) -> list[Node]:
    listing = call.child_by_field_name("arguments")
    return [c for c in listing.named_children if c.type != "comment"] if listing is not None else []


def innermost(unit: Unit, node: Node) -> str:
    """The place (locus without the file) of the innermost function or loop around a node."""
    around = [
        locus
        for locus, place in unit.loci.items()
        if place.start_byte <= node.start_byte and node.end_byte <= place.end_byte and place != node
    ]
    return place_of(unit, around[-1]) if around else ""


def body_start(unit: Unit, node: Node) -> int:
    """The offset of the first line inside the braces of a function or loop. Raises NotApplicable."""
    body = node.child_by_field_name("body")
    if body is None or body.type != "compound_statement":
        raise NotApplicable("the body has no braces to put a statement into")
    return unit.line_end(body.start_byte)


def lines_inserted(unit: Unit, at: int, like: Node, lines: Iterable[str], deeper: bytes = b"") -> Edit:
    """Whole lines at ``at``, indented as the line of ``like``."""
    indent, newline = unit.indent(like.start_byte) + deeper, unit.newline(at)
    text = b"".join(indent + line.encode("utf-8", "surrogateescape") + newline for line in lines)
    return Edit(at, at, text)


def deleted(unit: Unit, node: Node) -> Edit:
    """A statement with its whole lines and the comment directly above it."""
    start, end = unit.lines_of(node)
    above = node.prev_sibling
    while above is not None and above.type == "comment" and unit.alone(above.start_byte, above.end_byte):
        first, after = unit.lines_of(above)
        if after != start:
            break
        start, above = first, above.prev_sibling
    return Edit(start, end)


def deleted_item(unit: Unit, node: Node) -> Edit:
    """A top-level item with the comment above it and the blank line below it."""
    edit = deleted(unit, node)
    end = unit.line_end(edit.end) if edit.end < len(unit.source) else edit.end
    return Edit(edit.start, end if not unit.source[edit.end : end].strip() else edit.end)


def dead_items(unit: Unit, edits: Iterable[Edit]) -> list[Edit]:
    """Static functions and types that nothing uses any more once the edits are made."""
    items = {f.name: f.node for f in unit.functions if not f.exported}
    for node in unit.root.children:
        name = node.child_by_field_name("declarator") if node.type == "type_definition" else None
        if name is not None:
            items[unit.text(name)] = node
    made = list(edits)
    gone: list[Edit] = []
    while True:
        left = apply_edits(unit.source, merge_edits(made))
        dead = next((n for n in items if code_words(unit.source, n) > 1 and code_words(left, n) == 1), None)
        if dead is None:
            return gone
        gone.append(deleted_item(unit, items.pop(dead)))
        made.append(gone[-1])


@lru_cache(maxsize=256)
def defines(unit: Unit) -> dict[str, Node]:
    """The object-like macros defined once, outside every ``#if``."""
    found: dict[str, list[Node]] = {}
    for node in walk(unit.root):
        name = node.child_by_field_name("name") if node.type == "preproc_def" else None
        if name is not None:
            found.setdefault(unit.text(name), []).append(node)
    return {n: d[0] for n, d in found.items() if len(d) == 1 and d[0].parent == unit.root}


def macro_text(unit: Unit, definition: Node) -> str:
    value = definition.child_by_field_name("value")
    return unit.text(value).strip() if value is not None else ""


def code_words(source: bytes, name: str) -> int:
    """How often a word occurs outside comments."""
    return len(
        re.findall(rb"\b" + name.encode("utf-8", "surrogateescape") + rb"\b", _COMMENT.sub(b" ", source))
    )


def dead_macros(unit: Unit, edits: Iterable[Edit]) -> dict[str, Node]:
    """The macros that nothing uses any more once the edits are made, though something did before."""
    made = apply_edits(unit.source, edits)
    gone: dict[str, Node] = {}
    while True:  # a macro may be used only by another that is dead itself
        for name, node in defines(unit).items():
            dead_uses = sum(len(re.findall(rf"\b{name}\b", macro_text(unit, d))) for d in gone.values())
            if (
                name not in gone
                and code_words(unit.source, name) > 1
                and code_words(made, name) - dead_uses == 1
            ):
                gone[name] = node
                break
        else:
            return gone


def macro_edit(unit: Unit, definition: Node, value: str) -> Edit:
    """Give a macro another value."""
    node = definition.child_by_field_name("value")
    if node is None:
        raise NotApplicable("the macro has no value")
    lead = len(unit.text(node)) - len(unit.text(node).lstrip())
    tail = len(unit.text(node).rstrip())
    return Edit(node.start_byte + lead, node.start_byte + tail, value.encode("utf-8", "surrogateescape"))


def macro_line(unit: Unit, definition: Node) -> Edit:
    """Delete the line of a macro."""
    return Edit(unit.line_start(definition.start_byte), unit.line_end(definition.start_byte))


def macros_added(unit: Unit, values: Mapping[str, str]) -> list[Edit]:
    """Define macros again: a single one after the last that its value speaks of, several after the
    last of all."""
    known = defines(unit)
    edits: dict[int, bytes] = {}
    for name, value in values.items():
        if name in known:
            raise NotApplicable(f"{name} is already defined")
        spoken = [n for other, n in known.items() if re.search(rf"\b{other}\b", value)]
        anchor = max(
            spoken or list(known.values()) or _includes(unit), key=lambda n: n.start_byte, default=None
        )
        at = unit.line_end(anchor.start_byte) if anchor is not None else 0
        line = f"#define {name} {value}".encode("utf-8", "surrogateescape") + unit.newline(max(at - 1, 0))
        edits[at] = edits.get(at, b"") + line
    return [Edit(at, at, text) for at, text in edits.items()]


def _includes(unit: Unit) -> list[Node]:
    return [n for n in unit.root.children if n.type == "preproc_include"]


def declarators(function: Function, unit: Unit) -> Iterator[tuple[str, Node]]:
    """(name, identifier node) of every parameter and local of a function."""
    for node in walk(function.node):
        if node.type not in ("parameter_declaration", "declaration"):
            continue
        for child in node.children_by_field_name("declarator"):
            name: Node | None = child
            while name is not None and name.type != "identifier":
                inner = name.child_by_field_name("declarator")
                if inner is None:
                    inner = next((c for c in name.named_children if c.type.endswith("declarator")), None)
                    inner = inner or next((c for c in name.named_children if c.type == "identifier"), None)
                name = inner
            if name is not None:
                yield unit.text(name), name


def without_double_blanks(unit: Unit, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Let deleted lines between two blank lines take the second one along.

    Deletions that touch are joined first.
    """
    joined: list[Edit] = []
    for edit in merge_edits(edits):
        if joined and joined[-1].end == edit.start and not edit.text and not joined[-1].text:
            joined[-1] = Edit(joined[-1].start, edit.end)
        else:
            joined.append(edit)
    return tuple(_over_blank(unit, e) if not e.text else e for e in joined)


def _over_blank(unit: Unit, edit: Edit) -> Edit:
    start, end = edit.start, edit.end
    if unit.line_start(start) != start or unit.line_start(end) != end or end >= len(unit.source):
        return edit
    before = unit.source[unit.line_start(max(start - 1, 0) and start - 1) : start]
    after = unit.line_end(end)
    blank = not before.strip() and not unit.source[end:after].strip()
    return Edit(start, after) if blank else edit
