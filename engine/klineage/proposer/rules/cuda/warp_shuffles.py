"""Values exchanged between the lanes of a warp in registers go through shared memory instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import arguments, body_start, calls, home, node_at, place_of
from klineage.proposer.rules.cuda.code import LARGEST_BLOCK, declared_type, flat_blocks, has_kernel
from klineage.proposer.rules.cuda.warp_scans import (
    SELF,
    Scan,
    in_registers,
    scan_of,
    thread_number,
    through_memory,
)
from klineage.proposer.rules.rewritten import function_of
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel

_SHUFFLES = ("__shfl_xor_sync", "__shfl_down_sync")
_ALL = ("__shfl_sync", "__shfl_up_sync", *_SHUFFLES)
_EVERY_LANE = re.compile(r"0[xX][fF]{8}[uU]?[lL]*|~0[uU]?|-1|4294967295[uU]?")
_TYPES = ("float", "double", "int", "unsigned", "unsigned int", "uint32_t")
_ARRAY = "exchange"
_OTHER = "other"
_COMMENT = re.compile(rb"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_OWN_LINE = "; own line"


@dataclass(frozen=True)
class _Reduction:
    """``for (...) value += __shfl_xor_sync(mask, value, offset);``, the only statement of its loop."""

    loop: Node
    place: str
    statement: Node
    call: Node
    name: str
    mask: str
    value: str
    offset: str
    function: Function
    type: str


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    if not calls(unit, unit.root, *_ALL) or not has_kernel(unit):
        return ()
    locus = home(unit)
    try:
        settings = {_key(unit, found): _spelled(unit, found) for found in _exchanges(unit)}
    except NotApplicable:
        settings = {}  # removing says why
    return (Site(locus, (Feature(locus, "warp_exchange"),), settings),)


def _key(unit: Unit, found: _Reduction | Scan) -> str:
    return found.key(unit) if isinstance(found, Scan) else found.place


def _spelled(unit: Unit, found: _Reduction | Scan) -> str:
    if isinstance(found, Scan):
        return f"{found.shuffle}({found.mask}, _, _)"
    own_line = unit.line(found.statement.start_byte) != unit.line(found.loop.start_byte)
    return f"{found.name}({found.mask}, _, _)" + (_OWN_LINE if own_line else "")


def _exchanges(unit: Unit) -> list[_Reduction | Scan]:
    """Every shuffle, as a reduction loop or as a value with a name. Raises NotApplicable for another form."""
    found: list[_Reduction | Scan] = []
    for call in calls(unit, unit.root, *_ALL):
        scan = scan_of(unit, call)
        if scan is None:
            found.append(_reduction(unit, call))
            continue
        line = f"line {unit.line(call.start_byte)}"
        if scan.type not in _TYPES:
            raise NotApplicable(f"{line}: what is exchanged is no plain variable of a known type")
        if not _every_lane(unit, scan.mask):
            raise NotApplicable(
                f"{line}: the mask {scan.mask} does not name every lane, so lanes may be elsewhere"
            )
        found.append(scan)
    return found


def _reduction(unit: Unit, call: Node) -> _Reduction:
    line = f"line {unit.line(call.start_byte)}"
    callee, given = call.child_by_field_name("function"), [unit.text(a) for a in arguments(call)]
    name, function = unit.text(callee) if callee is not None else "", function_of(unit, call)
    statement = call.parent
    while statement is not None and not statement.type.endswith("statement"):
        statement = statement.parent
    loop = statement.parent if statement is not None else None
    if name not in _SHUFFLES or len(given) != 3 or function is None:
        raise NotApplicable(f"{line}: {name or 'a shuffle'} in a form that is not known here")
    if loop is None or statement is None or loop.type != "for_statement":
        raise NotApplicable(f"{line}: the shuffle is not the only statement of a reduction loop")
    if not _every_lane(unit, given[0]):
        raise NotApplicable(
            f"{line}: the mask {given[0]} does not name every lane, so lanes may be elsewhere"
        )
    type_ = declared_type(unit, function, given[1])
    if type_ not in _TYPES:
        raise NotApplicable(f"{line}: what is exchanged is no plain variable of a known type")
    if len(calls(unit, statement, *_ALL)) != 1 or not re.fullmatch(r"\w+", given[2]):
        raise NotApplicable(f"{line}: the lane is not named by a plain variable")
    place = next((p for p, n in unit.loci.items() if n == loop), "")
    return _Reduction(
        loop, place_of(unit, place), statement, call, name, given[0], given[1], given[2], function, type_
    )


def _every_lane(unit: Unit, mask: str) -> bool:
    """Whether a mask is written as all lanes, or is a constant that is."""
    if not mask.isidentifier():
        return _EVERY_LANE.fullmatch(mask) is not None
    found = re.findall(
        rf"\b{mask}\b\s*=?\s*\(?(0[xX][fF]{{8}}[uU]?|~0[uU]?)\b", unit.source.decode("utf-8", "replace")
    )
    return len(found) == 1


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    edits: list[Edit] = []
    arrays: dict[str, _Reduction | Scan] = {}
    for found in _exchanges(unit):
        _refuse_taken(unit, found.function)
        if arrays.setdefault(found.function.locus, found).type != found.type:
            raise NotApplicable("one function exchanges values of two types")
        if isinstance(found, Scan):
            edits.append(through_memory(unit, found))
        else:
            flat_blocks(kernel, found.function)
            edits.append(_through_memory(unit, found))
    numbered = {s.function.locus for s in _exchanges(unit) if isinstance(s, Scan)}
    edits += [_array(kernel, found, numbered=place in numbered) for place, found in arrays.items()]
    return Rewrite(tuple(sorted(edits)))


def _refuse_taken(unit: Unit, function: Function) -> None:
    text = _COMMENT.sub(b"", unit.source[function.node.start_byte : function.node.end_byte])
    for name in (_ARRAY, _OTHER, SELF):
        if re.search(rf"\b{name}\b".encode(), text):
            raise NotApplicable(f"the name {name!r} is taken in {function.name}")


def _array(kernel: Kernel, found: _Reduction | Scan, *, numbered: bool) -> Edit:
    """What the exchange needs at the top of its function: the array, and the thread's number in its block."""
    unit = parse_kernel(kernel)
    at = body_start(unit, found.function.definition)
    lines = [f"__shared__ {found.type} {_ARRAY}[{LARGEST_BLOCK}];"]
    lines += [f"const unsigned {SELF} = {thread_number(kernel, found.function)};"] if numbered else []
    indent, newline = _indent(unit, found.function), unit.newline(at)
    return Edit(at, at, b"".join(indent + line.encode() + newline for line in lines))


