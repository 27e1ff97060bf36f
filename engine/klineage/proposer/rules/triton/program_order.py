"""Program order: groups of row blocks that share their column blocks in L2 become plain row-major order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    delete_statements,
    drop_parameter,
    is_constexpr,
    jit_functions,
    launch_setting,
    launches,
    mentions,
    names,
    parameters,
    sides,
    stale_comments,
    statements,
    tl_call,
    tl_calls,
)
from klineage.surface.lists import add_element
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk


@dataclass(frozen=True)
class _Grouped:
    """``row = first + (p % width) % size; col = (p % width) // size`` and the statements that lead to it."""

    row: Node
    col: Node
    program: str
    columns: str  # the name of the number of column blocks
    group: str  # the group-size parameter
    support: tuple[Node, ...]  # statements that serve nothing else


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        found = _grouped(unit, function)
        size = launch_setting(kernel, function, found.group) if found is not None else None
        if found is not None and size is not None:
            feature = Feature(function.locus, "l2_raster")
            sites.append(Site(function.locus, (feature,), {found.group: size}))
    return tuple(sites)


def _grouped(unit: Unit, function: Function) -> _Grouped | None:
    """Find the grouped order by what is computed from what, whatever the names are."""
    body = statements(function.body)
    values = {
        unit.text(p[0]): (s, p[1]) for s in body if (p := sides(s)) is not None and p[0].type == "identifier"
    }
    programs = [n for n, (_, v) in values.items() if _program_axis(unit, v) is not None]
    sizes = [n for n, (_, v) in values.items() if _minimum(unit, v) is not None]
    constants = [n for n, node in parameters(unit, function).items() if is_constexpr(unit, node)]
    for size in sizes:
        col = next((n for n, (_, v) in values.items() if _by(unit, v, "//") == size), None)
        row = next(
            (n for n, (_, v) in values.items() if n not in sizes and _ends_in_modulo(unit, v, size)), None
        )
        minimum = _minimum(unit, values[size][1]) or set()
        group = next((n for n in constants if n in minimum), None)
        if col is None or row is None or group is None:
            continue
        leading = _closure(unit, values, {row, col})
        program = next((p for p in programs if p in leading), None)
        columns = _columns(unit, values, leading, group)
        if program is None or columns is None:
            continue
        kept = {row, col, program, columns}
        support = tuple(
            values[n][0] for n in leading - kept if _serves_only(unit, function, n, leading, values)
        )
        return _Grouped(values[row][0], values[col][0], program, columns, group, support)
    return None


def _program_axis(unit: Unit, value: Node) -> str | None:
    calls = tl_calls(unit, value, "program_id")
    return unit.text(calls[0]) if calls else None


def _minimum(unit: Unit, value: Node) -> set[str] | None:
    """The names inside ``min(a - b, c)``, builtin or of tl, else None."""
    function = value.child_by_field_name("function") if value.type == "call" else None
    if function is None or (unit.text(function) != "min" and tl_call(unit, value) not in ("minimum", "min")):
        return None
    return names(unit, value) - {"min", "tl"}


def _by(unit: Unit, value: Node, operator: str) -> str | None:
    """The right operand of ``... <operator> name``."""
    node = _bare(value)
    sign, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    if node.type != "binary_operator" or sign is None or right is None or unit.text(sign) != operator:
        return None
    return unit.text(_bare(right))


def _bare(node: Node) -> Node:
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def _ends_in_modulo(unit: Unit, value: Node, size: str) -> bool:
    return any(_by(unit, n, "%") == size for n in walk(value) if n.type == "binary_operator")


def _closure(unit: Unit, values: dict[str, tuple[Node, Node]], start: set[str]) -> set[str]:
    """The assigned names that the given ones are computed from, themselves included."""
    found, todo = set(start), list(start)
    while todo:
        for name in names(unit, values[todo.pop()][1]):
            if name in values and name not in found:
                found.add(name)
                todo.append(name)
    return found


