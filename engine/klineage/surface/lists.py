"""Byte-exact edits of comma-separated lists: arguments, parameters, elements."""

from __future__ import annotations

from tree_sitter import Node

from klineage.surface.tree import Edit, Unit


def elements(container: Node) -> list[Node]:
    """The elements between the brackets, without commas and comments."""
    return [c for c in container.named_children if c.type != "comment"]


def remove_elements(unit: Unit, container: Node, gone: list[Node]) -> tuple[Edit, ...]:
    """Take elements out with their commas; a line that held nothing else goes too."""
    kept = [e for e in elements(container) if e not in gone]
    edits = []
    for node in sorted(gone, key=lambda n: n.start_byte):
        comma = _comma_after(node)
        start, end = node.start_byte, node.end_byte if comma is None else comma.end_byte
        if _owns_lines(unit, container, start, end):
            edits.append(Edit(unit.line_start(start), unit.line_end(end)))
            continue
        earlier = [e for e in kept if e.end_byte <= start]
        later = [e for e in kept if e.start_byte >= end]
        if not later and earlier:  # it was last: take the comma and blanks before it instead
            edits.append(Edit(_last_end(container, node), node.end_byte))
            continue
        while end < len(unit.source) and unit.source[end] in b" \t":
            end += 1
        if unit.source[end : end + 1] in (b"\r", b"\n"):  # last on its line: no blank is left behind
            while unit.source[start - 1] in b" \t" and start - 1 > container.start_byte:
                start -= 1
        edits.append(Edit(start, end))
    return _merged(edits)


def add_element(unit: Unit, container: Node, text: str, after: Node | None = None) -> Edit:
    """Put a new element after ``after`` (else last), in the layout that the list already has."""
    present = elements(container)
    new = text.encode("utf-8", "surrogateescape")
    if not present:
        return Edit(container.start_byte + 1, container.start_byte + 1, new)
    anchor = present[-1] if after is None else after
    own_line = not unit.source[unit.line_start(anchor.start_byte) : anchor.start_byte].strip()
    separator = b" "
    if own_line and unit.line_start(anchor.start_byte) > container.start_byte:
        separator = unit.newline(anchor.start_byte) + unit.indent(anchor.start_byte)
    comma = _comma_after(anchor)
    if comma is None:
        return Edit(anchor.end_byte, anchor.end_byte, b"," + separator + new)
    return Edit(comma.end_byte, comma.end_byte, separator + new + b",")


def _comma_after(node: Node) -> Node | None:
    following = node.next_sibling
    while following is not None and following.type == "comment":
        following = following.next_sibling
    return following if following is not None and following.type == "," else None


def _owns_lines(unit: Unit, container: Node, start: int, end: int) -> bool:
    first, last = unit.line_start(start), unit.line_end(end)
    return unit.alone(start, end) and first > container.start_byte and last < container.end_byte


def _last_end(container: Node, node: Node) -> int:
    """The end of the element before ``node``: what follows it (a comma, blanks) goes with ``node``."""
    before = [e for e in elements(container) if e.end_byte <= node.start_byte]
    return before[-1].end_byte


def _merged(edits: list[Edit]) -> tuple[Edit, ...]:
    """Deletions that touch or overlap, joined."""
    joined: list[Edit] = []
    for edit in sorted(edits):
        if joined and edit.start <= joined[-1].end:
            joined[-1] = Edit(joined[-1].start, max(joined[-1].end, edit.end))
        else:
            joined.append(edit)
    return tuple(joined)
