"""Software prefetch: requests for cache lines that later iterations will read."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import (
    arguments,
    body_start,
    calls,
    dead_macros,
    deleted,
    home,
    innermost,
    lines_inserted,
    macro_line,
    macro_text,
    macros_added,
    node_at,
)
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, merge_edits, parse_kernel

_CALLS = ("__builtin_prefetch", "_mm_prefetch")


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    found = _statements(unit)
    if not found or not any(f.exported for f in unit.functions):
        return ()
    settings: dict[str, str] = {}
    for statement, call in found:
        place = innermost(unit, statement)
        settings[place] = "; ".join(filter(None, (settings.get(place), unit.text(call))))
    for name, node in dead_macros(unit, [deleted(unit, s) for s, _ in found]).items():
        settings[f"define.{name}"] = macro_text(unit, node)
    locus = home(unit)
    return (Site(locus, (Feature(locus, "prefetch"),), settings),)


def _statements(unit: Unit) -> list[tuple[Node, Node]]:
    """(statement, call) of every prefetch that is a statement of its own."""
    found = []
    for call in calls(unit, unit.root, *_CALLS):
        statement = call.parent
        if statement is not None and statement.type == "expression_statement" and arguments(call):
            block = statement.parent
            if block is not None and block.type == "compound_statement":
                found.append((statement, call))
    return found


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    edits = [deleted(unit, s) for s, _ in _statements(unit)]
    dead = [macro_line(unit, node) for node in dead_macros(unit, edits).values()]
    return Rewrite(merge_edits(edits, dead))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """The requests at the top of each loop that the settings name."""
    unit = parse_kernel(kernel)
    macros = {n.removeprefix("define."): v for n, v in settings.items() if n.startswith("define.")}
    edits = macros_added(unit, macros)
    for place, statements in settings.items():
        if place.startswith("define."):
            continue
        node = node_at(unit, place)
        at = body_start(unit, node)
        lines = [f"{call};" for call in statements.split("; ")]
        edits.append(lines_inserted(unit, at, node, lines, b"    "))
    if not edits:
        raise NotApplicable("the step records no loop")
    return tuple(edits)


PREFETCH = Rule(
    name="prefetch",
    action="prefetch",
    surface="c",
    title="Drop software prefetch",
    adds="Prefetch ahead of use",
    at="The loop that reads a stream, some iterations ahead",
    rationale="Cache lines are asked for some iterations before they are read; without that only the "
    "hardware's own prefetchers look ahead.",
    preconditions=(
        "Layout: the address some iterations ahead is known, and a request beyond the end does no harm.",
        "Pipeline: the distance covers the latency of memory, and the lines are still there when they are "
        "read.",
        "Storage: the lines in flight do not push out data that is in use.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    known={
        "Pipeline": Known(change="setting", settings={"name": "*", "value": "x64"}),
    },
)
