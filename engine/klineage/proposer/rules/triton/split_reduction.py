"""Partial sums of many programs, joined by a second kernel, become one sum of one program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    Launch,
    defined,
    jit_functions,
    mentions,
    names,
    of_other_grids,
    only_launch,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
    used,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_TOTAL = "total"
_BOTH = re.compile(r"(\w+), (\w+) = tl\.program_id\(0\), tl\.program_id\(1\)")
_ONE = re.compile(r"(\w+) = tl\.program_id\(1\)")


@dataclass(frozen=True)
class _Parts:
    """A program sums ``piece * BLOCK + arange(0, BLOCK)`` of a row and stores it as partial sum ``piece``."""

    numbers: Node  # the statement that reads the program's number on the second axis
    piece: str
    inside: tuple[Node, ...]  # what depends on the piece, the store left out
    store: Node  # the statement
    address: Node
    summed: Node  # the call of tl.sum
    count: str  # how many pieces there are, as the kernel can tell
    host: Node  # the host's statement that counts them


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        body = statements(function.body)
        calls = tl_calls(unit, body[-1], "store") if body else []
        if _numbers(unit, body) is None or len(calls) != 1 or not tl_calls(unit, calls[0], "sum"):
            continue
        try:
            found = _parts(unit, function)
            settings = {
                "piece": found.piece,
                "programs": unit.text(found.numbers),
                "pieces": unit.text(found.host),
            }
        except NotApplicable:
            settings = {}  # removing says why
        sites.append(Site(function.locus, (Feature(function.locus, "scan_or_reduce"),), settings))
    return tuple(sites)


def _numbers(unit: Unit, body: list[Node]) -> tuple[Node, str] | None:
    """(statement, name) of the program's number on the second axis."""
    for statement in body:
        text = " ".join(unit.text(statement).split())
        match = _BOTH.fullmatch(text) or _ONE.fullmatch(text)
        if match is not None:
            return statement, match[match.re.groups]
    return None


def _parts(unit: Unit, function: Function) -> _Parts:
    body, launch = statements(function.body), only_launch(unit, function)
    found = _numbers(unit, body)
    if found is None or launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    numbers, piece = found
    call = tl_calls(unit, body[-1], "store")[0]
    given = positional(call)
    if body[-1].named_children[0] != call or len(given) != 2 or tl_call(unit, given[1]) != "sum":
        raise NotApplicable("what is stored last is not one sum, without a mask")
    if not unit.text(given[0]).endswith(f" + {piece}"):
        raise NotApplicable(f"the partial sum is not stored at a place that ends in + {piece}")
    known, inside = {piece}, []
    for statement in body[:-1]:
        if statement != numbers and used(unit, statement) & known:
            inside.append(statement)
            known |= defined(unit, statement)
    first = body.index(inside[0]) if inside else len(body)
    if not inside or inside != body[first:-1] or any(s.type != "expression_statement" for s in inside):
        raise NotApplicable(f"what depends on {piece} does not stand together in front of the store")
    count = _count(unit, function, piece, inside)
    return _Parts(numbers, piece, tuple(inside), body[-1], given[0], given[1], count, _host(unit, launch))


def _count(unit: Unit, function: Function, piece: str, inside: list[Node]) -> str:
    """``tl.cdiv(columns, BLOCK)`` of ``at = piece * BLOCK + tl.arange(0, BLOCK)`` and ``mask=at < columns``."""
    for statement in inside:
        pair = sides(statement)
        text = " ".join(unit.text(pair[1]).split()) if pair is not None else ""
        match = re.fullmatch(rf"{piece} \* (\w+) \+ tl\.arange\(0, (\w+)\)", text)
        if match is None or match[1] != match[2] or pair is None:
            continue
        at = unit.text(pair[0])
        bounds = {
            m[1]
            for node in walk(function.body)
            if node.type == "comparison_operator" and (m := re.fullmatch(rf"{at} < (\w+)", unit.text(node)))
        }
        if len(bounds) == 1:
            return f"tl.cdiv({bounds.pop()}, {match[1]})"
    raise NotApplicable(f"no block of indices counts with {piece} up to one bound")


