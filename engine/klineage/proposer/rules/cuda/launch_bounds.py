"""The promise of how large a block is: ``__launch_bounds__``.

Not that of a kernel whose warpgroups trade registers (``setmaxnreg``): there it says how many the launch has to share out.
"""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import home, place_of
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Function, Unit, parse_kernel

_BEFORE = "before the type: "


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    settings = {}
    for function in unit.functions:
        bounds, type_node = _bounds(unit, function), function.definition.child_by_field_name("type")
        if bounds is None or type_node is None:
            continue
        text = " ".join(unit.text(bounds).split()).removeprefix("__launch_bounds__").strip().strip("()")
        early = _BEFORE if bounds.start_byte < type_node.start_byte else ""
        settings[place_of(unit, function.locus)] = early + text.strip()
    if not settings or not any(f.exported for f in unit.functions):
        return ()
    locus = home(unit)
    return (Site(locus, (Feature(locus, "launch_bounds"),), settings),)


def _bounds(unit: Unit, function: Function) -> Node | None:
    return None if "setmaxnreg" in unit.text(function.definition) else _written(function)


def _written(function: Function) -> Node | None:
    return next((c for c in function.definition.children if c.type == "launch_bounds"), None)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    edits = []
    for function in unit.functions:
        bounds = _bounds(unit, function)
        if bounds is not None:
            start = bounds.start_byte
            while start > 0 and unit.source[start - 1] in b" \t":
                start -= 1
            edits.append(Edit(start, bounds.end_byte))
    return Rewrite(tuple(edits))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    edits = [_promised(unit, place, text) for place, text in settings.items()]
    if not edits:
        raise NotApplicable("the step records no kernel")
    return tuple(edits)


def _promised(unit: Unit, place: str, text: str) -> Edit:
    function = unit.function_at(f"{unit.filename}::{place}")
    type_node = function.definition.child_by_field_name("type") if function is not None else None
    if function is None or type_node is None or _written(function) is not None:
        raise NotApplicable(f"there is no {place!r} without launch bounds")
    promise = f"__launch_bounds__({text.removeprefix(_BEFORE)})".encode("utf-8", "surrogateescape")
    if text.startswith(_BEFORE):
        return Edit(type_node.start_byte, type_node.start_byte, promise + b" ")
    return Edit(type_node.end_byte, type_node.end_byte, b" " + promise)


LAUNCH_BOUNDS = Rule(
    name="launch-bounds",
    action="launch_bounds",
    surface="cuda",
    title="Drop the launch bounds",
    adds="Bound the threads of a block",
    at="The head of the kernel's definition",
    rationale="The compiler is told how many threads a block has at most, and how many blocks should share a "
    "multiprocessor, and holds the registers of a thread down to that; without it, it assumes nothing.",
    preconditions=(
        "Storage: the registers that the bound leaves to a thread hold what it keeps, or it spills.",
        "Hardware: no launch has more threads than promised; without a bound, a large block of a kernel with "
        "many registers cannot be launched at all.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
