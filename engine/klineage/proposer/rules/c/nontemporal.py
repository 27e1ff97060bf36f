"""Stores that pass the caches by become ordinary ones."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import arguments, calls, home
from klineage.proposer.rules.rewritten import Special, line_at, position, recorded, removed, restored
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Unit, merge_edits, parse_kernel, walk

_STREAM = re.compile(r"_mm\d*_stream_(ps|pd|si128|si256|si512)")
_BUILT_IN = "__builtin_nontemporal_store"
_FENCE = "fence."


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not _streams(unit) and not calls(unit, unit.root, _BUILT_IN):
        return ()
    if not any(f.exported for f in unit.functions):
        return ()
    locus = home(unit)
    try:
        settings = _settings(unit)
    except NotApplicable:
        settings = {}  # removing says why
    return (Site(locus, (Feature(locus, "nontemporal_store"),), settings),)


def _streams(unit: Unit) -> list[Node]:
    """The names of intrinsics that store past the caches."""
    found = []
    for node in walk(unit.root):
        name = node.child_by_field_name("function") if node.type == "call_expression" else None
        if name is not None and _STREAM.fullmatch(unit.text(name)):
            found.append(name)
    return found


def _settings(unit: Unit) -> dict[str, str]:
    fences = _fences(unit)
    settings = recorded(unit, _found(unit), _deletions(unit, fences))
    for number, fence in enumerate(fences, start=1):
        settings[f"{_FENCE}{number}"] = f"{unit.text(fence)} as {position(unit, fence, fences)}"
    return settings


def _found(unit: Unit) -> list[Special]:
    found = [Special(n, unit.text(n), unit.text(n).replace("_stream_", "_store_")) for n in _streams(unit)]
    for call in calls(unit, unit.root, _BUILT_IN):
        given = [unit.text(a) for a in arguments(call)]
        if len(given) != 2 or call.parent is None or call.parent.type != "expression_statement":
            raise NotApplicable(f"line {unit.line(call.start_byte)}: {_BUILT_IN} inside an expression")
        found.append(Special(call, f"{_BUILT_IN}(_, _)", f"*({given[1]}) = {given[0]}"))
    return found


def _fences(unit: Unit) -> list[Node]:
    """The statements that wait for such stores."""
    found = [c.parent for c in calls(unit, unit.root, "_mm_sfence") if c.parent is not None]
    return [s for s in found if s.parent is not None and s.parent.type == "compound_statement"]


def _deletions(unit: Unit, statements: list[Node]) -> list[Edit]:
    return list(merge_edits([Edit(*unit.lines_of(s)) for s in statements]))


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    _settings(unit)
    return Rewrite(merge_edits(removed(_found(unit)), _deletions(unit, _fences(unit))))


def _written(spelling: str, plain: str) -> str | None:
    if _STREAM.fullmatch(spelling):
        return spelling
    match = re.fullmatch(r"\*\((.+)\) = (.+)", plain)
    return f"{_BUILT_IN}({match[2]}, {match[1]})" if match else None


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    stores = {name: value for name, value in settings.items() if not name.startswith(_FENCE)}
    edits = [*restored(unit, stores, _written)]
    for name, value in settings.items():
        match = re.fullmatch(r"(.+) as statement (\d+) of (.+)", value) if name.startswith(_FENCE) else None
        if match is not None:
            at, indent, newline = line_at(unit, match[3], int(match[2]))
            edits.append(Edit(at, at, indent + match[1].encode("utf-8", "surrogateescape") + newline))
    return merge_edits(edits)


NONTEMPORAL = Rule(
    name="nontemporal-stores",
    action="nontemporal_store",
    surface="c",
    title="Store through the caches",
    adds="Store past the caches",
    at="The loop that writes results which nobody reads soon",
    rationale="A nontemporal store writes whole lines to memory without reading them first and without pushing "
    "other data out; an ordinary store reads the line into the cache and writes it back later.",
    preconditions=(
        "Storage: what is stored is not read again soon, and addresses are aligned to the vector.",
        "Layout: whole cache lines are written one after the other, or each line is written in pieces.",
        "Pipeline: a fence orders the stores before other threads may read them.",
        "Hardware: write-combining buffers.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    known={
        "Storage": Known("bytes() > cache_2 and alignment() >= vector_bytes", "size"),
        "Layout": Known("row_alignment() >= 64", "stride"),
    },
)
