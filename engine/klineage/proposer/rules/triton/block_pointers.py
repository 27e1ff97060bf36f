"""Block pointers become pointers with indices and masks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    enclosing_statement,
    identifiers,
    jit_functions,
    keywords,
    mentions,
    positional,
    sides,
    tl_call,
    tl_calls,
    value_of,
)
from klineage.proposer.rules.triton.tile_access import (
    Tile,
    index,
    mask,
    masked_axes,
    name_of,
    nonnegative,
    parsed_call,
    pointers,
    same,
    tile_of,
)
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk

_FIELDS = ("base", "shape", "strides", "offsets", "block_shape", "order")
_PADDED = ", zero"


@dataclass(frozen=True)
class _Pointer:
    """One block pointer: the statement that makes it, and everything that is done with it."""

    variable: str
    statement: Node
    call: Node
    tile: Tile
    accesses: tuple[Node, ...]
    advances: tuple[tuple[Node, tuple[str, ...]], ...]


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        if not tl_calls(unit, function.body, "make_block_ptr"):
            continue
        try:
            settings = {p.variable: _spelled(unit, p) for p in _pointers(unit, function)}
        except NotApplicable:
            settings = {}  # removing says why
        sites.append(Site(function.locus, (Feature(function.locus, "block_pointer"),), settings))
    return tuple(sites)


def _spelled(unit: Unit, pointer: _Pointer) -> str:
    padded = any("padding_option" in keywords(unit, c) for c in pointer.accesses)
    return " ".join(unit.text(pointer.call).split()) + (_PADDED if padded else "")


def _pointers(unit: Unit, function: Function) -> list[_Pointer]:
    found = []
    for call in tl_calls(unit, function.body, "make_block_ptr"):
        statement = enclosing_statement(call)
        pair = sides(statement)
        line = f"line {unit.line(call.start_byte)}"
        if pair is None or pair[1] != call or pair[0].type != "identifier":
            raise NotApplicable(f"{line}: the block pointer is not kept under a name of its own")
        variable, tile = unit.text(pair[0]), tile_of(unit, call, _FIELDS)
        nonnegative(tile.offsets)
        _refuse_taken(unit, function, variable, tile)
        found.append(
            _Pointer(variable, statement, call, tile, *_uses(unit, function, statement, variable, tile))
        )
    if len({p.variable for p in found}) != len(found):
        raise NotApplicable("one name holds several block pointers")
    return found


def _refuse_taken(unit: Unit, function: Function, variable: str, tile: Tile) -> None:
    known = {unit.text(n) for n in identifiers(function.node)}
    for axis in range(len(tile.shape)):
        if name_of(variable, axis) in known:
            raise NotApplicable(f"the name {name_of(variable, axis)!r} is taken")


def _uses(
    unit: Unit, function: Function, definition: Node, variable: str, tile: Tile
) -> tuple[tuple[Node, ...], tuple[tuple[Node, tuple[str, ...]], ...]]:
    """The loads and stores through a block pointer, and the statements that move it."""
    accesses, advances, moved = [], [], set()
    for call in tl_calls(unit, function.body, "advance"):
        statement, given = enclosing_statement(call), positional(call)
        pair = sides(statement)
        if not given or unit.text(given[0]) != variable:
            continue
        steps = tuple(unit.text(n) for n in given[1].named_children) if len(given) == 2 else ()
        if pair is None or pair[1] != call or unit.text(pair[0]) != variable or len(steps) != len(tile.shape):
            raise NotApplicable(f"line {unit.line(call.start_byte)}: {variable} is moved under another name")
        nonnegative(steps)
        advances.append((statement, steps))
        moved |= {n.id for n in mentions(unit, statement, variable)}
    for use in mentions(unit, function.body, variable):
        if definition.start_byte <= use.start_byte < definition.end_byte or use.id in moved:
            continue
        access = use.parent.parent if use.parent is not None else None
        known = access is not None and tl_call(unit, access) in ("load", "store")
        if access is None or not known or positional(access)[:1] != [use]:
            raise NotApplicable(
                f"line {unit.line(use.start_byte)}: {variable} is used in another way than to load or store"
            )
        _axes(unit, access, len(tile.shape))
        accesses.append(access)
    return tuple(accesses), tuple(advances)


def _axes(unit: Unit, call: Node, rank: int) -> tuple[int, ...]:
    """The axes whose bounds an access checks. Raises NotApplicable for options that are not known here."""
    named = keywords(unit, call)
    if set(named) - {"boundary_check", "padding_option"}:
        raise NotApplicable(f"line {unit.line(call.start_byte)}: an access with options of other kinds")
    padding = unit.text(value_of(named["padding_option"])) if "padding_option" in named else '"zero"'
    if padding.strip("\"'") != "zero":
        raise NotApplicable(
            f"line {unit.line(call.start_byte)}: padding with {padding}, where pointers give zero"
        )
    numbers = (
        re.findall(r"\d+", unit.text(value_of(named["boundary_check"]))) if "boundary_check" in named else []
    )
    axes = tuple(sorted({int(n) for n in numbers}))
    if any(axis >= rank for axis in axes):
        raise NotApplicable(
            f"line {unit.line(call.start_byte)}: a bound of an axis that the tile does not have"
        )
    return axes


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    edits: list[Edit] = []
    for pointer in _pointers(unit, function) if function is not None else ():
        edits += _plain(unit, pointer)
    return Rewrite(tuple(sorted(edits)))


def _plain(unit: Unit, pointer: _Pointer) -> list[Edit]:
    tile, variable = pointer.tile, pointer.variable
    pairs = zip(tile.offsets, tile.block, strict=True)
    lines = [f"{name_of(variable, axis)} = {index(o, b)}" for axis, (o, b) in enumerate(pairs)]
    edits = [_replaced(unit, pointer.statement, lines)]
    for statement, steps in pointer.advances:
        moves = [f"{name_of(variable, axis)} += {step}" for axis, step in enumerate(steps) if step != "0"]
        edits.append(_replaced(unit, statement, moves))
    for call in pointer.accesses:
        axes = _axes(unit, call, len(tile.shape))
        bound = mask(variable, tile, axes)
        rest = f"mask={bound}{', other=0' if tl_call(unit, call) == 'load' else ''}" if bound else ""
        edits += _access(unit, call, pointers(variable, tile), rest)
    return edits


def _access(unit: Unit, call: Node, address: str, options: str) -> list[Edit]:
    """A load or store with another address and other options; what it stores stays as it is."""
    given = positional(call)
    edits = [Edit(given[0].start_byte, given[0].end_byte, address.encode("utf-8", "surrogateescape"))]
    named = sorted(keywords(unit, call).values(), key=lambda n: n.start_byte)
    text = options.encode("utf-8", "surrogateescape")
    if named and options:
        edits.append(Edit(named[0].start_byte, named[-1].end_byte, text))
    elif named:
        edits.append(Edit(given[-1].end_byte, named[-1].end_byte))
    elif options:
        edits.append(Edit(given[-1].end_byte, given[-1].end_byte, b", " + text))
    return edits


def _replaced(unit: Unit, statement: Node, lines: list[str]) -> Edit:
    joint = unit.newline(statement.start_byte) + unit.indent(statement.start_byte)
    text = joint.join(line.encode("utf-8", "surrogateescape") for line in lines)
    return Edit(statement.start_byte, statement.end_byte, text)


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None or not settings:
        raise NotApplicable("no such function, or the step records no block pointer")
    edits: list[Edit] = []
    for variable, spelled in settings.items():
        text, padded, _ = spelled.partition(_PADDED)
        tile = tile_of(*parsed_call(text), _FIELDS)
        edits += _made(unit, function, variable, tile, text)
        edits += _through(unit, function, variable, tile, bool(padded))
    return tuple(sorted(edits))


def _made(unit: Unit, function: Function, variable: str, tile: Tile, call: str) -> list[Edit]:
    """The block pointer in place of its indices, and ``tl.advance`` in place of what is added to them."""
    names = [name_of(variable, axis) for axis in range(len(tile.shape))]
    made: dict[str, Node] = {}
    moves: dict[int, list[tuple[int, str, Node]]] = {}
    for node in walk(function.body):
        pair = sides(node) if node.type == "expression_statement" else None
        if pair is not None and unit.text(pair[0]) in names:
            made[unit.text(pair[0])] = node
        if node.type == "augmented_assignment" and node.parent is not None:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and right is not None and unit.text(left) in names:
                block = node.parent.parent
                axis = names.index(unit.text(left))
                moves.setdefault(block.id if block is not None else 0, []).append(
                    (axis, unit.text(right), node.parent)
                )
    if sorted(made) != sorted(names):
        raise NotApplicable(f"the indices {', '.join(names)} are not computed here")
    first, last = made[names[0]], made[names[-1]]
    edits = [Edit(first.start_byte, last.end_byte, f"{variable} = {call}".encode("utf-8", "surrogateescape"))]
    for found in moves.values():
        steps = dict((axis, step) for axis, step, _ in found)
        listed = ", ".join(steps.get(axis, "0") for axis in range(len(names)))
        text = f"{variable} = tl.advance({variable}, ({listed}{',' if len(names) == 1 else ''}))"
        edits.append(
            Edit(found[0][2].start_byte, found[-1][2].end_byte, text.encode("utf-8", "surrogateescape"))
        )
    return edits


def _through(unit: Unit, function: Function, variable: str, tile: Tile, padded: bool) -> list[Edit]:
    """Loads and stores through the block pointer in place of those through its pointers."""
    edits: list[Edit] = []
    for call in tl_calls(unit, function.body, "load", "store"):
        given, named = positional(call), keywords(unit, call)
        if not given or not same(unit.text(given[0]), pointers(variable, tile)):
            continue
        axes = masked_axes(variable, tile, unit.text(value_of(named["mask"])) if "mask" in named else "")
        if axes is None:
            raise NotApplicable(
                f"line {unit.line(call.start_byte)}: the mask is not that of the tile of {variable}"
            )
        listed = ", ".join(map(str, axes)) + ("," if len(axes) == 1 else "")
        options = [f"boundary_check=({listed})"] if axes else []
        options += ['padding_option="zero"'] if padded and tl_call(unit, call) == "load" else []
        edits += _access(unit, call, variable, ", ".join(options))
    if not edits:
        raise NotApplicable(f"nothing is loaded or stored by the pointers of {variable}")
    return edits


BLOCK_POINTERS = Rule(
    name="block-pointers",
    action="block_pointer",
    surface="triton",
    title="Address tiles by pointers and masks",
    adds="Address tiles by block pointers",
    at="The pointers and masks of loads and stores of tiles",
    rationale="A block pointer carries shape, strides and offsets of a tile, from which the compiler knows what "
    "is contiguous and may copy whole tiles; without it, every element has a pointer and a mask of its own.",
    preconditions=(
        "Layout: the tile lies in a tensor with fixed strides, and one of them is 1.",
        "Storage: only axes that are checked may reach beyond the tensor.",
        "Pipeline: the tile moves by the same step in every iteration.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "pipeline", "loop_pipeline", "warp_specialize"),
)
