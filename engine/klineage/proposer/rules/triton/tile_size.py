"""Tile size: tuned blocks become small ones, in one step."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.proposer.rules.triton.code import (
    Launch,
    is_constexpr,
    jit_functions,
    launch_setting,
    mentions,
    names,
    of_other_grids,
    only_launch,
    parameters,
    tl_calls,
    value_of,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk

_PLAIN = 128  # elements of a block that no matrix product uses
_MATRIX_EXTENTS = 3  # m, n and k of a product
_SPANS = ("arange", "make_block_ptr", "make_tensor_descriptor")


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        tiles = tiles_of(kernel, function)
        large = {name: size for name, size in tiles.items() if int(size) > _small(unit, function, tiles)}
        if large:
            sites.append(Site(function.locus, (Feature(function.locus, "tiling"),), large))
    return tuple(sites)


def tiles_of(kernel: Kernel, function: Function) -> dict[str, str]:
    """The constants that are blocks: they span a ``tl.arange`` or a tile that is addressed as one, and are also what a
    loop or the grid counts in."""
    unit = parse_kernel(kernel)
    launch = only_launch(unit, function)
    if launch is None:
        return {}
    constants = [n for n, node in parameters(unit, function).items() if is_constexpr(unit, node)]
    spans = tl_calls(unit, function.body, *_SPANS)
    tiles = {}
    for name in constants:
        size = launch_setting(kernel, function, name)
        if size is None or not size.isdigit() or not any(name in names(unit, s) for s in spans):
            continue
        if _stepped(unit, function, name) or (
            _offsets(unit, function, name) and _in_grid(unit, launch, name, size)
        ):
            tiles[name] = size
    return tiles


def _small(unit: Unit, function: Function, tiles: Mapping[str, str]) -> int:
    """The small block: 16, the least of a matrix product, where an extent of it is fixed by the problem."""
    if not tl_calls(unit, function.body, "dot"):
        return 32 if _broadcast_products(unit, function) else _PLAIN
    return 32 if len(tiles) >= _MATRIX_EXTENTS else 16


def _broadcast_products(unit: Unit, function: Function) -> bool:
    return any("None, :, :" in unit.text(c) for c in tl_calls(unit, function.body, "sum"))


def _stepped(unit: Unit, function: Function, name: str) -> bool:
    """Whether a loop of the kernel steps by the constant or counts its blocks."""
    loops = [n for n in walk(function.body) if n.type == "for_statement"]
    return any(
        (right := n.child_by_field_name("right")) is not None and name in names(unit, right) for n in loops
    )


def _offsets(unit: Unit, function: Function, name: str) -> bool:
    """Whether something is multiplied by the constant: the block's place in the problem."""
    for node in mentions(unit, function.body, name):
        parent = node.parent
        if (
            parent is not None
            and parent.type == "binary_operator"
            and b"*" in [c.text for c in parent.children]
        ):
            return True
    return False


def _in_grid(unit: Unit, launch: Launch, name: str, size: str) -> bool:
    text = " ".join(unit.text(n) for n in _grid_nodes(unit, launch))
    return re.search(rf"['\"]{name}['\"]|\b{name}\b|\b{size}\b", text) is not None


def _grid_nodes(unit: Unit, launch: Launch) -> list[Node]:
    """The grid as written in the launch, and the statements that the names in it come from."""
    nodes = [launch.grid]
    if launch.host is None:
        return nodes
    extents = elements(launch.grid) if launch.grid.type in ("tuple", "list") else [launch.grid]
    wanted = {unit.text(node) for node in extents if node.type == "identifier"}
    if launch.grid.type != "identifier":
        wanted = {name for name in wanted if not of_other_grids(unit, launch, name)}
    for node in walk(launch.host.body):
        left = node.child_by_field_name("left") if node.type == "assignment" else None
        if left is not None and unit.text(left) in wanted:
            nodes.append(node)
        name = node.child_by_field_name("name") if node.type == "function_definition" else None
        if name is not None and unit.text(name) in wanted:
            nodes.append(node)
    return nodes


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    small = str(_small(unit, function, tiles_of(kernel, function)))
    return Rewrite(_resize(kernel, function, dict.fromkeys(site.settings, small)))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    function = parse_kernel(kernel).function_at(locus)
    if function is None:
        raise NotApplicable("no such function")
    return _resize(kernel, function, settings)


def _resize(kernel: Kernel, function: Function, sizes: Mapping[str, str]) -> tuple[Edit, ...]:
    """Set the constants in the launch, and where the grid repeats a size as a number, there too."""
    unit = parse_kernel(kernel)
    launch = only_launch(unit, function)
    if launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    tiles = tiles_of(kernel, function)
    edits = []
    for name, size in sizes.items():
        keyword = launch.keyword(unit, name)
        if keyword is None or name not in tiles:
            raise NotApplicable(f"{name} is no block size of the launch")
        value = value_of(keyword)
        edits.append(Edit(value.start_byte, value.end_byte, size.encode("utf-8", "surrogateescape")))
    for literal in _grid_literals(unit, launch):
        owners = [n for n in tiles if _counts_blocks(unit, launch, n, unit.text(literal), tiles)]
        wanted = {sizes.get(n, tiles[n]) for n in owners}
        if len(wanted) > 1:
            raise NotApplicable(
                f"the grid repeats {unit.text(literal)} as a number: it could be any of {owners}"
            )
        if wanted:
            edits.append(
                Edit(literal.start_byte, literal.end_byte, wanted.pop().encode("utf-8", "surrogateescape"))
            )
    return tuple(edits)


def _grid_literals(unit: Unit, launch: Launch) -> list[Node]:
    """The integers that the grid divides by: ``triton.cdiv(m, 128)`` or ``m // 128``."""
    found = []
    for root in _grid_nodes(unit, launch):
        for node in walk(root):
            function = node.child_by_field_name("function") if node.type == "call" else None
            listing = node.child_by_field_name("arguments") if node.type == "call" else None
            if function is not None and listing is not None and unit.text(function).endswith("cdiv"):
                found += [n for n in listing.named_children[1:] if n.type == "integer"]
    return found


def _counts_blocks(unit: Unit, launch: Launch, name: str, literal: str, tiles: Mapping[str, str]) -> bool:
    """Whether a number of the grid stands for this block: same value, and its kernel offsets programs
    by it."""
    kernel = unit.function(launch.kernel)
    return tiles[name] == literal and kernel is not None and _offsets(unit, kernel, name)


TILE_SIZE = Rule(
    name="tile-size",
    action="tiling",
    surface="triton",
    title="Shrink the tiles",
    adds="Enlarge the tiles",
    at="The extents of a tile, where the kernel is launched",
    rationale="Large tiles reuse each loaded element many times; small ones load the same data again for "
    "every neighbour.",
    preconditions=(
        "Storage: the accumulator and the operands of a tile fit in the registers and shared memory of one "
        "program.",
        "Layout: partial tiles at the edges are masked or wrapped, for no size divides every shape.",
        "Data types: each extent is at least the least that the matrix unit takes (16).",
        "Hardware: enough tiles remain to occupy every multiprocessor.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "pipeline", "loop_pipeline", "warps"),
    known={
        "Storage": Known(change="setting", settings={"name": "*", "value": "x2"}),
        "Data types": Known(change="setting", settings={"name": "*", "value": "/16"}),
    },
)
