"""Tiles that a block stages in shared memory are read from where they came from instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.cuda.code import (
    declarations,
    extents,
    has_kernel,
    launches,
    shared_arrays,
    subscripts,
)
from klineage.proposer.rules.cuda.shared_layout import equal_extent
from klineage.proposer.rules.rewritten import line_at, position
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_BARRIER = "__syncthreads();"
_AXIS = re.compile(r"threadIdx\.([xyz])")
_SIMPLE = re.compile(r"[\w.]+")
_EFFECTS = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")


@dataclass(frozen=True)
class _Tile:
    """One shared array: ``name[rows][columns]``, set by one statement at the thread's own place."""

    name: str
    element: str
    size: str  # "[rows][columns]"
    store: Node  # the statement
    place: str  # "[threadIdx.y][threadIdx.x]"
    value: str  # what is stored, as written
    full: str  # the same with every local that depends on the thread written out
    axes: tuple[str, ...]  # of the thread, one an index
    reads: tuple[tuple[Node, tuple[str, ...]], ...]  # (the access, its indices)


@dataclass(frozen=True)
class _Staging:
    tiles: tuple[_Tile, ...]
    declarations: tuple[Node, ...]
    barriers: tuple[Node, ...]


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in unit.functions if has_kernel(unit) else ():
        arrays = shared_arrays(unit, function)
        if not function.jit or not any(len(extents(node)) == 2 for node in arrays.values()):
            continue
        try:
            settings = _settings(unit, _staging(kernel, function))
        except NotApplicable:
            settings = {}  # removing says why
        sites.append(Site(function.locus, (Feature(function.locus, "smem_staging"),), settings))
    return tuple(sites)


def _settings(unit: Unit, found: _Staging) -> dict[str, str]:
    gone = [*found.declarations, *(t.store for t in found.tiles), *found.barriers]
    settings = {
        f"declaration.{number}": f"{_flat(unit.text(node))} as {position(unit, node, gone)}"
        for number, node in enumerate(found.declarations, start=1)
    }
    for tile in found.tiles:
        settings[tile.name] = f"{tile.place} = {_flat(tile.value)} as {position(unit, tile.store, gone)}"
        reads = dict.fromkeys(f"[{']['.join(indices)}]" for _, indices in tile.reads)
        settings[f"{tile.name}.reads"] = "; ".join(reads)
        if _wrapped(unit, tile.store):
            settings[f"{tile.name}.layout"] = "wrapped"
    for number, barrier in enumerate(found.barriers, start=1):
        settings[f"barrier.{number}"] = f"{_BARRIER} as {position(unit, barrier, gone)}"
    return settings


def _wrapped(unit: Unit, store: Node) -> bool:
    """Whether a statement goes on after its ``=`` on a second line, four columns further in."""
    lines = unit.source[store.start_byte : store.end_byte].splitlines()
    deeper = unit.indent(store.start_byte) + b"    "
    return (
        len(lines) == 2
        and lines[0].endswith(b" =")
        and lines[1].startswith(deeper)
        and lines[1][len(deeper)] != b" "[0]
    )


def _staging(kernel: Kernel, function: Function) -> _Staging:
    unit = parse_kernel(kernel)
    arrays = {name: node for name, node in shared_arrays(unit, function).items()}
    declared = sorted({n.parent for n in arrays.values() if n.parent is not None}, key=lambda n: n.start_byte)
    held = sum(len(node.children_by_field_name("declarator")) for node in declared)
    if held != len(arrays) or any(len(extents(node)) != 2 for node in arrays.values()):
        raise NotApplicable("shared memory holds more than tiles of two extents")
    tiles = tuple(_tile(kernel, function, name, node) for name, node in arrays.items())
    blocks = {t.store.parent for t in tiles}
    block = next(iter(blocks)) if len(blocks) == 1 else None
    inside = [c for c in block.named_children if c.type != "comment"] if block is not None else []
    barriers = [
        n for n in walk(function.body) if n.type == "expression_statement" and unit.text(n) == _BARRIER
    ]
    ours = [c for c in inside if any(c == b for b in barriers)]
    if len(barriers) != 2 or len(ours) != 2 or ours[1] != inside[-1]:
        raise NotApplicable(
            "the tiles are not between one barrier behind them and one at the end of the loop"
        )
    first, last = inside.index(ours[0]), len(inside) - 1
    stored = [inside.index(t.store) for t in tiles]
    reads = [access for t in tiles for access, _ in t.reads]
    between = inside[first + 1 : last]
    if max(stored) > first or not all(
        any(s.start_byte <= r.start_byte < s.end_byte for s in between) for r in reads
    ):
        raise NotApplicable("a tile is read before the barrier behind it")
    _refuse_changed(unit, function, tiles, between)
    texts = [text for t in tiles for text in {_read(t.full, t.axes, indices) for _, indices in t.reads}]
    if len(set(texts)) != len(texts):
        raise NotApplicable("two tiles hold the same, so that their reads could not be told apart again")
    return _Staging(tiles, tuple(declared), tuple(ours))