def _columns(unit: Unit, values: dict[str, tuple[Node, Node]], leading: set[str], group: str) -> str | None:
    """``n`` of the group's width ``GROUP * n``: the number of column blocks."""
    for name in leading:
        node = _bare(values[name][1])
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator")
        if (
            node.type != "binary_operator"
            or left is None
            or right is None
            or sign is None
            or unit.text(sign) != "*"
        ):
            continue
        pair = [unit.text(_bare(left)), unit.text(_bare(right))]
        others = [p for p in pair if p != group]
        if group not in pair or len(others) != 1 or others[0] not in values:
            continue
        if _is_block_count(unit, values[others[0]][1]):
            return others[0]
    return None


def _is_block_count(unit: Unit, value: Node) -> bool:
    """Whether a value is ``cdiv(size, block)`` or ``tl.num_programs(...)``."""
    function = value.child_by_field_name("function") if value.type == "call" else None
    return function is not None and unit.text(function).split(".")[-1] in ("cdiv", "num_programs")


def _serves_only(
    unit: Unit, function: Function, name: str, leading: set[str], values: dict[str, tuple[Node, Node]]
) -> bool:
    """Whether a name is used nowhere but in the statements that compute the order."""
    inside = {values[n][0].id for n in leading}
    for node in mentions(unit, function.body, name):
        current: Node | None = node
        while current is not None and current.id not in inside:
            current = current.parent
        if current is None:
            return False
    return True


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    found = _grouped(unit, function) if function is not None else None
    if function is None or found is None:
        raise NotApplicable("the program order is not grouped")
    edits = []
    for statement, operator in ((found.row, "//"), (found.col, "%")):
        pair = sides(statement)
        assert pair is not None
        text = f"{found.program} {operator} {found.columns}".encode("utf-8", "surrogateescape")
        edits.append(Edit(pair[1].start_byte, pair[1].end_byte, text))
    inside = {found.row.id, found.col.id, *(s.id for s in found.support)}
    elsewhere = [n for n in mentions(unit, function.body, found.group) if not _within(n, inside)]
    dropped = () if elsewhere else drop_parameter(unit, function, [found.group])
    comments = stale_comments(unit, function.node, rf"\b{found.group}\b|(?i:\bgroup|\bL2\b|swizzl)")
    return Rewrite(merge_edits(tuple(edits), delete_statements(unit, list(found.support)), dropped, comments))


def _within(node: Node, inside: set[int]) -> bool:
    current: Node | None = node
    while current is not None:
        if current.id in inside:
            return True
        current = current.parent
    return False


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None or len(settings) != 1:
        raise NotApplicable("no such function, or not one group size")
    group, size = next(iter(settings.items()))
    setting(settings, group)
    row, col, program, columns = _row_major(unit, function)
    row_name = _assigned(unit, row)
    count, extent, block = _row_blocks(unit, function, row_name)
    lines = [] if _is_defined(unit, function, count) else [f"{count} = tl.cdiv({extent}, {block})"]
    at = _definition(unit, function, columns)
    edits = [_before(unit, at, lines)] if lines else []
    new = [
        f"num_pid_in_group = {group} * {columns}",
        f"group_id = {program} // num_pid_in_group",
        f"first_pid_m = group_id * {group}",
        f"group_size_m = min({count} - first_pid_m, {group})",
    ]
    edits.append(_before(unit, row, new))
    grouped = (
        "first_pid_m + ({} % num_pid_in_group) % group_size_m",
        "({} % num_pid_in_group) // group_size_m",
    )
    for statement, value in zip((row, col), grouped, strict=True):
        pair = sides(statement)
        assert pair is not None
        edits.append(
            Edit(
                pair[1].start_byte, pair[1].end_byte, value.format(program).encode("utf-8", "surrogateescape")
            )
        )
    return (*edits, *_passed(unit, function, group, size))


def _row_major(unit: Unit, function: Function) -> tuple[Node, Node, str, str]:
    """The statements ``row = p // columns`` and ``col = p % columns`` with their names."""
    body = statements(function.body)
    plain = {s.id: p for s in body if (p := sides(s)) is not None}
    for row in body:
        columns = _by(unit, plain[row.id][1], "//") if row.id in plain else None
        if columns is None:
            continue
        for col in body:
            if col.id in plain and _by(unit, plain[col.id][1], "%") == columns:
                left = [_bare(plain[s.id][1]).child_by_field_name("left") for s in (row, col)]
                if left[0] is not None and left[1] is not None and unit.text(left[0]) == unit.text(left[1]):
                    return row, col, unit.text(left[0]), columns
    raise NotApplicable("no row-major program order (row = p // columns, col = p % columns) to group")


