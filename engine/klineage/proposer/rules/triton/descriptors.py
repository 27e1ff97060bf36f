"""Tensor descriptors (tiles that hardware addresses) become pointers with indices and masks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    enclosing_statement,
    identifiers,
    jit_functions,
    keywords,
    mentions,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
    value_of,
)
from klineage.proposer.rules.triton.tile_access import (
    Tile,
    index,
    load,
    mask,
    name_of,
    nonnegative,
    parsed_call,
    pointers,
    same,
    tile_of,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_FIELDS = ("base", "shape", "strides", "block_shape", "padding_option")
_AT = " at statement "


@dataclass(frozen=True)
class _Descriptor:
    """A descriptor made in the kernel, and every (call, offsets, stored value) through it."""

    variable: str
    statement: Node
    call: Node
    tile: Tile
    accesses: tuple[tuple[Node, tuple[str, ...], str], ...]


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        if not tl_calls(unit, function.body, "make_tensor_descriptor") and not _from_host(unit, function):
            continue
        try:
            found = _descriptors(unit, function)
            settings = {d.variable: _spelled(unit, function, d, found) for d in found}
        except NotApplicable:
            settings = {}  # removing says why
        sites.append(Site(function.locus, (Feature(function.locus, "tensor_descriptor"),), settings))
    return tuple(sites)


def _from_host(unit: Unit, function: Function) -> bool:
    """Whether the kernel loads through a descriptor that its launch hands to it."""
    handed = re.search(rb"\bTensorDescriptor\b", unit.source) is not None
    return handed and any(access_of(unit, node) for node in walk(function.body))


def access_of(unit: Unit, node: Node) -> tuple[Node, str] | None:
    """(object, name) of a call ``object.load([...])`` or ``object.store([...], value)``."""
    callee = node.child_by_field_name("function") if node.type == "call" else None
    if callee is None or callee.type != "attribute":
        return None
    owner, name = callee.child_by_field_name("object"), callee.child_by_field_name("attribute")
    listing = node.child_by_field_name("arguments")
    first = elements(listing)[:1] if listing is not None else []
    if owner is None or name is None or owner.type != "identifier" or not first or first[0].type != "list":
        return None
    return (owner, unit.text(name)) if unit.text(name) in ("load", "store") else None


def _spelled(unit: Unit, function: Function, made: _Descriptor, every: list[_Descriptor]) -> str:
    stay = [s for s in statements(function.body) if all(s != d.statement for d in every)]
    number = sum(s.start_byte < made.statement.start_byte for s in stay)
    return f"{' '.join(unit.text(made.call).split())}{_AT}{number}"


def _descriptors(unit: Unit, function: Function) -> list[_Descriptor]:
    if _from_host(unit, function):
        raise NotApplicable(
            "a descriptor is made by the host: the kernel does not say what its tensor looks like"
        )
    found = []
    for call in tl_calls(unit, function.body, "make_tensor_descriptor"):
        statement = enclosing_statement(call)
        pair, line = sides(statement), f"line {unit.line(call.start_byte)}"
        if (
            pair is None
            or pair[1] != call
            or pair[0].type != "identifier"
            or statement.parent != function.body
        ):
            raise NotApplicable(f"{line}: the descriptor is not made once, at the top of the kernel")
        variable, tile = unit.text(pair[0]), tile_of(unit, call, _FIELDS)
        known = {unit.text(n) for n in identifiers(function.node)}
        if any(name_of(variable, axis) in known for axis in range(len(tile.shape))):
            raise NotApplicable(f"the names {variable}_0 ... are taken")
        found.append(_Descriptor(variable, statement, call, tile, _accesses(unit, function, pair[0], tile)))
    return found


def _accesses(
    unit: Unit, function: Function, definition: Node, tile: Tile
) -> tuple[tuple[Node, tuple[str, ...], str], ...]:
    found = []
    for use in mentions(unit, function.body, unit.text(definition)):
        if use == definition:
            continue
        call = use.parent.parent if use.parent is not None else None
        method = access_of(unit, call) if call is not None else None
        listing = call.child_by_field_name("arguments") if call is not None else None
        line = f"line {unit.line(use.start_byte)}"
        if call is None or method is None or method[0] != use or listing is None:
            raise NotApplicable(f"{line}: {unit.text(use)} is used in another way than to load or store")
        given = elements(listing)
        offsets = tuple(unit.text(n) for n in elements(given[0]))
        nonnegative(offsets)
        if len(offsets) != len(tile.shape) or len(given) != (2 if method[1] == "store" else 1):
            raise NotApplicable(f"{line}: a tile of another rank, or options that are not known here")
        found.append((call, offsets, unit.text(given[1]) if method[1] == "store" else ""))
    starts = [enclosing_statement(call).start_byte for call, _, _ in found]
    if len(set(starts)) != len(starts):
        raise NotApplicable("one statement loads two tiles of one descriptor")
    return tuple(found)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    edits: list[Edit] = []
    lines: dict[int, bytes] = {}
    for made in _descriptors(unit, function) if function is not None else ():
        edits.append(Edit(*unit.lines_of(made.statement)))
        axes = tuple(range(len(made.tile.shape)))
        for call, offsets, value in made.accesses:
            at = unit.line_start(enclosing_statement(call).start_byte)
            indent, newline = unit.indent(at), unit.newline(at)
            for axis, (offset, extent) in enumerate(zip(offsets, made.tile.block, strict=True)):
                text = f"{name_of(made.variable, axis)} = {index(offset, extent)}"
                lines[at] = lines.get(at, b"") + indent + text.encode("utf-8", "surrogateescape") + newline
            edits += _plain(call, made, axes, stored=bool(value))
    return Rewrite(merge_edits(edits, [Edit(at, at, text) for at, text in lines.items()]))


def _plain(call: Node, made: _Descriptor, axes: tuple[int, ...], *, stored: bool) -> list[Edit]:
    """The access by pointers; what is stored stays as it is."""
    if not stored:
        text = load(made.variable, made.tile, axes)
        return [Edit(call.start_byte, call.end_byte, text.encode("utf-8", "surrogateescape"))]
    listing = call.child_by_field_name("arguments")
    assert listing is not None
    offsets = elements(listing)[0]
    head = f"tl.store({pointers(made.variable, made.tile)}".encode("utf-8", "surrogateescape")
    tail = f", mask={mask(made.variable, made.tile, axes)}".encode("utf-8", "surrogateescape")
    end = elements(listing)[-1].end_byte
    return [Edit(call.start_byte, offsets.end_byte, head), Edit(end, end, tail)]


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None or not settings:
        raise NotApplicable("no such function, or the step records no descriptor")
    edits: list[Edit] = []
    lines: dict[int, bytes] = {}
    gone: list[Node] = []
    for variable, spelled in settings.items():
        tile = tile_of(*parsed_call(spelled.partition(_AT)[0]), _FIELDS)
        made, indices = _through(unit, function, variable, tile)
        edits += made
        gone += indices
    edits += [Edit(*unit.lines_of(node)) for node in gone]
    stay = [s for s in statements(function.body) if all(s != node for node in gone)]
    for variable, spelled in settings.items():
        call, _, number = spelled.partition(_AT)
        before = stay[int(number)] if number.isdigit() and int(number) < len(stay) else None
        if before is None:
            raise NotApplicable(f"there is no statement before which {variable} could be made")
        at = unit.line_start(
            min(before.start_byte, *(g.start_byte for g in _touching(before, gone)), before.start_byte + 1)
        )
        text = f"{variable} = {call}".encode("utf-8", "surrogateescape")
        lines[at] = lines.get(at, b"") + unit.indent(before.start_byte) + text + unit.newline(at)
    return merge_edits(edits, [Edit(at, at, text) for at, text in lines.items()])


def _touching(before: Node, gone: list[Node]) -> list[Node]:
    """The removed index lines that stand directly in front of a statement."""
    found = []
    previous = before.prev_named_sibling
    while previous is not None and any(previous == node for node in gone):
        found.append(previous)
        previous = previous.prev_named_sibling
    return found


def _through(unit: Unit, function: Function, variable: str, tile: Tile) -> tuple[list[Edit], list[Node]]:
    """Accesses through the descriptor in place of those through pointers, and the index lines before them."""
    axes = tuple(range(len(tile.shape)))
    edits: list[Edit] = []
    gone: list[Node] = []
    for call in tl_calls(unit, function.body, "load", "store"):
        given, named = positional(call), keywords(unit, call)
        bound = unit.text(value_of(named["mask"])) if "mask" in named else ""
        if (
            not given
            or not same(unit.text(given[0]), pointers(variable, tile))
            or not same(bound, mask(variable, tile, axes))
        ):
            continue
        lines = [_index_line(unit, enclosing_statement(call), name_of(variable, axis)) for axis in axes]
        offsets = [_offset(text, extent) for (_, text), extent in zip(lines, tile.block, strict=True)]
        gone += [statement for statement, _ in lines]
        head = f"{variable}.{tl_call(unit, call)}([{', '.join(offsets)}]".encode("utf-8", "surrogateescape")
        edits.append(Edit(call.start_byte, given[0].end_byte, head))
        edits.append(Edit(given[-1].end_byte, call.end_byte - 1))
    if not edits:
        raise NotApplicable(f"nothing is loaded or stored by the pointers of {variable}")
    return edits, gone


def _index_line(unit: Unit, access: Node, name: str) -> tuple[Node, str]:
    """The statement in front of an access that computes an index, and what it computes."""
    statement = access.prev_named_sibling
    while statement is not None:
        pair = sides(statement)
        if pair is not None and unit.text(pair[0]) == name:
            return statement, unit.text(pair[1])
        statement = statement.prev_named_sibling
    raise NotApplicable(f"{name} is not computed in front of its access")


def _offset(text: str, extent: str) -> str:
    span = re.escape(f"tl.arange(0, {extent})")
    match = re.fullmatch(rf"\((.+) \+ {span}\)\.to\(tl\.int64\)|{span}\.to\(tl\.int64\)", text)
    if match is None:
        raise NotApplicable(f"{text} is no index of a tile")
    return match[1] or "0"


DESCRIPTORS = Rule(
    name="tensor-descriptors",
    action="tensor_descriptor",
    surface="triton",
    title="Address tiles without a descriptor",
    adds="Address tiles by tensor descriptors",
    at="The pointers and masks of loads and stores of whole tiles",
    rationale="The tensor memory accelerator computes addresses and bounds of a whole tile from a descriptor; "
    "without it, every element has a pointer and a mask, and threads compute them.",
    preconditions=(
        "Data types: elements of 1 to 8 bytes.",
        "Layout: the last stride is 1, the others and the base are multiples of 16 bytes, up to 5 axes.",
        "Storage: a tile's last axis is at least 16 bytes, and no axis has more than 256 elements.",
        "Hardware: a tensor memory accelerator (sm_90 and later); elsewhere descriptors are emulated.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "pipeline", "loop_pipeline", "warp_specialize"),
    known={
        "Layout": Known(
            "row_alignment() >= 16", "misalign", {"buffer": "*", "bytes": "1", "code": "tensor_descriptor"}
        ),
        "Hardware": Known('satisfies("nvidia-sm90")', "platform", {"code": "tensor_descriptor"}),
    },
)
