"""Where a change acts: the loops and functions of the text before it that its lines, or its names, touch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from klineage.lineage import line_ops
from klineage.lineage.lines import split_lines
from klineage.surface.tree import Unit, ancestors, walk

LOOPS = ("for_statement", "while_statement", "do_statement")
FUNCTIONS = ("function_definition",)
_NAMES = ("identifier", "type_identifier", "field_identifier")
_DEFINED = re.compile(r"^\s*#\s*define\s+(\w+)|^\s*typedef\b.*?\b(\w+)\s*(?:__attribute__.*)?;", re.MULTILINE)
_ATTACHED = re.compile(r"\s*(#\s*pragma\b|@)")  # what belongs to the loop or function that follows it
_REMARK = re.compile(r"\s*(//|/\*|\*|#(?!\s*pragma))")


@dataclass(frozen=True)
class Change:
    """One run of changed lines. ``start``, ``end``: bytes of the text before; equal for an insertion.

    old, new: the lines themselves.
    """

    start: int
    end: int
    old: str
    new: str


@lru_cache(maxsize=512)
def changes_between(before: bytes, after: bytes) -> tuple[Change, ...]:
    """The changed lines of a transition, in the order of the text, by git's histogram diff."""
    old, new = split_lines(before), split_lines(after)
    offsets = [0]
    for line in old:
        offsets.append(offsets[-1] + len(line))
    return tuple(
        Change(offsets[op.a0], offsets[op.a1], _text(old[op.a0 : op.a1]), _text(new[op.b0 : op.b1]))
        for op in line_ops(before, after)
        if op.tag != "equal"
    )


def _text(lines: Sequence[bytes]) -> str:
    return b"".join(lines).decode("utf-8", "replace")


def touched(unit: Unit, changes: Sequence[Change], locus: str) -> tuple[Node, ...]:
    """The loops and functions of the text before that the changes act at, the one where most happens first.

    A change outside every function (a macro, a type) acts where its names are used. Where nothing is touched, such as
    for a configuration, it is what ``locus`` names. Empty only for a file without functions.
    """
    points = [node for change in changes for node in _points(unit, change)]
    if not points:
        points = [node for name in _named(changes) for node in _uses(unit, name)]
    homes = [_home(node) for node in points]
    found = [home for home in homes if home is not None]
    loops = [node for node in found if node.type in LOOPS]
    chosen = loops if 3 * len(loops) >= len(found) else [_function(node) for node in found]
    if not chosen or ("/" in locus and not loops):
        chosen = _by_locus(unit, locus) or chosen
    return tuple(sorted({node.id: node for node in chosen}.values(), key=lambda n: _heat(n, chosen)))


def _heat(node: Node, chosen: Sequence[Node]) -> tuple[int, int, int, int]:
    """Loops before functions, sums before the rest, the deepest first, then the one most often touched."""
    adds = any(_sums(n) for n in walk(node))
    depth = sum(above.type in LOOPS for above in ancestors(node))
    often = sum(other.id == node.id for other in chosen)
    return (not adds, -depth, -often, node.start_byte)


def _sums(node: Node) -> bool:
    """Whether a node is a statement that adds to something; what a loop counts with is none."""
    sign = node.child_by_field_name("operator") if "assignment" in node.type else None
    counts = node.parent is not None and node.parent.type in LOOPS
    return sign is not None and sign.type == "+=" and not counts


def _points(unit: Unit, change: Change) -> Iterator[Node]:
    """The nodes that one change stands at, if they are inside functions (or are what it decorates)."""
    text = unit.source[change.start : change.end]
    start = change.start + len(text) - len(text.lstrip())
    end = change.end - (len(text) - len(text.rstrip()))
    if start < end:
        for function in unit.functions:
            first = max(start, function.node.start_byte)
            last = min(end, function.node.end_byte)
            if first < last:
                yield _smallest(unit, first, last)
        return
    following = len(unit.source) - len(unit.source[change.end :].lstrip())
    lines = [line for line in change.new.splitlines() if line.strip() and not _REMARK.match(line)]
    if lines and _ATTACHED.match(lines[0]):
        node = _smallest(unit, following, following + 1)
        whole = [n for n in (node, *ancestors(node)) if n.start_byte == following]
        kinds = [n for n in whole if n.type in LOOPS or n.type in (*FUNCTIONS, "decorated_definition")]
        if kinds:
            yield kinds[0]
            return
    if any(f.body.start_byte < change.start < f.body.end_byte + 1 for f in unit.functions):
        before = len(unit.source[: change.start].rstrip()) - 1
        yield _around(unit, before, min(following, len(unit.source) - 1))


def _around(unit: Unit, before: int, following: int) -> Node:
    """The node that encloses both what stands before an insertion and what follows it."""
    return _smallest(unit, max(before, 0), following + 1)


def _smallest(unit: Unit, start: int, end: int) -> Node:
    return unit.root.descendant_for_byte_range(start, max(end - 1, start)) or unit.root


def _named(changes: Sequence[Change]) -> list[str]:
    """The macros and types that the changes define or redefine."""
    texts = (text for change in changes for text in (change.old, change.new))
    found = (name for text in texts for match in _DEFINED.findall(text) for name in match if name)
    return list(dict.fromkeys(found))


def _uses(unit: Unit, name: str) -> list[Node]:
    """Where functions speak of a name, or, if none does, of macros that are defined by it."""
    inside = [
        node for f in unit.functions for node in walk(f.body) if node.type in _NAMES and unit.text(node) == name
    ]  # fmt: skip
    if inside:
        return inside
    word = re.compile(rf"\b{re.escape(name)}\b")
    carried = [
        unit.text(label)
        for node in walk(unit.root)
        if node.type == "preproc_def"
        and (label := node.child_by_field_name("name")) is not None
        and (value := node.child_by_field_name("value")) is not None
        and word.search(unit.text(value))
        and unit.text(label) != name
    ]
    return [
        node
        for carrier in carried
        for f in unit.functions
        for node in walk(f.body)
        if node.type in _NAMES and unit.text(node) == carrier
    ]


def _home(node: Node) -> Node | None:
    """The innermost loop or function that a node is or lies in."""
    return next((n for n in (node, *ancestors(node)) if n.type in (*LOOPS, *FUNCTIONS)), _decorated(node))


def _decorated(node: Node) -> Node | None:
    return node.child_by_field_name("definition") if node.type == "decorated_definition" else None


def _function(node: Node) -> Node:
    return next((n for n in (node, *ancestors(node)) if n.type in FUNCTIONS), node)


def _by_locus(unit: Unit, locus: str) -> list[Node]:
    node = unit.loci.get(locus)
    home = _home(node) if node is not None else None
    if home is not None:
        return [home]
    function = unit.function_at(locus) or next(iter(unit.functions), None)
    return [function.definition] if function is not None else []
