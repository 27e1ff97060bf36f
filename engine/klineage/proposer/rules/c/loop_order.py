"""A sum whose loop runs outside the loop over its results becomes one sum a result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import place_of
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Unit, parse_kernel, walk

_SUM = "sum"
_ELEMENTS = ("float", "double", "int32_t", "int64_t", "int")


@dataclass(frozen=True)
class _Order:
    """``for (j) y = 0; for (p) for (j) y += e;`` and the pieces of it."""

    zero: Node  # the loop that clears
    outer: Node
    over: str  # the header of the loop over results
    sums: str  # the header of the loop over the sum
    result: str
    start: str
    term: str
    inner: Node


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for locus, node in unit.loci.items():
        order = _order(unit, node)
        if order is not None and any(f.exported for f in unit.functions):
            sites.append(Site(_home(locus), (Feature(_home(locus), "loop_order"),), _settings(unit, order)))
    return tuple({site.locus: site for site in sites}.values())


def _home(locus: str) -> str:
    """The place around the two loops, which is there before and after."""
    return locus.rpartition("/")[0]


def _settings(unit: Unit, order: _Order) -> dict[str, str]:
    settings = {"result": order.result, "start": order.start}
    if unit.line(order.inner.start_byte) == unit.line(order.outer.start_byte):
        settings["layout"] = "one line"
    return settings


def _order(unit: Unit, outer: Node) -> _Order | None:
    """The loop over the sum, behind the loop that clears what it adds to."""
    zero = outer.prev_named_sibling
    inner = _only(outer)
    if outer.type != "for_statement" or zero is None or zero.type != "for_statement" or inner is None:
        return None
    cleared, added = _only(zero), _only(inner) if inner.type == "for_statement" else None
    first = re.fullmatch(r"(.+?) = (0(?:\.0f?)?);", unit.text(cleared)) if cleared is not None else None
    second = re.fullmatch(r"(.+?) \+= (.+);", unit.text(added), re.DOTALL) if added is not None else None
    over, again, sums = (_header(unit, loop) for loop in (zero, inner, outer))
    if first is None or second is None or over != again or first[1] != second[1]:
        return None
    counter = re.search(r"(\w+) =", sums)
    if counter is None or re.search(rf"\b{counter[1]}\b", first[1]):
        return None
    return _Order(zero, outer, over, sums, first[1], first[2], second[2], inner)


def _only(loop: Node) -> Node | None:
    """The one statement of a loop's body, in braces or not."""
    body = loop.child_by_field_name("body")
    if body is None or body.type != "compound_statement":
        return body
    inside = body.named_children
    return inside[0] if len(inside) == 1 else None


def _header(unit: Unit, loop: Node) -> str:
    body = loop.child_by_field_name("body")
    end = body.start_byte if body is not None else loop.end_byte
    return " ".join(unit.source[loop.start_byte : end].decode("utf-8", "surrogateescape").split())


def _element(unit: Unit, locus: str, result: str) -> str:
    """The type of what a result is an element of."""
    function, base = unit.function_at(locus), re.split(r"\W", result)[0]
    for node in walk(function.node) if function is not None else ():
        declared, kind = node.child_by_field_name("declarator"), node.child_by_field_name("type")
        if node.type not in ("parameter_declaration", "declaration") or declared is None or kind is None:
            continue
        named = any(n.type == "identifier" and unit.text(n) == base for n in walk(declared))
        if named and unit.text(kind) in _ELEMENTS:
            return unit.text(kind)
    raise NotApplicable(f"the type of {result} is not known")


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    found = [o for p, n in unit.loci.items() if _home(p) == site.locus and (o := _order(unit, n)) is not None]
    if len(found) != 1:
        raise NotApplicable(f"{place_of(unit, site.locus)} has {len(found)} such sums, not one")
    order = found[0]
    function = unit.function_at(site.locus)
    if function is not None and re.search(rf"\b{_SUM}\b", unit.text(function.node)):
        raise NotApplicable(f"the name {_SUM!r} is taken")
    indent, newline = unit.indent(order.zero.start_byte), unit.newline(order.zero.start_byte)
    deeper = indent + (b"\t" if indent.startswith(b"\t") else b"    ")
    step = deeper[len(indent) :]
    lines = [
        indent + f"{order.over} {{".encode("utf-8", "surrogateescape"),
        deeper
        + f"{_element(unit, site.locus, order.result)} {_SUM} = {order.start};".encode(
            "utf-8", "surrogateescape"
        ),
        deeper + order.sums.encode("utf-8", "surrogateescape"),
        deeper + step + f"{_SUM} += {order.term};".encode("utf-8", "surrogateescape"),
        deeper + f"{order.result} = {_SUM};".encode("utf-8", "surrogateescape"),
        indent + b"}",
    ]
    start = unit.line_start(order.zero.start_byte)
    return Rewrite((Edit(start, order.outer.end_byte, newline.join(lines)),))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    result, begin = setting(settings, "result"), setting(settings, "start")
    for place, loop in unit.loci.items():
        body = (
            loop.child_by_field_name("body")
            if loop.type == "for_statement" and _home(place) == locus
            else None
        )
        inside = body.named_children if body is not None and body.type == "compound_statement" else []
        if (
            len(inside) != 3
            or inside[1].type != "for_statement"
            or unit.text(inside[2]) != f"{result} = {_SUM};"
        ):
            continue
        added = _only(inside[1])
        term = re.fullmatch(rf"{_SUM} \+= (.+);", unit.text(added), re.DOTALL) if added is not None else None
        if term is None or not re.fullmatch(rf"\w+ {_SUM} = 0(?:\.0f?)?;", unit.text(inside[0])):
            continue
        indent, newline = unit.indent(loop.start_byte), unit.newline(loop.start_byte)
        step = b"\t" if indent.startswith(b"\t") else b"    "
        over, sums = _header(unit, loop), _header(unit, inside[1])
        lines = [
            f"{over}".encode("utf-8", "surrogateescape"),
            indent + step + f"{result} = {begin};".encode("utf-8", "surrogateescape"),
            indent + sums.encode("utf-8", "surrogateescape"),
            indent + step + over.encode("utf-8", "surrogateescape"),
            indent + step + step + f"{result} += {term[1]};".encode("utf-8", "surrogateescape"),
        ]
        text = newline.join(lines)
        around = loop.parent
        if around is None or around.type == "compound_statement":
            return (Edit(loop.start_byte, loop.end_byte, text),)
        # The only statement of the loop around it: two need braces.
        head = max(c.end_byte for c in around.children if c.end_byte <= loop.start_byte)
        close = newline + unit.indent(around.start_byte) + b"}"
        return (Edit(head, loop.end_byte, b" {" + newline + indent + text + close),)
    raise NotApplicable(f"{place_of(unit, locus)} computes no {result} by a sum of its own")


LOOP_ORDER = Rule(
    name="loop-order",
    action="loop_order",
    surface="c",
    title="Compute one sum a result",
    adds="Run the sum outside the loop over results",
    at="A sum as the innermost loop, inside the loop over results",
    rationale="With the loop over results innermost, each step reads and writes neighbours in memory and can be "
    "vectorised; with one sum a result, the inner loop strides through an operand and adds in a chain.",
    preconditions=(
        "Layout: results of neighbouring iterations are neighbours in memory, and so is what they read.",
        "Storage: the results of one pass stay in a cache until the sum is complete.",
        "Pipeline: results are cleared first, and nobody else adds to them.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("thread_parallel", "unroll", "simd", "cache_block"),
    known={
        "Storage": Known("row_bytes() <= cache_2"),
    },
)
