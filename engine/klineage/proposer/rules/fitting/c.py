"""Fits of the rules for C kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.c import register_tile
from klineage.proposer.rules.c.code import defines, home, macro_text, place_of
from klineage.proposer.rules.c.vectors import SIZES
from klineage.proposer.rules.fitting.c_loops import loop_orders, simd_pragmas, vector_loops
from klineage.proposer.rules.fitting.c_panels import panels
from klineage.proposer.rules.fitting.c_promises import restricts, unrolls
from klineage.proposer.rules.fitting.c_stores import stores
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.proposer.rules.rewritten import function_of
from klineage.surface.tree import Function, Unit, parse_kernel, walk

_UNALIGNED = re.compile(r"\baligned\s*\(")


def register_tiles(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded extents on the arrays of accumulators that are one wide here."""
    unit = parse_kernel(kernel)
    one_wide = register_tile.extents(unit, "1")
    if not one_wide:
        return
    locus = home(unit)
    if set(settings) <= set(one_wide):
        yield Fit(locus, dict(settings))
    numbers = sorted((int(value) for value in settings.values() if value.isdigit()), reverse=True)
    for values in _spread(numbers, len(one_wide)):
        given = dict(zip(one_wide, values, strict=False))
        chosen = {name: str(value) for name, value in given.items() if value > 1}
        if chosen and chosen != dict(settings):
            yield Fit(locus, chosen, (_carried(settings, chosen),))


def _spread(numbers: list[int], places: int) -> Iterator[tuple[int, ...]]:
    """Numbers on places in their order, the first getting the largest; and all of them at once on a single place."""
    if not numbers or not places:
        return
    yield tuple(numbers[:places])
    if places < len(numbers):
        product = 1
        for number in numbers:
            product *= number
        yield (product, *(1,) * (places - 1))
    if places > len(numbers):
        yield (1,) * (places - len(numbers)) + tuple(numbers)


def _carried(settings: Settings, chosen: Settings) -> str:
    was = ", ".join(f"{name}={value}" for name, value in settings.items())
    now = ", ".join(f"{name}={value}" for name, value in chosen.items())
    return f"{was} became {now}, the extents that this kernel has"


