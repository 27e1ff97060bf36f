"""Mechanisms of CUDA kernels that show in the form of the code: casts, loops, arrays, templates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.proposer.features.finding import Cue
from klineage.proposer.features.words import Reading, Word
from klineage.surface.tree import ancestors, walk

_WIDE = re.compile(r"(?:u?(?:int|long|longlong|short|char)|float|double)[248]|(?:u?int)(?:128|64)_t|__int128")
_LOOPS = ("for_statement", "while_statement", "do_statement")
_TYPES = ("type_identifier", "primitive_type", "identifier")


def shapes(reading: Reading) -> Iterator[Cue]:
    """Everything that no single word tells."""
    yield from _vectors(reading)
    yield from _loops(reading)
    yield from _roles(reading)
    yield from _shared(reading)
    yield from _templates(reading)
    yield from _own_arrays(reading)


def _vectors(reading: Reading) -> Iterator[Cue]:
    """Pointers cast to a type that is wider than an element: ``float4``, or an aligned struct with an array in it."""
    unit = reading.unit
    packs: dict[str, bool] = {}  # name -> whether a template parameter may size it
    for node in reading.nodes:
        if (name := _aligned_pack(reading, node)) is not None:
            packs[unit.text(name)] = any(n.type == "template_declaration" for n in ancestors(node))
    for node in reading.nodes:
        target = _cast_to(reading, node)
        if target is None or "*" not in unit.text(target) or not reading.live(node):
            continue
        words = [unit.text(n) for n in walk(target) if n.type in _TYPES]
        wide = next((w for w in words if _WIDE.fullmatch(w) or w in packs), None)
        if wide is not None:
            doubt = "its width is a parameter, which may be one" if packs.get(wide) else ""
            cue = reading.cue("vectorize", node.start_byte, f"a pointer to {wide}", doubt)
            yield reading.guarded(cue, reading.condition(node))
    doubt = "the type may hold values without moving them at once"
    for word in reading.words:
        if (
            _WIDE.fullmatch(word.text)
            and word.text.endswith("4")
            and not (_made(reading, word) or _only_aligns(reading, word))
        ):
            yield reading.cue("vectorize", word.offset, word.text, doubt)


def _only_aligns(reading: Reading, word: Word) -> bool:
    """Whether a type only aligns dynamic shared memory, of which no element is used: ``extern __shared__ uint4 room[];``."""
    source = reading.kernel.source
    named = re.match(rb"\w+\s+(\w+)\s*\[\s*\]", source[word.offset : word.offset + 200])
    if named is None or not re.search(rb"\bextern\s+__shared__\s+(?:\w+\s+)*$", source[: word.offset]):
        return False
    return len(re.findall(rb"\b" + named[1] + rb"\s*\[", source)) == 1


def _made(reading: Reading, word: Word) -> bool:
    """Whether a type is that of a value which is put together from its parts: ``float4 v = make_float4(...)``."""
    after = reading.kernel.source[word.offset : word.offset + 200]
    return re.match(rb"(\w+)\s+\w+\s*=\s*make_\1\s*\(", after) is not None


def _cast_to(reading: Reading, node: Node) -> Node | None:
    """The type that a cast names, C's or C++'s; None for anything else."""
    if node.type == "cast_expression":
        return node.child_by_field_name("type")
    outer = node.parent if node.type == "template_argument_list" else None
    named = outer is not None and reading.unit.text(outer).startswith(("reinterpret_cast", "static_cast"))
    return node if named else None


def _aligned_pack(reading: Reading, node: Node) -> Node | None:
    """The name of a struct that is aligned and holds an array, or None."""
    if node.type != "struct_specifier" or not re.search(
        r"\b(?:alignas|__align__)\b", reading.unit.text(node)
    ):
        return None
    has_array = any(n.type == "array_declarator" for n in walk(node))
    return next((n for n in walk(node) if n.type == "type_identifier"), None) if has_array else None


def _loops(reading: Reading) -> Iterator[Cue]:
    """Loops whose blocks go on to further tiles, and those that a whole grid strides through."""
    unit = reading.unit
    for node in reading.nodes:
        update = node.child_by_field_name("update") if node.type == "for_statement" else None
        start = node.child_by_field_name("initializer") if node.type == "for_statement" else None
        if update is None or start is None or not reading.live(node):
            continue
        advance, begins = unit.text(update), unit.text(start)
        if "gridDim" not in advance or "blockIdx" not in begins:
            continue
        strided = "blockDim" in advance
        doubt = "the grid strides over elements, which also lets one launch serve any size" if strided else ""
        yield reading.cue(
            "persistent_schedule",
            node.start_byte,
            f"a loop that goes on by {advance.split('=')[-1].strip()}",
            doubt,
        )


def _group_number(reading: Reading, node: Node) -> Node | None:
    """The name that is given the number of a warp (``threadIdx.x / 32``), or None."""
    value = node.child_by_field_name("value") if node.type == "init_declarator" else None
    number = value is not None and re.fullmatch(
        r"\(*\s*threadIdx\.[xyz]\s*(?:/|>>)\s*\w+\s*\)*", reading.unit.text(value)
    )
    return node.child_by_field_name("declarator") if number else None


def _roles(reading: Reading) -> Iterator[Cue]:
    """Two branches on the number of a warp, or of a group of warps, each with a loop of its own."""
    unit = reading.unit
    groups = {unit.text(name) for node in reading.nodes if (name := _group_number(reading, node)) is not None}
    for node in reading.nodes:
        asked = node.child_by_field_name("condition") if node.type == "if_statement" else None
        parts = [node.child_by_field_name(part) for part in ("consequence", "alternative")]
        if asked is None or None in parts or not reading.live(node):
            continue
        if not any(n.type == "identifier" and unit.text(n) in groups for n in walk(asked)):
            continue
        if all(any(n.type in _LOOPS for n in walk(part)) for part in parts if part is not None):
            doubt = "they may do the same work on other data"
            yield reading.cue(
                "warp_specialize", node.start_byte, "warps in two branches, each with a loop", doubt
            )


def _shared(reading: Reading) -> Iterator[Cue]:
    """Arrays in shared memory: tiles, padding, two buffers, and permuted columns."""
    arrays: set[str] = set()
    for node in reading.nodes:
        if node.type != "declaration" or not reading.live(node):
            continue
        if not any(reading.unit.text(c) == "__shared__" for c in node.children):
            continue
        for array in (c for c in walk(node) if c.type == "array_declarator" and _outermost(c)):
            name, extents = _array(reading, array)
            arrays.add(name)
            yield from _shared_array(reading, node, name, extents)
    yield from _permuted(reading, arrays)


def _shared_array(reading: Reading, node: Node, name: str, extents: list[str]) -> Iterator[Cue]:
    what = f"__shared__ {name}{''.join(f'[{e}]' for e in extents)}"
    scratch = "" if len(extents) > 1 else "it may be scratch of a reduction"
    yield reading.cue("smem_staging", node.start_byte, what, scratch)
    if any(re.search(r"\+\s*(?:\d+|\w*PAD\w*)\s*$", e, re.IGNORECASE) for e in extents[1:]):
        yield reading.cue("swizzle", node.start_byte, what)
    if extents[:1] == ["2"] and len(extents) > 1:
        yield reading.cue("double_buffer", node.start_byte, what, "two of a kind need not take turns")


def _permuted(reading: Reading, arrays: set[str]) -> Iterator[Cue]:
    """Indices of shared arrays with ``^``: certain where only part of a number is mixed in."""
    for node in reading.nodes:
        base = node.child_by_field_name("argument") if node.type == "subscript_expression" else None
        if base is None or not reading.live(node):
            continue
        if not any(reading.unit.text(n) in arrays for n in walk(base)):
            continue
        mixed = [n for n in walk(node) if n.type == "binary_expression" and _operator(reading, n) == "^"]
        if mixed:
            masked = any(re.search(r"[&%]|>>|<<|/", reading.unit.text(n)) for n in mixed)
            doubt = "" if masked else "lanes that exchange values through memory do the same"
            yield reading.cue("swizzle", node.start_byte, "^ in an index of shared memory", doubt)


def _outermost(array: Node) -> bool:
    return array.parent is None or array.parent.type != "array_declarator"


def _operator(reading: Reading, node: Node) -> str:
    sign = node.child_by_field_name("operator")
    return reading.unit.text(sign) if sign is not None else ""


def _array(reading: Reading, array: Node) -> tuple[str, list[str]]:
    """(name, extents) of an array's declarator."""
    extents: list[str] = []
    inner: Node | None = array
    while inner is not None and inner.type == "array_declarator":
        size = inner.child_by_field_name("size")
        extents.insert(0, reading.unit.text(size) if size is not None else "")
        inner = inner.child_by_field_name("declarator")
    return (reading.unit.text(inner) if inner is not None else ""), extents


def _templates(reading: Reading) -> Iterator[Cue]:
    for node in reading.nodes:
        if node.type == "template_declaration" and any(
            c.type == "function_definition" for c in node.children
        ):
            inside = next(c for c in node.children if c.type == "function_definition")
            if reading.live(inside):
                doubt = "a template may serve one constant only, or keep the text short"
                yield reading.cue("templatize", node.start_byte, "a template", doubt)


def _own_arrays(reading: Reading) -> Iterator[Cue]:
    """Arrays of a thread's own, which live in registers when every index is known."""
    unit = reading.unit
    for node in reading.nodes:
        if node.type != "declaration" or reading.function_of(node) is None or not reading.live(node):
            continue
        if any(unit.text(c) in ("__shared__", "extern", "static") for c in node.children):
            continue
        for array in (c for c in node.named_children if c.type in ("array_declarator", "init_declarator")):
            found = array if array.type == "array_declarator" else array.child_by_field_name("declarator")
            if found is not None and found.type == "array_declarator":
                name, extents = _array(reading, found)
                what = f"{name}{''.join(f'[{e}]' for e in extents)}"
                yield reading.cue(
                    "register_tiling", node.start_byte, what, "it may hold one row and no tile of results"
                )
