"""Register blocking: a tile of accumulators becomes a single one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import defines, home, macro_edit, macro_text
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    values = _values(unit)
    sizes = {
        name: values[name] for f in unit.functions for name in _tile_extents(unit, f) if _large(values, name)
    }
    if not sizes or not any(f.exported for f in unit.functions):
        return ()
    locus = home(unit)
    return (Site(locus, (Feature(locus, "register_tiling"),), sizes),)


def extents(unit: Unit, value: str) -> list[str]:
    """The macros with one value, ``value``, that are extents of tiles of accumulators, in the order of the text."""
    known = defines(unit)
    names = [n for f in unit.functions for n in _tile_extents(unit, f)]
    return [n for n in dict.fromkeys(names) if n in known and macro_text(unit, known[n]) == value]


def _values(unit: Unit) -> dict[str, str]:
    """Every macro's text; of one defined in several branches, the last."""
    found = {}
    for node in walk(unit.root):
        name = node.child_by_field_name("name") if node.type == "preproc_def" else None
        if name is not None:
            found[unit.text(name)] = macro_text(unit, node)
    return found


def _large(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "").isdigit() and int(values[name]) > 1


def _tile_extents(unit: Unit, function: Function) -> list[str]:
    """The extents of local arrays that a loop adds into, bound by loops over the same extents."""
    bounds = {unit.text(r) for n in walk(function.body) if (r := _bound(n)) is not None}
    extents: list[str] = []
    for name, sizes in _local_arrays(unit, function).items():
        if name in _accumulated(unit, function) and all(s in bounds for s in sizes):
            extents += [s for s in sizes if s not in extents]
    return extents


def _bound(node: Node) -> Node | None:
    """The right side of a for loop's condition."""
    condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
    return condition.child_by_field_name("right") if condition is not None else None


def _local_arrays(unit: Unit, function: Function) -> dict[str, list[str]]:
    """Local arrays by name, with the text of every extent."""
    found: dict[str, list[str]] = {}
    for node in walk(function.body):
        if node.type != "array_declarator" or (
            node.parent is not None and node.parent.type == "array_declarator"
        ):
            continue
        sizes: list[str] = []
        inner: Node | None = node
        while inner is not None and inner.type == "array_declarator":
            size = inner.child_by_field_name("size")
            sizes.insert(0, unit.text(size) if size is not None else "")
            inner = inner.child_by_field_name("declarator")
        if inner is not None and inner.type == "identifier":
            found[unit.text(inner)] = sizes
    return found


def _accumulated(unit: Unit, function: Function) -> set[str]:
    """Arrays with an element that ``+=`` (or ``a[i] = f(..., a[i])``) grows."""
    found = set()
    for node in walk(function.body):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        right, sign = node.child_by_field_name("right"), node.child_by_field_name("operator")
        if left is None or left.type != "subscript_expression" or right is None or sign is None:
            continue
        grows = unit.text(sign) == "+=" or (unit.text(sign) == "=" and unit.text(left) in unit.text(right))
        base = next((n for n in walk(left) if n.type == "identifier"), None)
        if grows and base is not None:
            found.add(unit.text(base))
    return found


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    for name in site.settings:
        _steps_by(unit, name)
    return Rewrite(_resized(unit, dict.fromkeys(site.settings, "1")))


def _steps_by(unit: Unit, name: str) -> None:
    """Raise NotApplicable unless a loop goes on by the size of the tile: a smaller one would leave elements out."""
    definitions = [n for n in walk(unit.root) if n.type in ("preproc_def", "init_declarator")]
    counted = {name}
    while (
        more := {d for n in definitions if (d := _defined(unit, n)) and counted & _value(unit, n)} - counted
    ):
        counted |= more
    for node in walk(unit.root):
        step = node.child_by_field_name("update") if node.type == "for_statement" else None
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is not None and left.type == "identifier":
            step = node.child_by_field_name("right")
        if step is not None and counted & _words(unit.text(step)):
            return
    raise NotApplicable(f"no loop goes on by {name}, so a smaller tile would leave elements out")


def _defined(unit: Unit, definition: Node) -> str:
    name = definition.child_by_field_name("name") or definition.child_by_field_name("declarator")
    return unit.text(name) if name is not None and name.type == "identifier" else ""


def _value(unit: Unit, definition: Node) -> set[str]:
    value = definition.child_by_field_name("value")
    return _words(unit.text(value)) if value is not None else set()


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    return _resized(parse_kernel(kernel), settings)


def _resized(unit: Unit, sizes: Mapping[str, str]) -> tuple[Edit, ...]:
    known = defines(unit)
    missing = [name for name in sizes if name not in known]
    if missing or not sizes:
        raise NotApplicable(f"{', '.join(missing) or 'no extent'} is not a macro with one value")
    return tuple(macro_edit(unit, known[name], value) for name, value in sizes.items())


REGISTER_TILE = Rule(
    name="register-tile",
    action="register_tiling",
    surface="c",
    title="Keep one accumulator instead of a tile",
    adds="Keep a tile of accumulators in registers",
    at="The innermost loops, in which each result has one accumulator",
    rationale="A tile of accumulators uses every loaded value several times and hides the latency of the "
    "multiply-add; with one, every product loads both its factors and waits for the sum before it.",
    preconditions=(
        "Storage: the accumulators and the operands of one step fit in the register file together.",
        "Pipeline: at least latency times throughput independent sums, or the arithmetic units wait.",
        "Layout: partial tiles at the edges are padded or handled apart.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll", "simd", "alignment", "prefetch"),
    known={
        "Storage": Known(change="setting", settings={"name": "*", "value": "x8"}),
        "Pipeline": Known(change="setting", settings={"name": "*", "value": "/2"}),
    },
)
