"""Expressions or statements that are written in a special way, each with its plain form.

A step records, for every one, how it was written (with ``_`` for what it holds) and what it became:
``__ldg(&_) of x[i]``. The forward edit looks for the plain form and writes it the special way again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.tree import Edit, Function, Unit, apply_edits, parse, walk

_OF = " of "
_NUMBER = " #"


@dataclass(frozen=True)
class Special:
    """One place: the node, how it is written, and the plain text that it becomes."""

    node: Node
    spelling: str
    plain: str


def function_of(unit: Unit, node: Node) -> Function | None:
    """The function whose body holds a node."""
    around = [f for f in unit.functions if f.node.start_byte <= node.start_byte < f.node.end_byte]
    return around[-1] if around else None


def removed(found: Iterable[Special]) -> tuple[Edit, ...]:
    """The edits that write each one plainly. Raises NotApplicable when one stands inside another."""
    ordered = sorted(found, key=lambda s: s.node.start_byte)
    if any(b.node.start_byte < a.node.end_byte for a, b in pairwise(ordered)):
        raise NotApplicable("one of them stands inside another")
    return tuple(
        Edit(s.node.start_byte, s.node.end_byte, s.plain.encode("utf-8", "surrogateescape")) for s in ordered
    )


def recorded(unit: Unit, found: list[Special], others: Iterable[Edit] = ()) -> dict[str, str]:
    """The settings from which ``restored`` finds every place again, once ``others`` are made too."""
    edits = sorted([*removed(found), *others])
    result = parse(unit.surface, unit.filename, apply_edits(unit.source, edits))
    settings: dict[str, str] = {}
    counts: dict[str, int] = {}
    for special in sorted(found, key=lambda s: s.node.start_byte):
        function = function_of(unit, special.node)
        if function is None:
            raise NotApplicable("one of them stands outside every function")
        place = function.locus.removeprefix(f"{unit.filename}::")
        start = special.node.start_byte
        shift = sum(len(e.text) - (e.end - e.start) for e in edits if e.end <= start)
        equal = list(_equal(result, result.function_at(function.locus), special.plain))
        at = next((i for i, (n, _) in enumerate(equal, start=1) if n == start + shift), 0)
        if not at:
            raise NotApplicable(f"what {unit.text(special.node)!r} becomes cannot be found again")
        counts[place] = counts.get(place, 0) + 1
        number = f"{_NUMBER}{at}" if len(equal) > 1 else ""
        settings[f"{place}.{counts[place]}"] = f"{special.spelling}{_OF}{_flat(special.plain)}{number}"
    return settings


def restored(
    unit: Unit, settings: Mapping[str, str], written: Callable[[str, str], str | None]
) -> tuple[Edit, ...]:
    """The edits that write every recorded place the special way again.

    ``written(spelling, plain)`` gives the text, or None when the plain form is not the one it knows.
    Raises NotApplicable when a place is not there.
    """
    edits = []
    for key, value in settings.items():
        place = key.rpartition(".")[0]
        spelling, found, rest = value.partition(_OF)
        plain, numbered, number = rest.rpartition(_NUMBER)
        if not numbered or not number.isdigit():
            plain, number = rest, "1"
        equal = list(_equal(unit, unit.function_at(f"{unit.filename}::{place}"), plain))
        text = written(spelling, plain) if found else None
        if text is None or not 0 < int(number) <= len(equal):
            raise NotApplicable(f"{place} has no {plain!r} to write as {spelling!r}")
        start, end = equal[int(number) - 1]
        edits.append(Edit(start, end, text.encode("utf-8", "surrogateescape")))
    if not edits:
        raise NotApplicable("the step records no place")
    return tuple(sorted(set(edits)))


def position(unit: Unit, statement: Node, gone: list[Node]) -> str:
    """Where a statement stands in C or CUDA: its number in its block, among the statements that stay."""
    block = statement.parent
    assert block is not None
    stay = [c for c in block.named_children if c.type != "comment" and c not in gone]
    number = sum(c.start_byte < statement.start_byte for c in stay)
    return f"statement {number} of {_block_place(unit, block)}"


def _block_place(unit: Unit, block: Node) -> str:
    """The function or loop whose body a block is. Raises NotApplicable."""
    for locus, node in unit.loci.items():
        function = unit.function_at(locus)
        own = function is not None and function.locus == locus and function.body == block
        if own or node.child_by_field_name("body") == block:
            return locus.removeprefix(f"{unit.filename}::")
    raise NotApplicable(f"line {unit.line(block.start_byte)}: the statement stands under a condition")


def line_at(unit: Unit, place: str, number: int) -> tuple[int, bytes, bytes]:
    """(offset, indentation, line ending) of a new line that becomes the numbered statement of a block."""
    node = unit.loci.get(f"{unit.filename}::{place}")
    function = unit.function_at(f"{unit.filename}::{place}")
    if node is None:
        raise NotApplicable(f"there is no {place!r} in this file")
    own = function is not None and function.node == node
    block = function.body if own and function is not None else node.child_by_field_name("body")
    inside = [c for c in block.named_children if c.type != "comment"] if block is not None else []
    if not inside or number > len(inside):
        raise NotApplicable(f"{place} has no statement {number}")
    last = inside[number - 1].end_byte - 1 if number else 0
    at = unit.line_end(last) if number else unit.line_start(inside[0].start_byte)
    return at, unit.indent(inside[0].start_byte), unit.newline(at)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _equal(unit: Unit, function: Function | None, plain: str) -> Iterator[tuple[int, int]]:
    """The spans in a function that read as ``plain``, whatever the white space: a node, or statements in a row."""
    wanted, last = _flat(plain), (-1, -1)
    for node in walk(function.node) if function is not None else ():
        span = _span(unit, node, wanted)
        if span is not None and span != last:
            last = span  # a node and its only child have one span
            yield span


def _span(unit: Unit, node: Node, wanted: str) -> tuple[int, int] | None:
    """What reads as ``wanted`` and begins with a node: itself, or it and the statements after it."""
    text = _flat(unit.text(node))
    if text == wanted:
        return node.start_byte, node.end_byte
    block = node.parent is not None and node.parent.type == "compound_statement"
    following = node.next_sibling
    while block and following is not None and wanted.startswith(text):
        text = _flat(unit.source[node.start_byte : following.end_byte].decode("utf-8", "surrogateescape"))
        if text == wanted:
            return node.start_byte, following.end_byte
        following = following.next_sibling
    return None
