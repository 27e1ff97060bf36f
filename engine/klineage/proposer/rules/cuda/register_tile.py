"""Register tiles: how many items a thread keeps, where the file names that number once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import home
from klineage.proposer.rules.cuda.code import (
    LARGEST_BLOCK,
    constant_edit,
    constants,
    declarations,
    extents,
    has_kernel,
    identifiers,
    launches,
    value_of,
    whole,
)
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.expression import Tree, names_of
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    known = constants(unit)
    sizes = {name: whole(unit, known[name]) for name in sorted(_register_extents(unit)) if name in known}
    large = {name: str(size) for name, size in sizes.items() if size is not None and size > 1}
    if not large or not has_kernel(unit):
        return ()
    locus = home(unit)
    return (Site(locus, (Feature(locus, "register_tiling"),), large),)


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """Give each named constant its recorded size."""
    unit = parse_kernel(kernel)
    known = constants(unit)
    for name, size in settings.items():
        if name not in known or not size.isdigit():
            raise NotApplicable(f"the file defines no constant {name!r}")
    edits = [constant_edit(unit, known[name], size) for name, size in settings.items()]
    if not edits:
        raise NotApplicable("the step records no size")
    return tuple(sorted(edits))


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    _block_stays_possible(kernel, set(site.settings))
    for name in site.settings:
        _only_counts(unit, name)
        _others_take_over(kernel, unit, name)
    return Rewrite(apply(kernel, site.locus, dict.fromkeys(site.settings, "1")))


def _only_counts(unit: Unit, name: str) -> None:
    """Raise NotApplicable where a constant is more than a count: compared, masked, or part of ``#if``."""
    text = re.compile(rb"^[ \t]*#[ \t]*(?:el)?if[^\r\n]*\b" + name.encode() + rb"\b", re.MULTILINE)
    if text.search(unit.source):
        raise NotApplicable(f"an #if asks for {name}")
    for node in identifiers(unit, unit.root, name):
        parent = node.parent
        while parent is not None and parent.type == "parenthesized_expression":
            parent = parent.parent
        operator = parent.child_by_field_name("operator") if parent is not None else None
        if operator is not None and unit.text(operator) in ("&", "|", "^", "<<", ">>", "==", "!="):
            raise NotApplicable(f"line {unit.line(node.start_byte)} does more with {name} than count")
        if parent is not None and parent.type == "static_assert_declaration":
            raise NotApplicable(f"line {unit.line(node.start_byte)} asserts what {name} is")


def _others_take_over(kernel: Kernel, unit: Unit, name: str) -> None:
    """Raise NotApplicable unless the launch, or the stride of a loop, follows how many items a thread keeps.

    Where a fixed number of threads shares a tile of fixed size, the items that a thread gives up are nobody's.
    """
    known = constants(unit)
    counted = {name}
    while more := {k for k, node in known.items() if counted & _words(value_of(unit, node))} - counted:
        counted |= more
    for launch in launches(kernel):
        if counted & {word for extent in (*launch.grid, *launch.block) for word in names_of(extent)}:
            return
    for node in walk(unit.root):
        stride = node.child_by_field_name("update") if node.type == "for_statement" else None
        if stride is not None and counted & _words(unit.text(stride)):
            return
    raise NotApplicable(
        f"neither the launch nor the stride of a loop depends on {name}, so what a thread gives up would be left out"
    )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def _block_stays_possible(kernel: Kernel, changed: set[str]) -> None:
    """Raise NotApplicable when a launch made of constants alone would get too many threads, or none."""
    unit = parse_kernel(kernel)
    values = {
        name: value for name, node in constants(unit).items() if (value := whole(unit, node)) is not None
    }
    values |= dict.fromkeys(changed, 1)
    for launch in launches(kernel):
        threads = 1
        for extent in launch.block:
            number = _number(extent, values)
            if number is None:
                break
            threads *= number
        else:
            if not 0 < threads <= LARGEST_BLOCK:
                raise NotApplicable(f"a block of {launch.kernel} would have {threads} threads")


def _number(tree: Tree, values: Mapping[str, int]) -> int | None:
    """The value of products, sums, differences and quotients of constants."""
    if isinstance(tree, str):
        return values.get(tree)
    if not isinstance(tree, list):
        return int(tree)
    operands = [_number(t, values) for t in tree[1:]]
    if len(operands) != 2 or operands[0] is None or operands[1] is None:
        return None
    left, right = operands[0], operands[1]
    match tree[0]:
        case "*":
            return left * right
        case "+":
            return left + right
        case "-":
            return left - right
        case "//" if right:
            return left // right
    return None


def _register_extents(unit: Unit) -> set[str]:
    """The constants that are extents of local arrays and bounds of the loops over them."""
    found: set[str] = set()
    for function in unit.functions:
        bounds = {unit.text(b) for n in walk(function.body) if (b := _bound(n)) is not None}
        found |= {size for size in _local_extents(unit, function) if size in bounds}
    shared = {s for f in unit.functions for s in _shared_extents(unit, f)}
    return found - shared


def _bound(node: Node) -> Node | None:
    condition = node.child_by_field_name("condition") if node.type == "for_statement" else None
    return condition.child_by_field_name("right") if condition is not None else None


def _local_extents(unit: Unit, function: Function, *, shared: bool = False) -> set[str]:
    found: set[str] = set()
    for _, declarator, node in declarations(unit, function):
        words = {
            unit.text(c) for c in node.children if c.type in ("type_qualifier", "storage_class_specifier")
        }
        array = next((n for n in walk(declarator) if n.type == "array_declarator"), None)
        if array is not None and node.type == "declaration" and ("__shared__" in words) is shared:
            found |= {unit.text(size) for size in extents(array)}
    return found


def _shared_extents(unit: Unit, function: Function) -> set[str]:
    """Every name in an extent of a shared array: a size that other threads count with too."""
    return {word for text in _local_extents(unit, function, shared=True) for word in _words(text)}


REGISTER_TILE = Rule(
    name="register-tile",
    action="register_tiling",
    surface="cuda",
    title="Keep one item a thread in registers",
    adds="Keep several items a thread in registers",
    at="The constant that says how many items a thread keeps, and the loops over them",
    rationale="A thread keeps several items in registers: what it loads serves all of them, and its "
    "operations do not wait for each other; with one item there is nothing to share.",
    preconditions=(
        "Storage: the items fit in the registers of a thread, or they spill.",
        "Pipeline: the loops over the items have constant bounds and are unrolled, or the arrays are no registers.",
        "Hardware: enough threads remain to occupy every multiprocessor.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll", "vectorize"),
)
