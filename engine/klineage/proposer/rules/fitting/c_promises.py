"""Fits of the rules for C kernels that change no operation and only tell the compiler what it may do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.c.code import declarators, home, place_of
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.surface.tree import Unit, parse_kernel

_LAYOUT = "layout"


def unrolls(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded pragma, with its largest number, on every loop of constant length over what a function keeps."""
    unit = parse_kernel(kernel)
    words = [text for place, text in settings.items() if place != _LAYOUT and "; " not in text]
    numbered = [text for text in words if re.search(r"\d+", text)]
    if not words:
        return
    word = max(numbered, key=lambda text: int(re.findall(r"\d+", text)[-1])) if numbered else words[0]
    made = {
        place_of(unit, locus): word
        for locus, node in unit.loci.items()
        if node.type == "for_statement" and _over_locals(unit, locus, node)
    }
    if made:
        layout = {_LAYOUT: settings[_LAYOUT]} if _LAYOUT in settings else {}
        told = f"it is put on {', '.join(made)}, which run a constant number of times over arrays of their function"
        yield Fit(home(unit), {**made, **layout}, (told,))


def _over_locals(unit: Unit, locus: str, loop: Node) -> bool:
    """Whether a loop has a constant bound and its variable is the first index of an array of the function."""
    condition = loop.child_by_field_name("condition")
    bound = re.fullmatch(r"(\w+) < ([A-Z][A-Z0-9_]*|\d+)", unit.text(condition)) if condition else None
    function = unit.function_at(locus)
    if bound is None or function is None:
        return False
    arrays = {
        name
        for name, node in declarators(function, unit)
        if node.parent is not None and node.parent.type == "array_declarator"
    }
    used = re.findall(rf"\b(\w+)(?:\[\w+\])*\[{bound[1]}\]", unit.text(loop))
    return bool(arrays.intersection(used))


def restricts(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The promise for every pointer that is a parameter of a function with at least two of them."""
    unit = parse_kernel(kernel)
    made: dict[str, str] = {}
    for function in unit.functions:
        names = [
            name
            for name, node in declarators(function, unit)
            if node.parent is not None and node.parent.type == "pointer_declarator" and _is_parameter(node)
        ]
        if len(names) > 1:
            made[place_of(unit, function.locus)] = " ".join(names)
    if made and made != dict(settings):
        spelling = {"spelling": settings["spelling"]} if "spelling" in settings else {}
        told = f"it is promised for every pointer that is passed to {', '.join(made)}"
        yield Fit(home(unit), {**made, **spelling}, (told,))


def _is_parameter(name: Node) -> bool:
    node = name.parent
    while node is not None and node.type not in ("parameter_declaration", "declaration"):
        node = node.parent
    return node is not None and node.type == "parameter_declaration"
