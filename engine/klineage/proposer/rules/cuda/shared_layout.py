"""Shared arrays that are padded or permuted against bank conflicts take their plain layout."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.cuda.code import (
    constants,
    declarations,
    extents,
    has_kernel,
    launches,
    shared_arrays,
    subscripts,
    whole,
)
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.expression import NotAnExpression, Tree, parse_expression
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk

_PADDED = re.compile(r"(.+?)( \+ (?:\d+|\w*PAD\w*))", re.IGNORECASE)
_MORE, _LONG = (2, 4, 8), 32  # by how much a long row is longer than there are rows, where both are numbers
_AXES = ("x", "y", "z")


def _places(unit: Unit) -> list[tuple[Function, str, Node]]:
    """(function, name, declarator) of every shared array with two extents or more."""
    found = [(f, name, node) for f in unit.functions for name, node in shared_arrays(unit, f).items()]
    return [(f, name, node) for f, name, node in found if len(extents(node)) > 1]


def _locus(function: Function, name: str) -> str:
    return f"{function.locus}/shared[{name}]"


def _array(unit: Unit, locus: str) -> tuple[Function, str, Node]:
    for function, name, node in _places(unit):
        if _locus(function, name) == locus:
            return function, name, node
    raise NotApplicable(f"there is no {locus!r} in this file")


def _accesses(unit: Unit, function: Function, name: str, rank: int) -> list[list[Node]]:
    found = subscripts(unit, function, name)
    if not found or any(len(indices) != rank for indices in found):
        raise NotApplicable(f"{name} is not only used element by element")
    return found


def _detect_padding(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function, name, node in _places(unit) if has_kernel(unit) else ():
        padded = _padded(unit, node)
        if padded is not None:
            locus = _locus(function, name)
            sites.append(Site(locus, (Feature(locus, "swizzle"),), {"padding": padded[1]}))
    return tuple(sites)


def _padded(unit: Unit, array: Node) -> tuple[str, str] | None:
    """(extent, padding): ``("TILE", "+ 1")`` of ``[TILE][TILE + 1]``, ``("16", "17")`` of ``[16][17]``."""
    *outer, last = [unit.text(e) for e in extents(array)]
    match = _PADDED.fullmatch(last)
    if match:
        return match[1], match[2].strip()
    if not (last.isdigit() and outer[-1].isdigit()):
        return None
    rows, more = int(outer[-1]), int(last) - int(outer[-1])
    return (outer[-1], last) if more == 1 or (more in _MORE and rows >= _LONG) else None


def _remove_padding(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function, name, node = _array(unit, site.locus)
    last, padded = extents(node)[-1], _padded(unit, node)
    if padded is None:
        raise NotApplicable(f"{name} is not padded")
    for indices in _accesses(unit, function, name, len(extents(node))):
        if not _below(kernel, function, indices[-1], padded[0]):
            text = unit.text(indices[-1])
            raise NotApplicable(
                f"line {unit.line(indices[-1].start_byte)}: {text} may reach the padding of {name}"
            )
    if padded[1].isdigit():
        return Rewrite((Edit(last.start_byte, last.end_byte, padded[0].encode()),))
    return Rewrite((Edit(last.start_byte + len(padded[0].encode()), last.end_byte),))


def _below(kernel: Kernel, function: Function, index: Node, extent: str) -> bool:
    """Whether an index is below an extent: a thread's number in such a block, or a loop's variable up to it."""
    unit = parse_kernel(kernel)
    text = unit.text(index)
    text = _initial(unit, function, text) or text
    axis = re.fullmatch(r"threadIdx\.([xyz])", text)
    if axis:
        found = launches(kernel, function)
        return bool(found) and all(equal_extent(unit, x.block[_AXES.index(axis[1])], extent) for x in found)
    loops = [n for n in walk(function.body) if n.type == "for_statement"]
    around = [n for n in loops if n.start_byte <= index.start_byte < n.end_byte]
    for loop in reversed(around):
        condition = loop.child_by_field_name("condition")
        left, right = (
            condition.child_by_field_name(s) if condition is not None else None for s in ("left", "right")
        )
        if condition is None or left is None or right is None or unit.text(left) != text:
            continue
        sign = condition.child_by_field_name("operator")
        return sign is not None and unit.text(sign) == "<" and unit.text(right) == extent
    return False


def _initial(unit: Unit, function: Function, name: str) -> str | None:
    """What a ``const`` local is set to once, for all."""
    for known, declarator, node in declarations(unit, function):
        value = declarator.child_by_field_name("value")
        constant = any(c.type == "type_qualifier" and unit.text(c) == "const" for c in node.children)
        if known == name and value is not None and constant:
            return unit.text(value)
    return None


def equal_extent(unit: Unit, tree: Tree, extent: str) -> bool:
    """Whether a block's extent is the array's: the same text, or the same number."""
    try:
        wanted = parse_expression(extent)
    except NotAnExpression:
        return False
    one, other = (_value(unit, t) if isinstance(t, str) else t for t in (tree, wanted))
    return tree == wanted or (one is not None and one == other)


def _value(unit: Unit, text: str) -> int | None:
    """The number that an extent is, or that the constant is which it names."""
    known = constants(unit)
    return int(text) if text.isdigit() else (whole(unit, known[text]) if text in known else None)


def _apply_padding(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    _, name, node = _array(unit, locus)
    last, padding = extents(node)[-1], setting(settings, "padding")
    if _padded(unit, node) is not None:
        raise NotApplicable(f"{name} is padded already")
    if padding.isdigit():
        return (Edit(last.start_byte, last.end_byte, padding.encode()),)
    return (Edit(last.end_byte, last.end_byte, f" {padding}".encode("utf-8", "surrogateescape")),)


def _detect_swizzle(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function, name, node in _places(unit) if has_kernel(unit) else ():
        found = subscripts(unit, function, name) or []
        if any(_xor(unit, indices[-1]) for indices in found):
            locus = _locus(function, name)
            try:
                settings = {"swizzle": _pattern(unit, function, name, len(extents(node)))}
            except NotApplicable:
                settings = {}  # removing says why
            sites.append(Site(locus, (Feature(locus, "swizzle"),), settings))
    return tuple(sites)


def _xor(unit: Unit, index: Node) -> tuple[Node, Node] | None:
    """(column, mask) of an index ``column ^ mask``."""
    sign = index.child_by_field_name("operator") if index.type == "binary_expression" else None
    left, right = index.child_by_field_name("left"), index.child_by_field_name("right")
    if sign is None or left is None or right is None or unit.text(sign) != "^":
        return None
    return left, right


def _pattern(unit: Unit, function: Function, name: str, rank: int) -> str:
    """How every access permutes its column by its row, the row written ``_``. Raises NotApplicable."""
    patterns = set()
    for indices in _accesses(unit, function, name, rank):
        pair = _xor(unit, indices[-1])
        if pair is None:
            raise NotApplicable(f"line {unit.line(indices[-1].start_byte)}: {name} is not permuted there")
        row, mask = unit.text(indices[-2]), unit.text(pair[1])
        patterns.add(re.sub(rf"(?<![\w.]){re.escape(row)}(?![\w.])", "_", mask))
    if len(patterns) != 1 or "_" not in next(iter(patterns)):
        raise NotApplicable(f"the accesses to {name} are not all permuted in the same way by their row")
    pattern = patterns.pop()
    if not re.fullmatch(r"_|\(?\(?_(?: (?:&|%|/|>>) \w+\)?)+\)?", pattern):
        raise NotApplicable(f"{name} is permuted by {pattern}, which is not known to be a permutation")
    return pattern


def _remove_swizzle(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function, name, node = _array(unit, site.locus)
    _pattern(unit, function, name, len(extents(node)))
    columns = _value(unit, unit.text(extents(node)[-1]))
    if columns is None or columns & (columns - 1):
        raise NotApplicable(
            f"a row of {name} is not known to be a power of two, which a permutation by ^ needs"
        )
    edits = []
    for indices in _accesses(unit, function, name, len(extents(node))):
        pair = _xor(unit, indices[-1])
        assert pair is not None
        edits.append(Edit(pair[0].end_byte, indices[-1].end_byte))
    return Rewrite(tuple(edits))


def _apply_swizzle(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function, name, node = _array(unit, locus)
    pattern, edits = setting(settings, "swizzle"), []
    for indices in _accesses(unit, function, name, len(extents(node))):
        if _xor(unit, indices[-1]):
            raise NotApplicable(f"{name} is permuted already")
        mask = pattern.replace("_", unit.text(indices[-2]), 1)
        edits.append(
            Edit(indices[-1].end_byte, indices[-1].end_byte, f" ^ {mask}".encode("utf-8", "surrogateescape"))
        )
    return tuple(edits)


PADDING = Rule(
    name="shared-padding",
    action="swizzle",
    surface="cuda",
    title="Drop the padding of a shared array",
    adds="Pad a shared array against bank conflicts",
    at="The declaration of a two-dimensional shared array",
    rationale="One element more a row moves neighbours of a column to different banks; without it, threads that "
    "read a column wait for each other.",
    preconditions=(
        "Storage: the padded array fits in shared memory, and no index reaches the padding.",
        "Layout: threads of a warp walk a column of the array, and a row is a multiple of the 32 banks.",
        "Hardware: 32 banks of 4 bytes.",
    ),
    detect=_detect_padding,
    remove=_remove_padding,
    apply=_apply_padding,
    after=("unroll",),
)

SWIZZLE = Rule(
    name="shared-swizzle",
    action="swizzle",
    surface="cuda",
    title="Store a shared array in plain columns",
    adds="Permute the columns of a shared array",
    at="Every index into a shared array",
    rationale="Each row permutes its columns by its own number, so that a column lies in different banks; in "
    "plain order, threads that read a column wait for each other.",
    preconditions=(
        "Layout: every access permutes in the same way, and the mask stays within a row.",
        "Storage: a row is a power of two of elements.",
        "Hardware: 32 banks of 4 bytes.",
    ),
    detect=_detect_swizzle,
    remove=_remove_swizzle,
    apply=_apply_swizzle,
    after=("unroll",),
)