def _refuse_changed(unit: Unit, function: Function, tiles: tuple[_Tile, ...], between: list[Node]) -> None:
    """Raise NotApplicable where a name means something else, or memory is changed, before the tile is read."""
    inner = {
        n
        for s in between
        for node in walk(s)
        if node.type == "init_declarator"
        for n in _names(unit, node)[:1]
    }
    written = set()
    for node in walk(function.body):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is not None and left.type in ("subscript_expression", "pointer_expression"):
            written |= set(_names(unit, left)[:1])
    for tile in tiles:
        words = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", tile.full))
        if words & inner:
            raise NotApplicable(f"{min(words & inner)} means something else where {tile.name} is read")
        if words & written - {t.name for t in tiles}:
            raise NotApplicable(f"{min(words & written)} is written by the kernel that stages it")


def _names(unit: Unit, node: Node) -> list[str]:
    return [unit.text(n) for n in walk(node) if n.type == "identifier"]


def _tile(kernel: Kernel, function: Function, name: str, declarator: Node) -> _Tile:
    unit = parse_kernel(kernel)
    if subscripts(unit, function, name) is None:
        raise NotApplicable(f"{name} is not only used element by element")
    stores, reads = [], []
    for access, indices in _accesses(unit, function, name):
        parent = access.parent
        assigned = (
            parent is not None
            and parent.type == "assignment_expression"
            and parent.child_by_field_name("left") == access
        )
        if assigned and parent is not None:
            stores.append((parent, indices))
        else:
            reads.append((access, tuple(unit.text(i) for i in indices)))
    statement = stores[0][0].parent if len(stores) == 1 else None
    value = stores[0][0].child_by_field_name("right") if len(stores) == 1 else None
    sign = stores[0][0].child_by_field_name("operator") if len(stores) == 1 else None
    if (
        statement is None
        or value is None
        or sign is None
        or unit.text(sign) != "="
        or statement.type != "expression_statement"
    ):
        raise NotApplicable(f"{name} is not set by one statement alone")
    place = [unit.text(i) for i in stores[0][1]]
    axes = tuple(_axis(unit, function, text) for text in place)
    size = [unit.text(e) for e in extents(declarator)]
    if len(place) != 2 or len(set(axes)) != 2:
        raise NotApplicable(f"{name} is not set at the place of each thread")
    for axis, extent in zip(axes, size, strict=True):
        found = launches(kernel, function)
        if not found or not all(
            equal_extent(unit, launch.block["xyz".index(axis)], extent) for launch in found
        ):
            raise NotApplicable(f"the threads of a block do not set the whole of {name}")
    full = _written_out(unit, function, unit.text(value))
    if _EFFECTS.search(full) or re.search(rf"\b{name}\b|\b__sync\w+", full):
        raise NotApplicable(f"what {name} is set to has effects of its own")
    type_node = declarator.parent.child_by_field_name("type") if declarator.parent is not None else None
    element = unit.text(type_node) if type_node is not None else ""
    return _Tile(
        name,
        element,
        f"[{']['.join(size)}]",
        statement,
        f"[{']['.join(place)}]",
        unit.text(value),
        full,
        axes,
        tuple(reads),
    )


def _accesses(unit: Unit, function: Function, name: str) -> list[tuple[Node, list[Node]]]:
    """(outermost subscript, its indices) of every access to an array."""
    found = []
    for node in walk(function.body):
        if node.type != "identifier" or unit.text(node) != name:
            continue
        outer, indices = node, []
        while (
            outer.parent is not None
            and outer.parent.type == "subscript_expression"
            and outer.parent.children[0] == outer
        ):
            outer = outer.parent
            listing = outer.child_by_field_name("indices")
            indices += listing.named_children if listing is not None else []
        if indices:
            found.append((outer, indices))
    return found


def _axis(unit: Unit, function: Function, text: str) -> str:
    match = _AXIS.fullmatch(_constants(unit, function).get(text, text))
    if match is None:
        raise NotApplicable(f"{text} is not the thread's own number")
    return match[1]


