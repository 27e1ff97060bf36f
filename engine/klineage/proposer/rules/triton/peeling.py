"""Peeled loops: whole blocks in a loop without masks, the rest in a masked one, become one masked loop."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    defined,
    delete_statements,
    jit_functions,
    keywords,
    mentions,
    names,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
    value_of,
)
from klineage.surface.lists import remove_elements
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, parse_kernel, walk


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        for first, second in _peeled(unit, function):
            locus = next(place for place, node in unit.loci.items() if node == first)
            settings = {"boundary": unit.text(_range(unit, second)[0])}
            if _header(unit, first, 2) != _header(unit, second, 2):
                settings["rest"] = _header(unit, second, 0)
            sites.append(Site(locus, (Feature(locus, "mask_specialize"),), settings))
    return tuple(sites)


def _peeled(unit: Unit, function: Function) -> list[tuple[Node, Node]]:
    """Neighbouring loops ``range(a, b, s)``, ``range(b, c, s)`` where the first is the second without
    its masks."""
    loops = [n for n in statements(function.body)]
    pairs = []
    for first, second in pairwise(loops):
        if first.type != "for_statement" or second.type != "for_statement":
            continue
        one, two = _range(unit, first), _range(unit, second)
        if (
            len(one) != 3
            or len(two) != 3
            or unit.text(one[1]) != unit.text(two[0])
            or two[0].type != "identifier"
        ):
            continue
        if unit.text(one[2]) != unit.text(two[2]) or not _live(unit, second):
            continue
        every = (_live(unit, second), _bounding(unit, second))
        bare = [_unmasked(unit, second, masks).decode("utf-8", "surrogateescape") for masks in every if masks]
        if _tokens(unit.text(_body(first))) in [_tokens(text) for text in bare]:
            pairs.append((first, second))
    return pairs


def _range(unit: Unit, loop: Node) -> list[Node]:
    right = loop.child_by_field_name("right")
    function = right.child_by_field_name("function") if right is not None and right.type == "call" else None
    if right is None or function is None or unit.text(function) not in ("range", "tl.range"):
        return []
    return positional(right)


def _header(unit: Unit, loop: Node, skip: int) -> str:
    """What a loop counts through, without the first ``skip`` arguments of the range."""
    right = loop.child_by_field_name("right")
    text = unit.text(right) if right is not None else ""
    return text.replace(", ".join(unit.text(b) for b in _range(unit, loop)[:skip]), "", 1) if skip else text


def _body(loop: Node) -> Node:
    body = loop.child_by_field_name("body")
    assert body is not None
    return body


def _tokens(text: str) -> list[str]:
    return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]


def _live(unit: Unit, loop: Node) -> dict[str, Node]:
    """Masks computed in the loop from its own variable: name to statement."""
    left = loop.child_by_field_name("left")
    found = {}
    for statement in statements(_body(loop)):
        pair = sides(statement)
        if pair is None or left is None or unit.text(left) not in names(unit, pair[1]):
            continue
        if tl_calls(unit, pair[1], "load"):
            continue  # its mask is written where it is used, and has no name
        if any(n.type == "comparison_operator" for n in walk(pair[1])):
            found[unit.text(pair[0])] = statement
    return found


def _bounding(unit: Unit, loop: Node) -> dict[str, Node]:
    """Of these masks the ones that hold in every whole block: they ask only whether the loop's end is reached.

    A causal mask asks something else, and stays.
    """
    end = _range(unit, loop)[1]
    parts = positional(end) if tl_call(unit, end) in ("minimum", "min") else [end]
    ends = [unit.text(part) for part in parts]
    return {name: s for name, s in _live(unit, loop).items() if all(_asks(unit, n, ends) for n in walk(s))}


def _asks(unit: Unit, node: Node, ends: list[str]) -> bool:
    """Whether a comparison, if it is one, is with an end or with what is left up to it."""
    if node.type != "comparison_operator":
        return True
    _, less, bound = unit.text(node).partition(" < ")
    return bool(less) and any(bound == end or bound.startswith(f"{end} - ") for end in ends)


def _unmasked(unit: Unit, loop: Node, live: Mapping[str, Node]) -> bytes:
    """The text of a loop's body without masks that the loop computes. Raises NotApplicable."""
    edits = [delete_statements(unit, list(live.values()))]
    for call in tl_calls(unit, _body(loop), "load", "store"):
        masks = keywords(unit, call)
        listing = call.child_by_field_name("arguments")
        if "mask" not in masks or listing is None or not names(unit, value_of(masks["mask"])) & set(live):
            continue
        edits.append(remove_elements(unit, listing, [k for n, k in masks.items() if n in ("mask", "other")]))
    for call in tl_calls(unit, _body(loop), "where"):
        given = positional(call)
        if len(given) == 3 and names(unit, given[0]) & set(live):
            keep = given[1]
            edits.append((Edit(call.start_byte, keep.start_byte), Edit(keep.end_byte, call.end_byte)))
    start, end = unit.line_start(_body(loop).start_byte), unit.lines_of(loop)[1]
    inside = [Edit(e.start - start, e.end - start, e.text) for e in merge_edits(*edits)]
    return apply_edits(unit.source[start:end], inside)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    pairs = _peeled(unit, function) if function is not None else []
    pair = next((p for p in pairs if unit.loci[site.locus] == p[0]), None)
    if function is None or pair is None:
        raise NotApplicable("no peeled loop at this place")
    first, second = pair
    boundary, end = _range(unit, first)[1], _range(unit, second)[1]
    uses = mentions(unit, function.body, unit.text(boundary))
    definitions = [s for s in statements(function.body) if unit.text(boundary) in defined(unit, s)]
    gone = definitions if len(definitions) == 1 and len(uses) == 3 else []
    return Rewrite(
        merge_edits(
            delete_statements(unit, gone),
            (
                Edit(
                    boundary.start_byte, boundary.end_byte, unit.text(end).encode("utf-8", "surrogateescape")
                ),
                Edit(unit.line_start(_body(first).start_byte), unit.line_start(_body(second).start_byte)),
            ),
        )
    )


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    loop, name = unit.loci.get(locus), setting(settings, "boundary")
    bounds = _range(unit, loop) if loop is not None and loop.type == "for_statement" else []
    live = _bounding(unit, loop) if loop is not None and len(bounds) == 3 else {}
    if loop is None or not live:
        raise NotApplicable("no masked loop over blocks here to peel")
    begin, end, step = (unit.text(b) for b in bounds)
    if begin != "0":
        raise NotApplicable("the loop does not begin at 0, so its whole blocks cannot be told")
    at = unit.line_start(loop.start_byte)
    indent, newline = unit.indent(at), unit.newline(at)
    header = unit.source[at : unit.line_start(_body(loop).start_byte)]
    last = bounds[1]
    whole = apply_edits(
        header, [Edit(last.start_byte - at, last.end_byte - at, name.encode("utf-8", "surrogateescape"))]
    )
    count = indent + f"{name} = {end} // {step} * {step}".encode("utf-8", "surrogateescape") + newline
    right = loop.child_by_field_name("right")
    assert right is not None
    first = Edit(bounds[0].start_byte, bounds[0].end_byte, name.encode("utf-8", "surrogateescape"))
    if "rest" in settings:
        first = Edit(right.start_byte, right.end_byte, settings["rest"].encode("utf-8", "surrogateescape"))
    return Edit(at, at, count + whole + _unmasked(unit, loop, live) + newline), first


PEELING = Rule(
    name="loop-peeling",
    action="mask_specialize",
    surface="triton",
    title="Mask every block instead of only the last",
    adds="Mask only the last block",
    at="A loop over blocks in which every load is masked, though only the last block is partial",
    rationale="Whole blocks run in a loop without masks and only the partial last block pays for them; in "
    "one loop every block does.",
    preconditions=(
        "Layout: only the last block can be partial, so the extent is contiguous along the loop.",
        "Pipeline: the loop has whole blocks to run; short extents see only the masked loop.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
