"""Two buffers in shared memory, one filled while the other is read, become one that is filled and then read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import arguments, node_at, place_of
from klineage.proposer.rules.cuda.code import extents, has_kernel, shared_arrays
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_BARRIER = "__syncthreads();"


@dataclass(frozen=True)
class _Buffers:
    """``fill(0, 0); barrier; for (t ...) { now = t & 1; if (t + 1 < n) fill(now ^ 1, t + 1); ...; barrier }``."""

    arrays: tuple[Node, ...]  # the declarators of what is doubled
    first: Node  # the call in front of the loop
    barrier: Node  # behind it
    loop: Node
    ahead: Node  # the statement that fills the other buffer
    choice: Node  # the initial value of the buffer's number
    name: str  # of the buffer's number
    tile: str
    filled: str  # the call with _ for the buffer and the tile


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in unit.functions if has_kernel(unit) else ():
        if not _doubled(unit, function):
            continue
        locus = function.locus
        try:
            found = _buffers(unit, function)
            settings = {
                "arrays": " ".join(_array_name(unit, a) for a in found.arrays),
                "loop": place_of(unit, next(p for p, n in unit.loci.items() if n == found.loop)),
                "fill": found.filled,
                "now": f"{found.name} = {unit.text(found.choice)}",
                "ahead": unit.text(found.ahead).partition(")")[0] + ")",
            }
        except NotApplicable:
            settings = {}  # removing says why
        sites.append(Site(locus, (Feature(locus, "double_buffer"),), settings))
    return tuple(sites)


def _doubled(unit: Unit, function: Function) -> list[Node]:
    """The shared arrays of two tiles: the first of several extents is 2."""
    arrays = shared_arrays(unit, function).values()
    return [a for a in arrays if len(extents(a)) > 1 and unit.text(extents(a)[0]) == "2"]


def _array_name(unit: Unit, declarator: Node) -> str:
    return next(unit.text(n) for n in walk(declarator) if n.type == "identifier")


def _buffers(unit: Unit, function: Function) -> _Buffers:
    body = [c for c in function.body.named_children if c.type != "comment"]
    for index, loop in enumerate(body):
        if loop.type != "for_statement" or index < 2 or unit.text(body[index - 1]) != _BARRIER:
            continue
        first, block = body[index - 2], loop.child_by_field_name("body")
        tile, limit = _counted(unit, loop)
        inside = [c for c in block.named_children if c.type != "comment"] if block is not None else []
        if _call(first) is None or not tile or len(inside) < 3 or unit.text(inside[-1]) != _BARRIER:
            continue
        name, choice = _number(unit, inside[0], tile)
        filled = _ahead(unit, inside[1], first, (name, tile, limit))
        _refuse_others(unit, function, loop, name, _call_name(unit, first))
        arrays = tuple(_doubled(unit, function))
        return _Buffers(arrays, first, body[index - 1], loop, inside[1], choice, name, tile, filled)
    raise NotApplicable(
        "no loop behind a first fill and a barrier that fills the other buffer, reads its own, and ends in a barrier"
    )


def _counted(unit: Unit, loop: Node) -> tuple[str, str]:
    """(variable, limit) of ``for (int t = 0; t < n; t++)``; empty for another loop."""
    parts = [loop.child_by_field_name(n) for n in ("initializer", "condition", "update")]
    texts = [" ".join(unit.text(p).split()) if p is not None else "" for p in parts]
    begin, bound = re.fullmatch(r"\w+ (\w+) = 0;", texts[0]), re.fullmatch(r"(\w+) < (\w+)", texts[1])
    if (
        begin is None
        or bound is None
        or begin[1] != bound[1]
        or texts[2] not in (f"{begin[1]}++", f"++{begin[1]}")
    ):
        return "", ""
    return bound[1], bound[2]


def _call(statement: Node) -> Node | None:
    call = (
        statement.named_children[0]
        if statement.type == "expression_statement" and statement.named_children
        else None
    )
    return call if call is not None and call.type == "call_expression" else None


def _call_name(unit: Unit, statement: Node) -> str:
    call = _call(statement)
    callee = call.child_by_field_name("function") if call is not None else None
    return unit.text(callee) if callee is not None else ""


def _number(unit: Unit, statement: Node, tile: str) -> tuple[str, Node]:
    """(name, value) of ``const int now = t & 1;`` or ``t % 2``."""
    declared = statement.child_by_field_name("declarator") if statement.type == "declaration" else None
    name = declared.child_by_field_name("declarator") if declared is not None else None
    value = declared.child_by_field_name("value") if declared is not None else None
    if name is None or value is None or unit.text(value) not in (f"{tile} & 1", f"{tile} % 2"):
        raise NotApplicable("the loop does not begin with the number of its buffer")
    return unit.text(name), value


def _ahead(unit: Unit, statement: Node, first: Node, loop: tuple[str, str, str]) -> str:
    """The call with holes, when ``if (t + 1 < n) fill(now ^ 1, t + 1)`` differs from the first in these alone."""
    now, tile, limit = loop
    condition = statement.child_by_field_name("condition") if statement.type == "if_statement" else None
    inner = statement.child_by_field_name("consequence")
    other = statement.child_by_field_name("alternative")
    if (
        condition is None
        or inner is None
        or other is not None
        or unit.text(condition) != f"({tile} + 1 < {limit})"
    ):
        raise NotApplicable("the other buffer is not filled under the condition that there is a next tile")
    calls = [_call(first), _call(inner)]
    if calls[0] is None or calls[1] is None or _call_name(unit, first) != _call_name(unit, inner):
        raise NotApplicable("the first fill and the later ones are not calls of one function")
    given = [[unit.text(a) for a in arguments(c)] for c in calls if c is not None]
    holes, buffers, tiles = [], 0, 0
    for one, later in zip(*given, strict=False):
        buffer = one == "0" and later in (f"{now} ^ 1", f"1 - {now}")
        ahead = one == "0" and later == f"{tile} + 1"
        if not (buffer or ahead or one == later):
            raise NotApplicable(f"the first fill has {one} where later ones have {later}")
        buffers, tiles = buffers + buffer, tiles + ahead
        holes.append("_buffer" if buffer else "_tile" if ahead else one)
    if len(given[0]) != len(given[1]) or (buffers, tiles) != (1, 1):
        raise NotApplicable("a fill is not told its buffer and its tile, each once")
    return f"{_call_name(unit, first)}({', '.join(holes)});"


def _refuse_others(unit: Unit, function: Function, loop: Node, name: str, fill: str) -> None:
    """Raise NotApplicable when the other buffer is named anywhere but in the fill ahead, or tiles are filled elsewhere."""
    text = unit.text(loop)
    if re.search(rf"\b{name}\s*\^|1\s*-\s*{name}\b", re.sub(rf"\b{re.escape(fill)}\([^;]*;", "", text)):
        raise NotApplicable(f"the loop reads the buffer that is being filled, {name} ^ 1")
    if len(re.findall(rf"\b{re.escape(fill)}\s*\(", unit.text(function.body))) != 2:
        raise NotApplicable(f"{fill} is called somewhere else too")
    if any(n.type in ("break_statement", "continue_statement", "return_statement") for n in walk(loop)):
        raise NotApplicable("the loop over tiles is left early")


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    found = _buffers(unit, function)
    indent, newline = unit.indent(found.ahead.start_byte), unit.newline(found.ahead.start_byte)
    fill = found.filled.replace("_buffer", "0").replace("_tile", found.tile)
    text = fill.encode("utf-8", "surrogateescape") + newline + indent + _BARRIER.encode()
    edits = [
        Edit(*unit.lines_of(found.first)),
        Edit(*unit.lines_of(found.barrier)),
        Edit(found.choice.start_byte, found.choice.end_byte, b"0"),
        Edit(found.ahead.start_byte, found.ahead.end_byte, text),
    ]
    edits += [Edit(extents(a)[0].start_byte, extents(a)[0].end_byte, b"1") for a in found.arrays]
    return Rewrite(merge_edits(edits))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function, loop = unit.function_at(locus), node_at(unit, setting(settings, "loop"))
    fill, (name, _, choice) = setting(settings, "fill"), setting(settings, "now").partition(" = ")
    block, (tile, _) = loop.child_by_field_name("body"), _counted(unit, loop)
    inside = [c for c in block.named_children if c.type != "comment"] if block is not None else []
    single = fill.replace("_buffer", "0").replace("_tile", tile)
    if function is None or len(inside) < 4 or [unit.text(c) for c in inside[1:3]] != [single, _BARRIER]:
        raise NotApplicable(f"the loop does not fill its buffer by {single!r} and a barrier")
    declared = inside[0].child_by_field_name("declarator")
    value = declared.child_by_field_name("value") if declared is not None else None
    if value is None or not unit.text(inside[0]).endswith(f"{name} = 0;"):
        raise NotApplicable(f"the loop does not begin with the number of its buffer, {name}")
    ahead = f"{setting(settings, 'ahead')} {fill}".replace("_buffer", f"{name} ^ 1").replace(
        "_tile", f"{tile} + 1"
    )
    first = fill.replace("_buffer", "0").replace("_tile", "0")
    indent, newline = unit.indent(loop.start_byte), unit.newline(loop.start_byte)
    at = unit.line_start(loop.start_byte)
    lines = [indent + line.encode("utf-8", "surrogateescape") + newline for line in (first, _BARRIER)]
    edits = [
        Edit(at, at, b"".join(lines)),
        Edit(value.start_byte, value.end_byte, choice.encode("utf-8", "surrogateescape")),
        Edit(inside[1].start_byte, inside[2].end_byte, ahead.encode("utf-8", "surrogateescape")),
    ]
    arrays = shared_arrays(unit, function)
    for array in setting(settings, "arrays").split():
        if array not in arrays or unit.text(extents(arrays[array])[0]) != "1":
            raise NotApplicable(f"there is no array {array!r} of one tile")
        edits.append(Edit(extents(arrays[array])[0].start_byte, extents(arrays[array])[0].end_byte, b"2"))
    return tuple(sorted(edits))


DOUBLE_BUFFER = Rule(
    name="double-buffer",
    action="double_buffer",
    surface="cuda",
    title="Fill one buffer, then read it",
    adds="Fill one buffer while the other is read",
    at="The loop that fills a shared tile, waits, and computes with it",
    rationale="With two buffers the loads of the next tile run while this one is computed with, and one barrier a "
    "tile is enough; with one, every tile is loaded, waited for, and only then used.",
    preconditions=(
        "Storage: two tiles of everything that is staged fit in shared memory.",
        "Pipeline: a tile's loads depend on nothing that the tile before computes.",
        "Hardware: loads that are in flight while others compute.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll", "async_copy", "swizzle"),
)