def _constants(unit: Unit, function: Function) -> dict[str, str]:
    """The ``const`` locals of a function that are set once, with what they are set to."""
    found: dict[str, list[str]] = {}
    for name, declarator, node in declarations(unit, function):
        value = declarator.child_by_field_name("value")
        constant = any(c.type == "type_qualifier" and unit.text(c) == "const" for c in node.children)
        if value is not None and constant and node.type == "declaration":
            found.setdefault(name, []).append(unit.text(value))
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _written_out(unit: Unit, function: Function, value: str) -> str:
    """An expression with every local that depends on the thread replaced by what it is set to."""
    known = _constants(unit, function)
    dependent = {n for n, text in known.items() if _AXIS.search(text)}
    while more := {n for n, text in known.items() if n not in dependent and _mentions(text, dependent)}:
        dependent |= more
    text = value
    for _ in range(8):  # a local that is computed from a local that ...
        name = next((n for n in sorted(dependent) if _mentions(text, {n})), None)
        if name is None:
            return _flat(text)
        text = re.sub(rf"(?<![\w.]){name}\b", _bracketed(known[name]).replace("\\", r"\\"), text)
    raise NotApplicable(f"{value} depends on the thread in too many steps")


def _mentions(text: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<![\w.]){name}\b", text) for name in names)


def _bracketed(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _read(full: str, axes: tuple[str, ...], indices: tuple[str, ...]) -> str:
    """What an element is: the stored expression of the thread whose place it is."""
    threads = dict(zip(axes, indices, strict=True))
    text = _AXIS.sub(lambda m: _bracketed(threads[m[1]]) if m[1] in threads else m[0], full)
    return f"({text})"


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    found = _staging(kernel, function)
    gone = [*found.declarations, *(t.store for t in found.tiles), *found.barriers]
    edits = [Edit(*unit.lines_of(node)) for node in gone]
    for tile in found.tiles:
        for access, indices in tile.reads:
            text = _read(tile.full, tile.axes, indices)
            edits.append(Edit(access.start_byte, access.end_byte, text.encode("utf-8", "surrogateescape")))
    _settings(unit, found)
    return Rewrite(merge_edits(edits))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None:
        raise NotApplicable("no such function")
    lines: dict[int, bytes] = {}
    edits: list[Edit] = []
    names = [n for n in settings if f"{n}.reads" in settings]
    declared, barriers = (
        [value for name, value in settings.items() if name.startswith(kind)]
        for kind in ("declaration.", "barrier.")
    )
    if not declared or not names:
        raise NotApplicable("the step records no tile")
    for text in (*declared, *_stores(settings, names), *barriers):
        match = re.fullmatch(r"(.+) as statement (\d+) of (.+)", text)
        if match is None:
            raise NotApplicable(f"{text!r} says nowhere to put it")
        at, indent, newline = line_at(unit, match[3], int(match[2]))
        line = match[1].encode("utf-8", "surrogateescape")
        if f"{match[1].partition('[')[0]}.layout" in settings:
            line = line.replace(b" = ", b" =" + newline + indent + b"    ", 1)
        lines[at] = lines.get(at, b"") + indent + line + newline
    for name in names:
        edits += _reads(unit, function, name, settings)
    return merge_edits(edits, [Edit(at, at, text) for at, text in lines.items()])


def _stores(settings: Mapping[str, str], names: list[str]) -> list[str]:
    return [re.sub(r" as (statement \d+ of .+)$", r"; as \1", f"{name}{settings[name]}") for name in names]


def _reads(unit: Unit, function: Function, name: str, settings: Mapping[str, str]) -> list[Edit]:
    """Reads of the tile in place of what its elements are."""
    place, _, rest = settings[name].partition(" = ")
    value = rest.rpartition(" as ")[0]
    axes = tuple(_axis(unit, function, text) for text in place[1:-1].split("]["))
    full = _written_out(unit, function, value)
    edits = []
    for read in settings[f"{name}.reads"].split("; "):
        indices = tuple(read[1:-1].split("]["))
        wanted = _read(full, axes, indices)
        for node in walk(function.body):
            if node.type == "parenthesized_expression" and _flat(unit.text(node)) == wanted:
                text = f"{name}[{']['.join(indices)}]".encode("utf-8", "surrogateescape")
                edits.append(Edit(node.start_byte, node.end_byte, text))
    if not edits:
        raise NotApplicable(f"nothing reads what {name} would hold")
    return edits


STAGING = Rule(
    name="shared-staging",
    action="smem_staging",
    surface="cuda",
    title="Read tiles from global memory",
    adds="Stage tiles in shared memory",
    at="The loop in which several threads of a block load the same elements",
    rationale="A block loads each element of a tile once and all its threads read it from shared memory; without "
    "that, every thread that needs an element loads it for itself.",
    preconditions=(
        "Storage: the tiles fit in shared memory, and each element is read by several threads of the block.",
        "Layout: the threads of a block load neighbours, whatever the order in which they read.",
        "Pipeline: a barrier stands behind the loads, and one before the tile is written again.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll", "double_buffer", "swizzle", "async_copy", "pipeline"),
)