def _host(unit: Unit, launch: Launch) -> Node:
    """The host's only assignment to the grid's second extent, which must have a name."""
    extents = elements(launch.grid) if launch.grid.type in ("tuple", "list") else []
    index = launch.call.child_by_field_name("function")
    if not extents and index is not None:
        extents = [c for c in index.children_by_field_name("subscript") if c.is_named]
    if len(extents) != 2 or extents[1].type != "identifier" or launch.host is None:
        raise NotApplicable("the number of pieces has no name in the grid")
    wanted = unit.text(extents[1])
    if of_other_grids(unit, launch, wanted):
        raise NotApplicable(f"another kernel is launched with {wanted} programs, and needs as many still")
    made = [
        n for n in walk(launch.host.body) if n.type == "expression_statement" and wanted in defined(unit, n)
    ]
    if len(made) != 1 or sides(made[0]) is None or unit.text(made[0]) == f"{wanted} = 1":
        raise NotApplicable(f"the host does not count {wanted} once")
    return made[0]


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    found = _parts(unit, function)
    if mentions(unit, function.body, _TOTAL):
        raise NotApplicable(f"the name {_TOTAL!r} is taken")
    indent, newline = unit.indent(found.store.start_byte), unit.newline(found.store.start_byte)
    start, end = unit.line_start(found.inside[0].start_byte), unit.lines_of(found.store)[1]
    kept = unit.source[start : unit.line_start(found.store.start_byte)].splitlines(keepends=True)
    moved = b"".join(b"    " + line if line.strip() else line for line in kept)
    address = unit.text(found.address).removesuffix(f" + {found.piece}")
    lines = [
        f"{_TOTAL} = 0.0",
        f"for {found.piece} in range(0, {found.count}):",
        f"    {_TOTAL} += {unit.text(found.summed)}",
        f"tl.store({address}, {_TOTAL})",
    ]
    written = [indent + line.encode("utf-8", "surrogateescape") + newline for line in lines]
    text = written[0] + written[1] + moved + written[2] + written[3]
    counted = sides(found.host)
    assert counted is not None
    return Rewrite(
        merge_edits(
            [
                _without_piece(unit, found),
                Edit(start, end, text),
                Edit(counted[1].start_byte, counted[1].end_byte, b"1"),
            ]
        )
    )


def _without_piece(unit: Unit, found: _Parts) -> Edit:
    both = _BOTH.fullmatch(" ".join(unit.text(found.numbers).split()))
    if both is None:
        return Edit(*unit.lines_of(found.numbers))
    text = f"{both[1]} = tl.program_id(0)".encode("utf-8", "surrogateescape")
    return Edit(found.numbers.start_byte, found.numbers.end_byte, text)


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    piece, programs, pieces = (setting(settings, n) for n in ("piece", "programs", "pieces"))
    launch = only_launch(unit, function) if function is not None else None
    if function is None or launch is None or launch.host is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    body = statements(function.body)
    loop = next(
        (
            s
            for s in body
            if s.type == "for_statement" and unit.text(s).startswith(f"for {piece} in range(0, ")
        ),
        None,
    )
    inner = loop.child_by_field_name("body") if loop is not None else None
    inside = statements(inner) if inner is not None else []
    zero = loop.prev_named_sibling if loop is not None else None
    call = next(iter(tl_calls(unit, body[-1], "store")), None)
    given = positional(call) if call is not None else []
    added = re.fullmatch(rf"{_TOTAL} \+= (.+)", unit.text(inside[-1]), re.DOTALL) if inside else None
    if (
        loop is None
        or zero is None
        or added is None
        or len(given) != 2
        or _TOTAL not in names(unit, given[1])
    ):
        raise NotApplicable(f"no loop over {piece} adds up a total that is stored")
    indent, newline = unit.indent(loop.start_byte), unit.newline(loop.start_byte)
    kept = unit.source[unit.line_start(inside[0].start_byte) : unit.line_start(inside[-1].start_byte)]
    moved = b"".join(
        line[4:] if line.startswith(b"    ") else line for line in kept.splitlines(keepends=True)
    )
    store = f"tl.store({unit.text(given[0])} + {piece}, {added[1]})".encode("utf-8", "surrogateescape")
    start, end = unit.line_start(zero.start_byte), unit.lines_of(body[-1])[1]
    counted = pieces.partition(" = ")[0]
    made = [
        n
        for n in walk(launch.host.body)
        if n.type == "expression_statement" and unit.text(n) == f"{counted} = 1"
    ]
    if len(made) != 1:
        raise NotApplicable(f"the host does not set {counted} to 1")
    return tuple(
        sorted(
            [
                _with_piece(unit, body, programs),
                Edit(start, end, moved + indent + store + newline),
                Edit(made[0].start_byte, made[0].end_byte, pieces.encode("utf-8", "surrogateescape")),
            ]
        )
    )


def _with_piece(unit: Unit, body: list[Node], programs: str) -> Edit:
    both = _BOTH.fullmatch(" ".join(programs.split()))
    text = programs.encode("utf-8", "surrogateescape")
    if both is None:
        at = unit.line_start(body[0].start_byte)
        return Edit(at, at, unit.indent(at) + text + unit.newline(at))
    row = next((s for s in body if unit.text(s) == f"{both[1]} = tl.program_id(0)"), None)
    if row is None:
        raise NotApplicable(f"the kernel does not read {both[1]} from its program's number")
    return Edit(row.start_byte, row.end_byte, text)


SPLIT_REDUCTION = Rule(
    name="split-reduction",
    action="scan_or_reduce",
    surface="triton",
    title="Let one program sum a whole row",
    adds="Sum pieces of a row in several programs",
    at="The loop over a long row that one program sums, and the launch",
    rationale="Several programs sum pieces of a row, and a second kernel joins them, so that few long rows still fill "
    "the machine; with one piece a row, each row is a chain of one program.",
    preconditions=(
        "Data types: the partial sums are kept in a type that is as wide as the accumulator.",
        "Storage: the partial sums fit in a buffer of their own, and the second kernel reads them from cache.",
        "Pipeline: there are fewer rows than the machine runs programs, and the rows are long.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "tiling"),
)
