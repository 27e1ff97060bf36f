"""Copies from global to shared memory that run beside the arithmetic become ordinary ones."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import arguments, calls, home, place_of
from klineage.proposer.rules.cuda.code import declared_type, has_kernel
from klineage.proposer.rules.rewritten import (
    Special,
    function_of,
    line_at,
    position,
    recorded,
    removed,
    restored,
)
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site
from klineage.surface.expression import NotAnExpression, parse_expression
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel

_COPY, _COMMIT, _WAIT = "__pipeline_memcpy_async", "__pipeline_commit", "__pipeline_wait_prior"
_OTHER = ("cuda::memcpy_async", "cooperative_groups::memcpy_async", "cg::memcpy_async", "memcpy_async")
_BYTES = {
    "float": 4, "int": 4, "unsigned": 4, "unsigned int": 4, "int32_t": 4, "uint32_t": 4, "double": 8,
    "__half": 2, "half": 2, "__nv_bfloat16": 2, "float4": 16, "float2": 8,
}  # fmt: skip
_ADDRESS = re.compile(r"&(?P<array>.+)\[(?P<at>[^\[\]]+)\]|(?P<sum>\w+) \+ (?P<by>.+)|(?P<plain>\w+)")
_ORDER = "order."


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not has_kernel(unit) or not calls(unit, unit.root, _COPY, *_OTHER):
        return ()
    locus = home(unit)
    try:
        settings = _recorded(unit)
    except NotApplicable:
        settings = {}  # removing says why
    return (Site(locus, (Feature(locus, "async_copy"),), settings),)


def _recorded(unit: Unit) -> dict[str, str]:
    """The copies, and for every commit and wait the statement in front of which it stands."""
    found, gone = _copies(unit), _orders(unit)
    settings = recorded(unit, found, _deletions(unit, gone))
    for number, statement in enumerate(gone, start=1):
        function = function_of(unit, statement)
        place = place_of(unit, function.locus) if function is not None else ""
        settings[f"{_ORDER}{number}"] = (
            f"{unit.text(statement)} in {place}, {position(unit, statement, gone)}"
        )
    return settings


def _copies(unit: Unit) -> list[Special]:
    if calls(unit, unit.root, *_OTHER):
        raise NotApplicable(
            "memcpy_async of a group or a pipeline object is in a form that is not known here"
        )
    found = []
    for call in calls(unit, unit.root, _COPY):
        line, given = f"line {unit.line(call.start_byte)}", [unit.text(a) for a in arguments(call)]
        statement, function = call.parent, function_of(unit, call)
        if statement is None or statement.type != "expression_statement" or function is None:
            raise NotApplicable(f"{line}: the copy is part of an expression")
        if len(given) != 3:
            raise NotApplicable(f"{line}: the copy fills with zeros what it does not read")
        plain = _elements(unit, function, given[0], given[1], given[2])
        found.append(Special(statement, f"{_COPY}({_hole(given[0])}, {_hole(given[1])}, {given[2]});", plain))
    return found


def _elements(unit: Unit, function: Function, target: str, source: str, size: str) -> str:
    """The copy, element by element. Raises NotApplicable when the elements are not known."""
    types = {
        " ".join((declared_type(unit, function, _base(a)) or "?").replace("*", "").split())
        for a in (target, source)
    }
    type_ = types.pop()
    type_ = _aliases(unit).get(type_, type_)
    if types or type_ not in _BYTES:
        raise NotApplicable(f"{target} and {source} are not known to hold elements of one type")
    try:
        total = parse_expression(size)
    except NotAnExpression:
        total = 0
    if not isinstance(total, int) or not total or total % _BYTES[type_]:
        raise NotApplicable(f"a copy of {size} bytes is no whole number of {type_}")
    lanes = total // _BYTES[type_]
    if lanes == 1:
        return f"{_at(target, '')} = {_at(source, '')};"
    return f"for (int lane = 0; lane < {lanes}; lane++) {_at(target, 'lane')} = {_at(source, 'lane')};"


def _aliases(unit: Unit) -> dict[str, str]:
    text = unit.source.decode("utf-8", "replace")
    return dict(re.findall(r"^\s*using\s+(\w+)\s*=\s*(\w+)\s*;", text, re.MULTILINE))


def _base(address: str) -> str:
    match = re.match(r"&?(\w+)", address)
    return match[1] if match else ""


def _hole(address: str) -> str:
    return "&_" if address.startswith("&") else "_"


def _at(address: str, lane: str) -> str:
    """What stands at an address, some elements further on."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise NotApplicable(f"{address} is an address that is not known here")
    base, offset = match["array"] or match["sum"] or match["plain"], match["at"] or match["by"] or ""
    return f"{base}[{' + '.join(filter(None, (offset, lane))) or '0'}]"


