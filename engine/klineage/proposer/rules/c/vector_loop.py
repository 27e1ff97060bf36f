"""A loop over vectors, written with intrinsics or a vector type, in front of the scalar loop that finishes the rest."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c import vectors
from klineage.proposer.rules.c.code import code_words, dead_items, home, place_of, without_double_blanks
from klineage.proposer.rules.c.vector_code import LANES, vector_body
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, merge_edits, parse_kernel, walk

_INTRINSIC = re.compile(r"\b_mm\d*_\w+|\b__m(?:128|256|512)d?\b")
_GUARD, _TYPE = ".guard", ".type"


@dataclass(frozen=True)
class _Loop:
    """``for (; j + W <= n; j += W) { vectors }`` and ``for (; j < n; j++) statement`` behind it."""

    loop: Node
    region: Node  # the loop, or the #if around it
    rest: Node
    variable: str
    lanes: str
    kind: str  # __m256, or the name of a vector type
    place: str  # of the block that both stand in
    guard: str

    @property
    def key(self) -> str:
        return f"{self.place}.{self.variable}"


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not any(f.exported for f in unit.functions) or vectors.detect(kernel):
        return ()
    found, others = _loops(unit)
    if not found and not others:
        return ()
    settings: dict[str, str] = {}
    for loop in found:
        settings[loop.key] = f"{loop.lanes} of {loop.kind}"
        if loop.guard:
            settings[loop.key + _GUARD] = loop.guard
        if loop.kind not in LANES:
            settings[loop.key + _TYPE] = " ".join(unit.text(_types(unit)[loop.kind]).split())
    locus = home(unit)
    return (Site(locus, (Feature(locus, "simd"),), settings),)


@functools.lru_cache(maxsize=4)
def _types(unit: Unit) -> dict[str, Node]:
    """The vector types of the file with a number of bytes."""
    found = {}
    for node in walk(unit.root):
        name = node.child_by_field_name("declarator") if node.type == "type_definition" else None
        if (
            name is not None
            and unit.text(name).isidentifier()
            and re.search(r"vector_size\s*\(\s*\d+\s*\)", unit.text(node))
        ):
            found[unit.text(name)] = node
    return found


def _loops(unit: Unit) -> tuple[list[_Loop], list[Node]]:
    """The loops over vectors with a scalar loop behind them, and the loops over vectors without one."""
    found, others = [], []
    for node in walk(unit.root):
        if node.type != "for_statement" or not _kind(unit, node):
            continue
        inner = any(n.type == "for_statement" and n != node and _kind(unit, n) for n in walk(node))
        loop = _loop(unit, node)
        if loop is not None:
            found.append(loop)
        elif not inner:
            others.append(node)
    return found, others


def _kind(unit: Unit, loop: Node) -> str:
    """The widest vector that a loop computes with: a type of intrinsics, or one of the file; empty for none."""
    text = unit.text(loop)
    for name in _types(unit):
        if re.search(rf"\b{name}\b", text):
            return name
    if not _INTRINSIC.search(text):
        return ""
    width = next((w for w in ("512", "256") if f"_mm{w}_" in text or f"__m{w}" in text), "128")
    return f"__m{width}" + ("d" if re.search(r"_pd\b", text) else "")


def _loop(unit: Unit, loop: Node) -> _Loop | None:
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    if condition is None or update is None or loop.child_by_field_name("initializer") is not None:
        return None
    bound = re.fullmatch(r"(\w+) \+ (\w+) <= (\w+)", " ".join(unit.text(condition).split()))
    step = re.fullmatch(r"(\w+) \+= (\w+)", " ".join(unit.text(update).split()))
    if bound is None or step is None or (bound[1], bound[2]) != (step[1], step[2]):
        return None
    region, guard = loop, ""
    if loop.parent is not None and loop.parent.type == "preproc_if":
        region = loop.parent
        asked = region.child_by_field_name("condition")
        if region.child_by_field_name("alternative") is not None or asked is None:
            return None
        guard = " ".join(unit.text(asked).split())
    rest = region.next_named_sibling
    while rest is not None and rest.type == "comment":
        rest = rest.next_named_sibling
    if rest is None or not _scalar(unit, rest, bound[1], bound[3]):
        return None
    return _Loop(loop, region, rest, bound[1], bound[2], _kind(unit, loop), _around(unit, region), guard)


def _scalar(unit: Unit, loop: Node, variable: str, extent: str) -> bool:
    """Whether a loop goes on one by one from where the other ended."""
    if loop.type != "for_statement" or loop.child_by_field_name("initializer") is not None:
        return False
    parts = [loop.child_by_field_name(name) for name in ("condition", "update")]
    texts = [" ".join(unit.text(p).split()) if p is not None else "" for p in parts]
    return texts[0] == f"{variable} < {extent}" and texts[1] in (
        f"{variable}++",
        f"++{variable}",
        f"{variable} += 1",
    )


def scalar_loops(unit: Unit) -> tuple[tuple[str, str], ...]:
    """(place of the block, variable) of every loop that goes on one by one, and could finish what vectors leave."""
    found = []
    for node in walk(unit.root):
        condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
        bound = re.fullmatch(r"(\w+) < (\w+)", unit.text(condition)) if condition is not None else None
        if bound is not None and _scalar(unit, node, bound[1], bound[2]):
            found.append((_around(unit, node), bound[1]))
    return tuple(dict.fromkeys(found))


def _around(unit: Unit, node: Node) -> str:
    around = [
        locus
        for locus, place in unit.loci.items()
        if place.start_byte < node.start_byte and node.end_byte <= place.end_byte and place != node
    ]
    return place_of(unit, around[-1]) if around else ""


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    found, others = _loops(unit)
    if others:
        line = unit.line(others[0].start_byte)
        raise NotApplicable(f"line {line}: no scalar loop behind this one says what it computes an element")
    edits: list[Edit] = []
    for loop in found:
        inside = [c for c in loop.region.named_children if c != loop.region.child_by_field_name("condition")]
        edits.append(Edit(*unit.lines_of(loop.region)))
        if loop.region.type == "preproc_if" and any(c.type not in _GOES and c != loop.loop for c in inside):
            raise NotApplicable(f"line {unit.line(loop.region.start_byte)}: the #if holds more than the loop")
    edits += _unused(unit, edits)
    return Rewrite(without_double_blanks(unit, merge_edits(edits, dead_items(unit, edits))))


_GOES = ("declaration", "comment")


def _unused(unit: Unit, edits: list[Edit]) -> list[Edit]:
    """Constants of a vector type that nothing but the removed loops uses."""
    gone = []
    for node in walk(unit.root):
        kind = node.child_by_field_name("type") if node.type == "declaration" else None
        declared = node.child_by_field_name("declarator")
        name = (
            next((n for n in walk(declared) if n.type == "identifier"), None)
            if declared is not None
            else None
        )
        inside = any(e.start <= node.start_byte < e.end for e in edits)
        if (
            kind is None
            or name is None
            or inside
            or not (_INTRINSIC.fullmatch(unit.text(kind)) or unit.text(kind) in _types(unit))
        ):
            continue
        uses = code_words(unit.source, unit.text(name)) - 1
        within = sum(code_words(unit.source[e.start : e.end], unit.text(name)) for e in edits)
        if uses == within:
            gone.append(Edit(*unit.lines_of(node)))
    return gone


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    edits: list[Edit] = []
    types: dict[str, str] = {}
    for key, value in settings.items():
        if key.endswith((_GUARD, _TYPE)):
            continue
        place, _, variable = key.rpartition(".")
        lanes, _, kind = value.partition(" of ")
        edits.append(_vector_loop(unit, place, variable, (lanes, kind, settings.get(key + _GUARD, ""))))
        if key + _TYPE in settings:
            types[kind] = settings[key + _TYPE]
    if not edits:
        raise NotApplicable("the step records no loop")
    for kind, text in types.items():
        if kind not in _types(unit):
            edits.append(_typedef(unit, text))
    return tuple(sorted(edits))


def _vector_loop(unit: Unit, place: str, variable: str, vector: tuple[str, str, str]) -> Edit:
    lanes, kind, guard = vector
    block = unit.loci.get(f"{unit.filename}::{place}")
    for node in walk(block) if block is not None else ():
        condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
        bound = re.fullmatch(rf"{variable} < (\w+)", unit.text(condition)) if condition is not None else None
        if bound is None or not _scalar(unit, node, variable, bound[1]) or _around(unit, node) != place:
            continue
        indent, newline = unit.indent(node.start_byte), unit.newline(node.start_byte)
        statements = vector_body(
            unit, node, variable, kind, fused="FMA" in guard or kind.startswith("__m512")
        )
        braces = len(statements) > 1
        head = f"for (; {variable} + {lanes} <= {bound[1]}; {variable} += {lanes})" + (" {" if braces else "")
        lines = [
            indent + line.encode("utf-8", "surrogateescape")
            for line in (head, *(f"    {s}" for s in statements))
        ]
        lines += [indent + b"}"] if braces else []
        if guard:
            lines = [f"#if {guard}".encode("utf-8", "surrogateescape"), *lines, b"#endif"]
        at = unit.line_start(node.start_byte)
        return Edit(at, at, newline.join(lines) + newline)
    raise NotApplicable(f"{place} has no loop that goes on with {variable} one by one")


def _typedef(unit: Unit, text: str) -> Edit:
    """The vector type again, in front of the first function."""
    first = unit.functions[0].node
    at = unit.line_start(first.start_byte)
    newline = unit.newline(at)
    return Edit(at, at, text.encode("utf-8", "surrogateescape") + newline + newline)


VECTOR_LOOP = Rule(
    name="vector-loop",
    action="simd",
    surface="c",
    title="Leave every element to the scalar loop",
    adds="Compute most elements with vectors",
    at="An innermost loop over neighbouring elements",
    rationale="A loop over vectors computes all lanes of a register in one instruction, and a scalar loop finishes "
    "the rest; without it, the scalar loop does them all.",
    preconditions=(
        "Data types: every lane has the same type and does the same operation.",
        "Layout: the elements of a vector are neighbours in memory.",
        "Pipeline: iterations do not depend on each other.",
        "Hardware: the vector instructions that the code asks for.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll", "prefetch", "nontemporal_store"),
    known={
        "Hardware": Known(change="platform", settings={"platform": "cpu-x86-64-v2"}),
    },
)