def _indent(unit: Unit, function: Function) -> bytes:
    first = next((c for c in function.body.named_children if c.type != "comment"), None)
    return unit.indent(first.start_byte) if first is not None else b"  "


def _through_memory(unit: Unit, found: _Reduction) -> Edit:
    """The loop's body: write the own value, wait for the warp, read the other lane's, wait again."""
    outer = unit.indent(found.loop.start_byte)
    deeper = outer + (_indent(unit, found.function) if not outer else _step(unit, found, outer))
    text = unit.text(found.statement)
    at = found.call.start_byte - found.statement.start_byte
    length = found.call.end_byte - found.call.start_byte
    combined = text.encode("utf-8", "surrogateescape")
    combined = combined[:at] + f"{_ARRAY}[{_OTHER}]".encode() + combined[at + length :]
    lines = [
        f"const unsigned {_OTHER} = {_other(found)};".encode("utf-8", "surrogateescape"),
        f"{_ARRAY}[threadIdx.x] = {found.value};".encode("utf-8", "surrogateescape"),
        b"__syncwarp();",
        combined,
        b"__syncwarp();",
    ]
    newline = unit.newline(found.loop.start_byte)
    start = found.statement.start_byte
    while unit.source[start - 1 : start].isspace():
        start -= 1
    body = b"".join(deeper + line + newline for line in lines)
    return Edit(start, found.statement.end_byte, b" {" + newline + body + outer + b"}")