def _orders(unit: Unit) -> list[Node]:
    """The statements that commit copies and wait for them."""
    found = []
    for call in calls(unit, unit.root, _COMMIT, _WAIT):
        statement = call.parent
        block = statement.parent if statement is not None else None
        if statement is None or block is None or block.type != "compound_statement":
            raise NotApplicable(
                f"line {unit.line(call.start_byte)}: a commit or a wait is no statement of a block"
            )
        found.append(statement)
    return found


def _deletions(unit: Unit, statements: list[Node]) -> list[Edit]:
    return list(merge_edits([Edit(*unit.lines_of(s)) for s in statements]))


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    _recorded(unit)
    return Rewrite(merge_edits(removed(_copies(unit)), _deletions(unit, _orders(unit))))


def _written(spelling: str, plain: str) -> str | None:
    match = re.fullmatch(r"(?:for \(int lane = 0; lane < \d+; lane\+\+\) )?(.+?) = (.+);", plain)
    if match is None:
        return None
    holes = spelling.removeprefix(f"{_COPY}(").split(", ")[:2]
    target, source = (_address(text, hole) for text, hole in zip((match[1], match[2]), holes, strict=True))
    return f"{_COPY}({target}, {source}, {spelling.split(', ', 2)[2]}"


def _address(element: str, hole: str) -> str:
    base, _, index = element[:-1].rpartition("[")
    offset = re.sub(r"(?: \+ )?lane$", "", index) if index != "0" else ""
    if hole == "&_":
        return f"&{base}[{offset or '0'}]"
    return f"{base} + {offset}" if offset else base


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    copies = {name: value for name, value in settings.items() if not name.startswith(_ORDER)}
    lines: dict[int, bytes] = {}
    for name, value in settings.items():
        match = (
            re.fullmatch(r"(.+) in .*, statement (\d+) of (.+)", value) if name.startswith(_ORDER) else None
        )
        if match is None:
            continue
        at, indent, newline = line_at(unit, match[3], int(match[2]))
        lines[at] = lines.get(at, b"") + indent + match[1].encode("utf-8", "surrogateescape") + newline
    return merge_edits(restored(unit, copies, _written), [Edit(at, at, text) for at, text in lines.items()])


ASYNC_COPY = Rule(
    name="async-copy",
    action="async_copy",
    surface="cuda",
    title="Copy to shared memory through registers",
    adds="Copy to shared memory asynchronously",
    at="The loop that copies a tile from global to shared memory",
    rationale="The copy goes from global to shared memory beside the arithmetic and through no register; an "
    "ordinary copy loads into registers, waits, and stores.",
    preconditions=(
        "Data types: 4, 8 or 16 bytes a copy, unchanged on the way.",
        "Layout: both addresses are multiples of the size.",
        "Pipeline: copies are committed and waited for before a barrier, and the barrier before the first read.",
        "Hardware: asynchronous copies from global to shared memory (sm_80 and later).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll",),
    known={
        "Layout": Known("row_alignment() >= 4", "misalign", {"buffer": "*", "bytes": "1"}),
        "Hardware": Known('satisfies("nvidia-sm80")', "platform", {"code": "async_copy"}),
    },
)