def _assigned(unit: Unit, statement: Node) -> str:
    pair = sides(statement)
    assert pair is not None
    return unit.text(pair[0])


def _row_blocks(unit: Unit, function: Function, row: str) -> tuple[str, str, str]:
    """(name for the number of row blocks, row extent, rows a block): from the offsets and what bounds
    them."""
    block = extent = None
    offsets: set[str] = set()
    for node in walk(function.body):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator")
        if node.type == "binary_operator" and sign is not None and left is not None and right is not None:
            if unit.text(sign) == "*" and row in (unit.text(left), unit.text(right)):
                block = unit.text(right if unit.text(left) == row else left)
                statement = _enclosing(node, function)
                pair = sides(statement) if statement is not None else None
                if pair is not None:
                    offsets.add(unit.text(pair[0]))
            if unit.text(sign) == "%" and row in names(unit, left):
                extent = extent or unit.text(right)
    for node in walk(function.body):
        if node.type == "comparison_operator" and len(node.named_children) == 2 and "<" in unit.text(node):
            small, large = node.named_children
            if names(unit, small) & offsets:
                extent = extent or unit.text(large)
    if block is None or extent is None:
        raise NotApplicable("nothing bounds the rows of a block, so their number cannot be told")
    return f"num_{row}", extent, block


def _enclosing(node: Node, function: Function) -> Node | None:
    current: Node | None = node
    while current is not None and current.parent != function.body:
        current = current.parent
    return current


def _is_defined(unit: Unit, function: Function, name: str) -> bool:
    return any((p := sides(s)) is not None and unit.text(p[0]) == name for s in statements(function.body))


def _definition(unit: Unit, function: Function, name: str) -> Node:
    for statement in statements(function.body):
        pair = sides(statement)
        if pair is not None and unit.text(pair[0]) == name:
            return statement
    raise NotApplicable(f"{name!r} is not computed at the top of the function")


def _before(unit: Unit, statement: Node, lines: list[str]) -> Edit:
    at = unit.line_start(statement.start_byte)
    indent, newline = unit.indent(at), unit.newline(at)
    return Edit(
        at, at, b"".join(indent + line.encode("utf-8", "surrogateescape") + newline for line in lines)
    )


def _passed(unit: Unit, function: Function, group: str, size: str) -> list[Edit]:
    """The group size as a parameter, and in every launch after the last constant."""
    known = parameters(unit, function)
    if group in known:
        return []
    listing = function.definition.child_by_field_name("parameters")
    constants = [n for n in known.values() if is_constexpr(unit, n)]
    if listing is None or not constants:
        raise NotApplicable("the kernel has no constants among which the group size could stand")
    edits = [add_element(unit, listing, f"{group}: tl.constexpr", constants[-1])]
    for launch in launches(unit, function.name):
        passed = [
            k for n, p in known.items() if p in constants and (k := launch.keyword(unit, n)) is not None
        ]
        edits.append(add_element(unit, launch.arguments, f"{group}={size}", passed[-1] if passed else None))
    return edits


PROGRAM_ORDER = Rule(
    name="program-order",
    action="l2_raster",
    surface="triton",
    title="Use row-major program order",
    adds="Group the program order for L2",
    at="Where a program works out from its number which tile of the result is its own",
    rationale="Programs that run at the same time are grouped into squares of blocks, so that they share "
    "rows and columns in L2; row-major order streams every column block again for each row.",
    preconditions=(
        "Layout: the grid is one-dimensional and its programs start roughly in order.",
        "Storage: the operands of a group fit in L2 together, and those of a whole row of blocks do not.",
        "Hardware: a last-level cache shared by all multiprocessors.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune",),
    known={"Storage": Known(change="size", settings={"dim": "*", "value": "/8"})},
)