def _step(unit: Unit, found: _Reduction, outer: bytes) -> bytes:
    """How much deeper a body is indented: as the function's own is below the function."""
    function = unit.indent(found.function.body.end_byte - 1)
    inside = _indent(unit, found.function)
    return inside.removeprefix(function) or outer


def _other(found: _Reduction) -> str:
    """The thread whose value is read; the last lanes of a warp keep their own when values move down."""
    if found.name == "__shfl_xor_sync":
        return f"threadIdx.x ^ {found.offset}"
    return f"threadIdx.x % 32 + {found.offset} < 32 ? threadIdx.x + {found.offset} : threadIdx.x"


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    edits: set[Edit] = set()
    for place, spelling in settings.items():
        if "." in place:
            edit, function = in_registers(unit, place, spelling)
        else:
            loop = node_at(unit, place)
            edit, holder = _in_registers(unit, loop, spelling), function_of(unit, loop)
            if holder is None:
                raise NotApplicable(f"{place} is in no function")
            function = holder
        edits.add(edit)
        for node in function.body.named_children:
            if re.fullmatch(
                rf"__shared__ [\w ]+ {_ARRAY}\[\d+\];|const unsigned {SELF} = .*threadIdx.*;", unit.text(node)
            ):
                edits.add(Edit(*unit.lines_of(node)))
    if not edits:
        raise NotApplicable("the step records no loop")
    return merge_edits(edits)


def _in_registers(unit: Unit, loop: Node, spelling: str) -> Edit:
    body = loop.child_by_field_name("body")
    inner = [c for c in body.named_children if c.type != "comment"] if body is not None else []
    texts = [unit.text(c) for c in inner]
    if len(inner) != 5 or texts[2] != "__syncwarp();" or texts[4] != "__syncwarp();":
        raise NotApplicable("the loop exchanges nothing through shared memory in the known form")
    lane = re.fullmatch(
        rf"const unsigned {_OTHER} = threadIdx\.x(?: \^ (\w+)| % 32 \+ (\w+) < 32 .*);", texts[0]
    )
    written = re.fullmatch(rf"{_ARRAY}\[threadIdx\.x\] = (\w+);", texts[1])
    before, read, after = texts[3].partition(f"{_ARRAY}[{_OTHER}]")
    if body is None or lane is None or written is None or not read:
        raise NotApplicable("the loop reads no other lane of its warp")
    call, own_line, _ = spelling.partition(_OWN_LINE)
    text = f"{before}{call.partition('_, _')[0]}{written[1]}, {lane[1] or lane[2]}){after}"
    newline, start = unit.newline(loop.start_byte), body.start_byte
    lead = b" "
    if own_line:
        lead = newline + unit.indent(inner[0].start_byte)
    while unit.source[start - 1 : start].isspace():
        start -= 1
    return Edit(start, body.end_byte, lead + text.encode("utf-8", "surrogateescape"))


WARP_SHUFFLES = Rule(
    name="warp-shuffles",
    action="warp_exchange",
    surface="cuda",
    title="Exchange through shared memory, not registers",
    adds="Exchange between lanes in registers",
    at="An exchange through shared memory between the threads of one warp",
    rationale="A shuffle reads another lane's register in one instruction; without it each value is written "
    "to shared memory, the warp waits, reads, and waits again.",
    preconditions=(
        "Pipeline: every lane of the warp reaches the exchange, in the same iteration.",
        "Layout: threadIdx.x numbers the threads of the block, so that a warp is 32 neighbours.",
        "Data types: a value of 4 or 8 bytes.",
        "Hardware: warps of 32 lanes that can read each other's registers (sm_30 and later).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll",),
)
