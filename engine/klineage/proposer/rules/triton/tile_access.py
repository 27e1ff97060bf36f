"""A tile of a tensor, addressed by an object or by pointers and masks: the same access in both forms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.lists import elements
from klineage.surface.tree import Unit, parse, walk

_SIMPLE = re.compile(r"[\w.]+(?:\([^()]*\))?")
_SEQUENCES = ("tuple", "list")


@dataclass(frozen=True)
class Tile:
    """What a block pointer or a descriptor is made from. ``offsets`` is empty for a descriptor."""

    base: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    block: tuple[str, ...]
    offsets: tuple[str, ...] = ()


def tile_of(unit: Unit, call: Node, fields: tuple[str, ...]) -> Tile:
    """Read the arguments of ``make_block_ptr`` or ``make_tensor_descriptor``, by position or by name."""
    listing = call.child_by_field_name("arguments")
    given: dict[str, Node] = {}
    for index, argument in enumerate(elements(listing) if listing is not None else ()):
        name = argument.child_by_field_name("name") if argument.type == "keyword_argument" else None
        value = argument.child_by_field_name("value") if name is not None else argument
        if value is None or (name is None and index >= len(fields)):
            raise NotApplicable(f"line {unit.line(call.start_byte)}: an argument that is not known here")
        given[unit.text(name) if name is not None else fields[index]] = value
    parts = {name: _items(unit, given[name]) for name in fields[1:] if name in given and name != "order"}
    if "base" not in given or any(n not in parts for n in fields[1:] if n not in ("order", "padding_option")):
        raise NotApplicable(f"line {unit.line(call.start_byte)}: the tile is not written out in the call")
    rank = len(parts["shape"])
    if not 1 <= rank <= 3 or any(len(items) != rank for items in parts.values()):
        raise NotApplicable(f"line {unit.line(call.start_byte)}: shape, strides and block differ in rank")
    return Tile(
        unit.text(given["base"]),
        parts["shape"],
        parts["strides"],
        parts["block_shape"],
        parts.get("offsets", ()),
    )


def _items(unit: Unit, node: Node) -> tuple[str, ...]:
    if node.type not in _SEQUENCES:
        raise NotApplicable(f"line {unit.line(node.start_byte)}: {unit.text(node)} is not written out")
    return tuple(unit.text(n) for n in elements(node))


def parsed_call(text: str) -> tuple[Unit, Node]:
    """A call that a step recorded, parsed. Raises NotApplicable when it is none."""
    unit = parse("triton", "step.py", text.encode("utf-8", "surrogateescape"))
    call = next((n for n in walk(unit.root) if n.type == "call"), None)
    if call is None or unit.text(call) != text:
        raise NotApplicable(f"{text!r} is no call")
    return unit, call


def name_of(variable: str, axis: int) -> str:
    """The name of a tile's indices along an axis."""
    return f"{variable}_{axis}"


def index(offset: str, extent: str) -> str:
    """The indices of a tile along an axis, in 64 bits, as objects compute them too."""
    span = f"tl.arange(0, {extent})"
    if offset == "0":
        return f"{span}.to(tl.int64)"
    return f"({offset} + {span}).to(tl.int64)"


def pointers(variable: str, tile: Tile) -> str:
    """``base + v_0[:, None] * stride + v_1[None, :]``"""
    rank = len(tile.shape)
    terms = [tile.base]
    for axis, stride in enumerate(tile.strides):
        factor = "" if stride == "1" else f" * {_factor(stride)}"
        terms.append(f"{name_of(variable, axis)}{_spread(axis, rank)}{factor}")
    return " + ".join(terms)


def mask(variable: str, tile: Tile, axes: Iterable[int]) -> str:
    """``(v_0[:, None] < rows) & (v_1[None, :] < columns)``; empty for no axis."""
    rank = len(tile.shape)
    bounds = [
        f"{name_of(variable, axis)}{_spread(axis, rank)} < {_factor(tile.shape[axis])}" for axis in axes
    ]
    return " & ".join(f"({bound})" for bound in bounds) if len(bounds) > 1 else "".join(bounds)


def _spread(axis: int, rank: int) -> str:
    if rank == 1:
        return ""
    return f"[{', '.join(':' if a == axis else 'None' for a in range(rank))}]"


def _factor(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def load(variable: str, tile: Tile, axes: tuple[int, ...]) -> str:
    """``tl.load`` through pointers, with zeros beyond the bounds of the axes."""
    bound = mask(variable, tile, axes)
    return f"tl.load({pointers(variable, tile)}{f', mask={bound}, other=0' if bound else ''})"


def masked_axes(variable: str, tile: Tile, text: str) -> tuple[int, ...] | None:
    """The axes whose bounds a mask's text checks; None when it is no mask of this tile."""
    wanted, rank = " ".join(text.split()), len(tile.shape)
    for number in range(2**rank):
        axes = tuple(axis for axis in range(rank) if number >> axis & 1)
        if wanted == " ".join(mask(variable, tile, axes).split()):
            return axes
    return None


def same(text: str, other: str) -> bool:
    """Whether two texts differ in white space alone."""
    return " ".join(text.split()) == " ".join(other.split())


def nonnegative(offsets: Iterable[str]) -> None:
    """Raise NotApplicable where an index may be below zero, which only the object would mask."""
    for offset in offsets:
        if "-" in offset:
            raise NotApplicable(f"the offset {offset} may be below zero, which only the object would mask")
