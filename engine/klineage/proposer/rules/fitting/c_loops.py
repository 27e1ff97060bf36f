"""Fits of the rules for C kernels that act on plain loops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.c.code import home, place_of
from klineage.proposer.rules.c.pragmas import FLAGS
from klineage.proposer.rules.c.vector_loop import scalar_loops
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.surface.c_static import declared_flags
from klineage.surface.tree import Unit, parse_kernel


def loop_orders(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every loop over results with one sum for each: ``for (j) { sum = 0; for (p) sum += e; y[j] = sum; }``."""
    unit = parse_kernel(kernel)
    start = settings.get("start", "0.0f")
    for locus, node in unit.loci.items():
        body = node.child_by_field_name("body") if node.type == "for_statement" else None
        inside = body.named_children if body is not None and body.type == "compound_statement" else []
        stored = re.fullmatch(r"(.+) = sum;", unit.text(inside[2])) if len(inside) == 3 else None
        if stored is not None and inside[1].type == "for_statement":
            made = {"result": stored[1], "start": start}
            yield Fit(locus.rpartition("/")[0], made, (f"the results are {stored[1]} here",))


def simd_pragmas(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded words on every loop of the kind that they were on: a sum, with its own variable, or no sum."""
    unit = parse_kernel(kernel)
    words = {text for place, text in settings.items() if place not in ("layout", FLAGS)}
    if not words:
        return
    sums = {text: re.search(r"reduction\s*\(\s*([^:]+?)\s*:", text) for text in words}
    made: dict[str, str] = {}
    for locus, node in unit.loci.items():
        added = _summed(unit, node) if node.type == "for_statement" else None
        for text, reduction in sums.items():
            if reduction is not None and added is not None and added[0] == f"{reduction[1]}=":
                made[place_of(unit, locus)] = re.sub(
                    r"(reduction\s*\([^:]+:\s*)[^)]*", rf"\g<1>{added[1]}", text
                )
    if not made:
        return
    told = [f"it is put on the {'loop' if len(made) == 1 else 'loops'} that sum here"]
    if not any(flag.startswith("-fopenmp") for flag in declared_flags(kernel.source)):
        made[FLAGS] = "-fopenmp-simd"
        told.append("the flag is declared without which the compiler skips the pragma")
    yield Fit(home(unit), made, tuple(told))


def _summed(unit: Unit, loop: Node) -> tuple[str, str] | None:
    """(``+=``, variable) of an innermost loop that does nothing but add to one variable."""
    body = loop.child_by_field_name("body")
    inside = body.named_children if body is not None and body.type == "compound_statement" else [body]
    found = (
        re.fullmatch(r"(\w+) (\+=|\*=) (.+);", unit.text(inside[0]), re.DOTALL)
        if len(inside) == 1 and inside[0]
        else None
    )
    return (found[2], found[1]) if found is not None and not re.search(rf"\b{found[1]}\b", found[3]) else None


def vector_loops(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded kind of vector in front of each loop that goes on from where another one may have ended."""
    unit = parse_kernel(kernel)
    keys = [key for key in settings if not key.endswith((".guard", ".type"))]
    kinds = {
        (settings[key], settings.get(f"{key}.guard", ""), settings.get(f"{key}.type", "")) for key in keys
    }
    for lanes, guard, kind in sorted(kinds):
        for place, variable in scalar_loops(unit):
            key = f"{place}.{variable}"
            extra = {name: text for name, text in ((f"{key}.guard", guard), (f"{key}.type", kind)) if text}
            told = (f"it is the loop over {variable} in {place} here",)
            yield Fit(home(unit), {key: lanes, **extra}, () if key in settings else told)