def vectors(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded vector type in place of the element types that are one lane wide here."""
    unit = parse_kernel(kernel)
    for name, element in _element_types(unit):
        for width in _widths(unit, element):
            made, adapted = _renamed(settings, name, width)
            locus = home(unit)
            yield Fit(locus, made, adapted)
            if not _UNALIGNED.search(made.get("attributes", "")):
                loose = f"{made.get('attributes', '')}, aligned({SIZES[element]})"
                why = f"vectors are aligned to one {element} and no more: rows of any width begin anywhere"
                yield Fit(locus, {**made, "attributes": loose}, (*adapted, why))


def _widths(unit: Unit, element: str) -> list[str]:
    """The macros that are one element wide and that another divides by the element's size: ``VECTOR_BYTES / 4``."""
    texts = {name: macro_text(unit, node) for name, node in defines(unit).items()}
    size = str(SIZES[element])
    lanes = [re.match(rf"\(?(\w+) / (?:{size}|sizeof\b)", text) for text in texts.values()]
    divided = {match[1] for match in lanes if match is not None}
    return [name for name, text in texts.items() if text == size and name in divided]


def _element_types(unit: Unit) -> Iterator[tuple[str, str]]:
    """(name, element) of every ``typedef float vec;``."""
    for node in walk(unit.root):
        name, element = node.child_by_field_name("declarator"), node.child_by_field_name("type")
        plain = node.type == "type_definition" and not any(
            c.type == "attribute_specifier" for c in node.children
        )
        if plain and name is not None and element is not None and unit.text(element) in SIZES:
            yield unit.text(name), unit.text(element)


def _renamed(settings: Settings, name: str, width: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The settings with this kernel's type and macro; what the width decided beside itself stays as it is here."""
    old_width, old_name = settings.get("width", ""), settings.get("vector", "")
    made = {"vector": name, "width": width}
    dropped: set[str] = set()
    attributes = settings.get("attributes", "")
    made["attributes"] = (
        re.sub(rf"\b{re.escape(old_width)}\b", width, attributes) if old_width else attributes
    )
    for key, value in settings.items():
        if not key.startswith("branch."):
            continue
        condition, _, macros = value.rpartition(" ? ")
        pairs = [pair.partition("=")[::2] for pair in macros.split("; ")]
        dropped |= {macro for macro, _ in pairs if macro != old_width}
        values = "; ".join(f"{width}={number}" for macro, number in pairs if macro == old_width)
        made[key] = f"{condition} ? {values}"
    adapted = []
    if (name, width) != (old_name, old_width):
        adapted.append(f"the vector type is {name} of {width} here")
    if dropped:
        adapted.append(
            f"{', '.join(sorted(dropped))}, which went with the width on the source, was left as it is"
        )
    return made, tuple(adapted)


def prefetches(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded requests, in the names of the loops that are here."""
    unit = parse_kernel(kernel)
    locus = home(unit)
    requests = [(place, text) for place, text in settings.items() if not place.startswith("define.")]
    for _, text in requests:
        call = re.fullmatch(r"(?P<name>\w+)\((?P<address>.+?)(?P<hints>(?:, \d+)*)\)", text)
        if call is None or ";" in text:
            continue
        for place, address, why in _addresses(unit, call["address"]):
            made = f"{call['name']}({address}{call['hints']})"
            if settings != {place: made}:
                yield Fit(locus, {place: made}, (f"{text} became {made} in {place}: {why}",))


def _addresses(unit: Unit, recorded: str) -> Iterator[tuple[str, str, str]]:
    """(loop, address, why) of every request of the recorded shape."""
    ahead = re.fullmatch(r"(\w+) \+ (\d+) \* (\w+)", recorded)
    if ahead is not None:
        for place, loop in _loops(unit):
            for pointer, step in _advanced(unit, loop):
                yield place, f"{pointer} + {ahead[2]} * {step}", f"{pointer} goes on by {step}"
        return
    if not re.match(r"\w+ \+ ", recorded):
        return
    for place, loop in _loops(unit):
        function = function_of(unit, loop)
        for index in _read_at(unit, loop, function) if function is not None else ():
            for name in _written_later(unit, loop, function) if function is not None else ():
                yield place, f"{name} + {index}", f"{name} is written after this loop, and at the same places"


def _loops(unit: Unit) -> list[tuple[str, Node]]:
    """The loops with braces, innermost first."""
    found = [
        (place_of(unit, locus), node)
        for locus, node in unit.loci.items()
        if node.type == "for_statement"
        and (body := node.child_by_field_name("body")) is not None
        and body.type == "compound_statement"
    ]
    return sorted(found, key=lambda item: -item[0].count("/"))


def _advanced(unit: Unit, loop: Node) -> list[tuple[str, str]]:
    """Pointers that a loop moves on by more than one: ``b += NR``."""
    body = loop.child_by_field_name("body")
    found = []
    for statement in body.named_children if body is not None else ():
        match = re.fullmatch(r"(\w+)\s*\+=\s*(\w+);", unit.text(statement))
        if match:
            found.append((match[1], match[2]))
    return sorted(found, key=lambda pair: pair[1])[::-1]


def _read_at(unit: Unit, loop: Node, function: Function) -> list[str]:
    """Where a loop reads through pointers: ``c + u * LANES`` of ``*(const vec *)(x + c + u * LANES)`` or ``x[c]``."""
    text, inside = unit.text(loop), _declared_in(unit, loop)
    found = re.findall(r"\*\)\s*\((\w+) \+ ([^()]+)\)", text) + re.findall(
        r"\b(\w+)\[(\w+(?: \+ \w+)*)\]", text
    )
    known = [index for base, index in found if _is_pointer(unit, function, base)]
    return [index for index in dict.fromkeys(known) if not inside & set(re.findall(r"\w+", index))]


def _is_pointer(unit: Unit, function: Function, name: str) -> bool:
    return re.search(rf"\*\s*(?:restrict )?{name}\b", unit.text(function.definition)) is not None


def _declared_in(unit: Unit, loop: Node) -> set[str]:
    """What a loop's body declares, which is not known yet where the body begins."""
    body = loop.child_by_field_name("body")
    declared = (n for n in walk(body) if n.type == "declaration") if body is not None else ()
    names = (
        next((n for n in walk(d) if n.type == "identifier"), None)
        for node in declared
        for d in node.children_by_field_name("declarator")
    )
    return {unit.text(name) for name in names if name is not None}


def _written_later(unit: Unit, loop: Node, function: Function) -> list[str]:
    """Pointers in scope that a later loop of the same function writes, and this one does not use."""
    rest = unit.source[loop.end_byte : function.node.end_byte].decode("utf-8", "surrogateescape")
    stored = re.findall(r"\*\(vec \*\)\((\w+) \+", rest) + re.findall(r"\b(\w+)\[[^\]]+\] [-+*/]?= ", rest)
    names = [name for name in dict.fromkeys(stored) if not re.search(rf"\b{name}\b", unit.text(loop))]
    return [name for name in names if _is_pointer(unit, function, name)]


FITS: dict[str, Callable[[Kernel, Settings], Iterator[Fit]]] = {
    "register-tile": register_tiles,
    "vector-types": vectors,
    "prefetch": prefetches,
    "loop-order": loop_orders,
    "simd-pragma": simd_pragmas,
    "panel-copy": panels,
    "nontemporal-stores": stores,
    "vector-loop": vector_loops,
    "unroll": unrolls,
    "restrict": restricts,
}
