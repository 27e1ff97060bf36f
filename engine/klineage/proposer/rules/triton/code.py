"""Reading Triton code: launches, parameters, calls into ``tl``, what a statement defines and uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.rule import NotApplicable
from klineage.surface.autotune import pinned
from klineage.surface.lists import elements, remove_elements
from klineage.surface.tree import Edit, Function, Unit, ancestors, parse_kernel, walk

_TL = re.compile(r"(?:tl|triton\.language)\.(?:math\.|extra\.\w+\.)?(?:libdevice\.)?(\w+)")


@dataclass(frozen=True)
class Launch:
    """One ``kernel[grid](...)``. ``arguments`` is the node of its argument list."""

    kernel: str
    locus: str
    call: Node
    grid: Node
    arguments: Node
    host: Function | None

    def keyword(self, unit: Unit, name: str) -> Node | None:
        """The node of ``name=value``, or None."""
        return next((k for k in elements(self.arguments) if _keyword_name(unit, k) == name), None)


def _keyword_name(unit: Unit, node: Node) -> str | None:
    name = node.child_by_field_name("name") if node.type == "keyword_argument" else None
    return unit.text(name) if name is not None else None


def value_of(keyword: Node) -> Node:
    """The value of a ``name=value`` node."""
    value = keyword.child_by_field_name("value")
    assert value is not None
    return value


def jit_functions(unit: Unit) -> tuple[Function, ...]:
    return tuple(f for f in unit.functions if f.jit)


def launches(unit: Unit, kernel: str | None = None) -> tuple[Launch, ...]:
    """The launches in the file, of one kernel or of all."""
    found = []
    for locus, node in unit.loci.items():
        function = node.child_by_field_name("function") if node.type == "call" else None
        arguments = node.child_by_field_name("arguments") if node.type == "call" else None
        if function is None or arguments is None or arguments.type != "argument_list":
            continue
        name, grid = function.child_by_field_name("value"), function.child_by_field_name("subscript")
        if name is None or grid is None or kernel not in (None, unit.text(name)):
            continue
        found.append(Launch(unit.text(name), locus, node, grid, arguments, unit.function_at(locus)))
    return tuple(found)


def only_launch(unit: Unit, function: Function) -> Launch | None:
    """The launch of a kernel that is launched at exactly one place, outside itself, else None."""
    found = launches(unit, function.name)
    start, end = function.node.start_byte, function.node.end_byte
    return found[0] if len(found) == 1 and not start <= found[0].call.start_byte < end else None


def of_other_grids(unit: Unit, launch: Launch, name: str) -> bool:
    """Whether another launch starts as many programs, by the same name: then a change of what it counts changes both."""
    started = [
        other.call.child_by_field_name("function") for other in launches(unit) if other.call != launch.call
    ]
    return any(node is not None and mentions(unit, node, name) for node in started)


def launch_setting(kernel: Kernel, function: Function, name: str) -> str | None:
    """The value of a launch option or constant: as written in the only launch, else as pinned by autotune."""
    unit = parse_kernel(kernel)
    launch = only_launch(unit, function)
    if launch is None:
        return None
    keyword = launch.keyword(unit, name)
    if keyword is not None:
        return unit.text(value_of(keyword))
    return next((str(v) for n, v in pinned(kernel, function) if n == name), None)


def parameters(unit: Unit, function: Function) -> dict[str, Node]:
    """The parameters of a function by name, in order."""
    listing = function.definition.child_by_field_name("parameters")
    found = {}
    for node in elements(listing) if listing is not None else ():
        name = next((n for n in walk(node) if n.type == "identifier"), None)
        if name is not None:
            found[unit.text(name)] = node
    return found


def is_constexpr(unit: Unit, parameter: Node) -> bool:
    annotation = parameter.child_by_field_name("type")
    return annotation is not None and unit.text(annotation).split(".")[-1] == "constexpr"


def tl_call(unit: Unit, node: Node) -> str | None:
    """``load`` for a call ``tl.load(...)``; None for anything else."""
    function = node.child_by_field_name("function") if node.type == "call" else None
    if function is None:
        return None
    match = _TL.fullmatch(unit.text(function))
    return match.group(1) if match else None


def tl_calls(unit: Unit, root: Node, *names: str) -> list[Node]:
    """The calls to any of the named ``tl`` functions below a node, in source order."""
    return [call for name, call in _named_calls(unit, root) if name in names]


@lru_cache(maxsize=1024)
def _named_calls(unit: Unit, root: Node) -> list[tuple[str, Node]]:
    """(name, call) of every call into ``tl`` below a node: rules ask again and again for the same."""
    found = ((tl_call(unit, n), n) for n in walk(root) if n.type == "call")
    return [(name, call) for name, call in found if name is not None]


def positional(call: Node) -> list[Node]:
    """The positional arguments of a call."""
    listing = call.child_by_field_name("arguments")
    return [a for a in elements(listing) if a.type != "keyword_argument"] if listing is not None else []


def argument(unit: Unit, call: Node, index: int) -> str:
    """The text of a positional argument; empty when the call has too few."""
    given = positional(call)
    return unit.text(given[index]) if index < len(given) else ""


def keywords(unit: Unit, call: Node) -> dict[str, Node]:
    """The keyword arguments of a call: the ``name=value`` nodes by name."""
    listing = call.child_by_field_name("arguments")
    named = {_keyword_name(unit, a): a for a in elements(listing)} if listing is not None else {}
    return {name: node for name, node in named.items() if name is not None}


def statements(block: Node) -> list[Node]:
    """The statements of a block, without comments."""
    return [c for c in block.named_children if c.type != "comment"]


def assignment(statement: Node) -> Node | None:
    """The assignment that an expression statement consists of, or None."""
    if statement.type != "expression_statement" or len(statements(statement)) != 1:
        return None
    inner = statements(statement)[0]
    return inner if inner.type in ("assignment", "augmented_assignment") else None


def sides(statement: Node) -> tuple[Node, Node] | None:
    """Left and right of a plain assignment statement, or None."""
    node = assignment(statement)
    if node is None or node.type != "assignment":
        return None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    return (left, right) if left is not None and right is not None else None


def identifiers(root: Node) -> Iterator[Node]:
    """The identifiers that are read as values: no attribute names, no keyword names."""
    for node in walk(root):
        if node.type != "identifier":
            continue
        if not _is_label(node):
            yield node


def _is_label(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type not in ("attribute", "keyword_argument"):
        return False
    return node in (parent.child_by_field_name("attribute"), parent.child_by_field_name("name"))


def names(unit: Unit, root: Node) -> set[str]:
    return {unit.text(n) for n in identifiers(root)}


def defined(unit: Unit, statement: Node) -> set[str]:
    """The names that a statement (re)defines, in nested statements too."""
    found: set[str] = set()
    for node in walk(statement):
        if node.type in ("assignment", "augmented_assignment", "for_statement"):
            left = node.child_by_field_name("left")
            if left is not None and left.type in ("identifier", "pattern_list", "tuple_pattern"):
                found |= names(unit, left)
    return found


def used(unit: Unit, statement: Node) -> set[str]:
    """The names that a statement reads; the target of ``x += 1`` counts, that of ``x = 1`` does not."""
    targets = set()
    for node in walk(statement):
        left = node.child_by_field_name("left") if node.type == "assignment" else None
        if left is not None and left.type in ("identifier", "pattern_list", "tuple_pattern"):
            targets |= {n.id for n in identifiers(left)}
    return {unit.text(n) for n in identifiers(statement) if n.id not in targets}


def mentions(unit: Unit, root: Node, name: str) -> list[Node]:
    return [n for n in identifiers(root) if unit.text(n) == name]


def delete_statements(unit: Unit, gone: list[Node]) -> tuple[Edit, ...]:
    """Delete statements with the comments directly above each."""
    edits = []
    for node in gone:
        start, end = unit.lines_of(node)
        if start < node.start_byte or start == unit.line_start(node.start_byte):
            start = _attached_comment(unit, node, start)
        edits.append(Edit(start, end))
    return tuple(edits)


def _attached_comment(unit: Unit, node: Node, start: int) -> int:
    """The start of the comment lines that touch the top of ``node`` at its own indentation."""
    above = node.prev_sibling
    while above is not None and above.type == "comment" and unit.alone(above.start_byte, above.end_byte):
        first, after = unit.lines_of(above)
        if after != start or unit.indent(above.start_byte) != unit.indent(node.start_byte):
            break
        start, above = first, above.prev_sibling
    return start


def stale_comments(unit: Unit, root: Node, pattern: str) -> tuple[Edit, ...]:
    """Delete the blocks of whole-line comments below ``root`` that speak of a removed mechanism."""
    blocks: list[list[Node]] = []
    for node in walk(root):
        if node.type != "comment" or not unit.alone(node.start_byte, node.end_byte):
            continue
        if blocks and unit.lines_of(blocks[-1][-1])[1] == unit.lines_of(node)[0]:
            blocks[-1].append(node)
        else:
            blocks.append([node])
    stale = [b for b in blocks if any(re.search(pattern, unit.text(c)) for c in b)]
    return tuple(Edit(unit.lines_of(b[0])[0], unit.lines_of(b[-1])[1]) for b in stale)


def drop_parameter(unit: Unit, function: Function, names_gone: list[str]) -> tuple[Edit, ...]:
    """Take parameters out of a kernel's signature and out of all its launches (by name or position).

    Raises NotApplicable where a launch unpacks its arguments (``*strides``, ``**config``), so that it is not in the
    text which of them a parameter gets.
    """
    known = parameters(unit, function)
    listing = function.definition.child_by_field_name("parameters")
    gone = [known[n] for n in names_gone if n in known]
    edits = list(remove_elements(unit, listing, gone)) if listing is not None and gone else []
    order = list(known)
    for launch in launches(unit, function.name):
        given = elements(launch.arguments)
        named = {_keyword_name(unit, a): a for a in given}
        placed = [a for a in given if a.type not in ("keyword_argument", "dictionary_splat")]
        by_place = dict(zip(order, placed, strict=False))
        unpacked = any(a.type in ("list_splat", "dictionary_splat") for a in given)
        if unpacked and any(n in order and n not in named for n in names_gone):
            raise NotApplicable(f"a launch of {function.name} unpacks its arguments")
        drop = [found for n in names_gone if (found := named.get(n) or by_place.get(n)) is not None]
        if drop:
            edits += remove_elements(unit, launch.arguments, drop)
    return tuple(edits)


def enclosing_statement(node: Node) -> Node:
    """The statement (a child of a block or of the module) that a node is part of."""
    current = node
    for parent in ancestors(node):
        if parent.type in ("block", "module"):
            return current
        current = parent
    return current
