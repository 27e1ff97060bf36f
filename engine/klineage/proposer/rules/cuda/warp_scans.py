"""Shuffles whose value gets a name: ``const float before = __shfl_up_sync(mask, sum, apart);``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.c.code import arguments, innermost
from klineage.proposer.rules.cuda.code import launches
from klineage.proposer.rules.rewritten import function_of
from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.tree import Edit, Function, Unit, walk

SELF = "self"
_ARRAY = "exchange"
_WAIT = "__syncwarp();"
_SOURCES = {
    "__shfl_up_sync": "{s} % 32 < {by} ? {s} : {s} - {by}",
    "__shfl_down_sync": "{s} % 32 + {by} < 32 ? {s} + {by} : {s}",
    "__shfl_sync": "{s} / 32 * 32 + {by} % 32",
    "__shfl_xor_sync": "{s} ^ {by}",
}


@dataclass(frozen=True)
class Scan:
    """One such statement. ``by`` is the distance, or the lane itself for ``__shfl_sync``."""

    statement: Node
    call: Node
    shuffle: str
    mask: str
    value: str
    by: str
    variable: str
    type: str
    function: Function

    def key(self, unit: Unit) -> str:
        """Where it stands: the innermost place, and the name that it sets."""
        return f"{innermost(unit, self.statement)}.{self.variable}"


def scan_of(unit: Unit, call: Node) -> Scan | None:
    """The statement that a shuffle is the whole value of; None when it stands in another form."""
    holder, callee, function = call.parent, call.child_by_field_name("function"), function_of(unit, call)
    statement = holder.parent if holder is not None and holder.type == "init_declarator" else None
    given = [unit.text(a) for a in arguments(call)]
    declared = holder.child_by_field_name("declarator") if holder is not None else None
    kind = statement.child_by_field_name("type") if statement is not None else None
    if (
        statement is None
        or statement.type != "declaration"
        or declared is None
        or kind is None
        or function is None
    ):
        return None
    alone = statement.parent is not None and statement.parent.type == "compound_statement"
    name = unit.text(callee) if callee is not None else ""
    if not alone or name not in _SOURCES or len(given) != 3 or declared.type != "identifier":
        return None
    if len(statement.children_by_field_name("declarator")) != 1 or not re.fullmatch(r"\w+", given[2]):
        return None
    if re.search(r"\+\+|--|\w\(|(?<![=!<>])=(?!=)", given[1]):
        return None
    text = " ".join(unit.text(kind).split())
    return Scan(statement, call, name, given[0], given[1], given[2], unit.text(declared), text, function)


def thread_number(kernel: Kernel, function: Function) -> str:
    """How the threads of a block are numbered, whatever dimensions the launches give it."""
    found = launches(kernel, function)
    if not found:
        raise NotApplicable("no launch says how many threads a block has")
    if all(launch.block[1:] == (1, 1) for launch in found):
        return "threadIdx.x"
    if all(launch.block[2] == 1 for launch in found):
        return "threadIdx.y * blockDim.x + threadIdx.x"
    return "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"


def through_memory(unit: Unit, scan: Scan) -> Edit:
    """Write the own value, wait for the warp, read the other lane's, wait again."""
    start, end = scan.statement.start_byte, scan.statement.end_byte
    head, tail = unit.source[start : scan.call.start_byte], unit.source[scan.call.end_byte : end]
    source = _SOURCES[scan.shuffle].format(s=SELF, by=scan.by)
    lines = [
        f"{_ARRAY}[{SELF}] = {scan.value};".encode("utf-8", "surrogateescape"),
        _WAIT.encode(),
        head + f"{_ARRAY}[{source}]".encode("utf-8", "surrogateescape") + tail,
        _WAIT.encode(),
    ]
    return Edit(start, end, (unit.newline(start) + unit.indent(start)).join(lines))


def in_registers(unit: Unit, key: str, spelling: str) -> tuple[Edit, Function]:
    """The shuffle again, and the function that it stands in. ``spelling`` is ``__shfl_up_sync(mask, _, _)``."""
    place, _, variable = key.rpartition(".")
    for node in walk(unit.root):
        if node.type != "declaration" or not unit.text(node).partition(" = ")[0].endswith(f" {variable}"):
            continue
        function = function_of(unit, node)
        around = [node.prev_named_sibling, node.next_named_sibling]
        first = around[0].prev_named_sibling if around[0] is not None else None
        texts = [unit.text(n) if n is not None else "" for n in (first, *around)]
        written = re.fullmatch(rf"{_ARRAY}\[{SELF}\] = (.+);", texts[0])
        shuffle, _, rest = spelling.partition("(")
        if (
            written is None
            or texts[1:] != [_WAIT, _WAIT]
            or innermost(unit, node) != place
            or shuffle not in _SOURCES
        ):
            continue
        pattern = re.escape(_SOURCES[shuffle].format(s=SELF, by="\0")).replace(re.escape("\0"), r"(\w+)", 1)
        pattern = pattern.replace(re.escape("\0"), r"\w+")
        value = unit.text(node).partition(" = ")
        read = re.fullmatch(rf"{_ARRAY}\[{pattern}\];", value[2])
        if read is None or first is None or around[1] is None or function is None:
            continue
        text = f"{value[0]} = {shuffle}({rest.partition(', _')[0]}, {written[1]}, {read[1]});"
        return Edit(first.start_byte, around[1].end_byte, text.encode("utf-8", "surrogateescape")), function
    raise NotApplicable(f"{place or 'the file'} exchanges no {variable} through shared memory")
