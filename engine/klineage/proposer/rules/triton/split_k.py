"""A sum that several programs share and add up with atomics becomes a loop of one program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    defined,
    enclosing_statement,
    jit_functions,
    keywords,
    mentions,
    names,
    only_launch,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
    value_of,
)
from klineage.proposer.rules.triton.persistent import passed
from klineage.surface.lists import elements
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk

_PART = re.compile(r"tl\.program_id\((?:axis=)?(\d)\) \* (\w+) \+ tl\.arange\(0, (\w+)\)")
_TOTAL = "total"


@dataclass(frozen=True)
class _Split:
    """``p = program_id(2) * BK + arange(0, BK); ...; part = tl.dot(...); tl.atomic_add(at, part, mask=...)``."""

    axis: int
    block: str
    indices: Node  # the statement that defines p
    variable: str
    inside: tuple[Node, ...]  # the statements between, which use p
    part: Node  # the statement that makes the partial sum
    name: str
    atomic: Node  # the call
    extent: str


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        atomics = tl_calls(unit, function.body, "atomic_add")
        if not atomics or not tl_calls(unit, function.body, "dot", "sum") or not _numbered(unit, function):
            continue
        try:
            settings = _settings(unit, function, _split(unit, function))
        except NotApplicable:
            settings = {}  # removing says why
        sites.append(Site(function.locus, (Feature(function.locus, "split_or_cluster"),), settings))
    return tuple(sites)


def _numbered(unit: Unit, function: Function) -> list[tuple[Node, re.Match[str]]]:
    """The statements that number a block of indices by a program's own number on the last axis."""
    found = []
    for statement in statements(function.body):
        pair = sides(statement)
        match = _PART.fullmatch(" ".join(unit.text(pair[1]).split())) if pair is not None else None
        if match is not None and match[2] == match[3] and pair is not None and pair[0].type == "identifier":
            found.append((statement, match))
    return [(s, m) for s, m in found if m[1] == "2"]


def _split(unit: Unit, function: Function) -> _Split:
    atomics, numbered = tl_calls(unit, function.body, "atomic_add"), _numbered(unit, function)
    if len(atomics) != 1 or len(numbered) != 1:
        raise NotApplicable("not one atomic sum over one split axis")
    indices, match = numbered[0]
    pair = sides(indices)
    assert pair is not None
    variable, body = unit.text(pair[0]), statements(function.body)
    last = enclosing_statement(atomics[0])
    given, named = positional(atomics[0]), keywords(unit, atomics[0])
    if last != body[-1] or len(given) != 2 or set(named) - {"mask", "sem"} or given[1].type != "identifier":
        raise NotApplicable(
            "the atomic sum is not the last thing that the kernel does, or has other arguments"
        )
    name = unit.text(given[1])
    part = next((s for s in body if (p := sides(s)) is not None and unit.text(p[0]) == name), None)
    if part is None or not (body.index(indices) < body.index(part) == len(body) - 2):
        raise NotApplicable(f"{name} is not made directly before it is added")
    inside = tuple(body[body.index(indices) + 1 : -2])
    if any(variable in names(unit, node) for node in (given[0], *[value_of(k) for k in named.values()])):
        raise NotApplicable("where the sum goes depends on the part")
    made = {n for statement in inside for n in defined(unit, statement)}
    where = [given[0], *[value_of(k) for k in named.values()]]
    if early := made & {n for node in where for n in names(unit, node)}:
        raise NotApplicable(f"{min(early)}, of where the sum goes, is made among what only a part needs")
    kinds = sides(part)
    if (
        kinds is None
        or tl_call(unit, kinds[1]) not in ("dot", "sum")
        or "out_dtype" in keywords(unit, kinds[1])
    ):
        raise NotApplicable(f"{name} is no product or sum in fp32")
    return _Split(
        2, match[2], indices, variable, inside, part, name, atomics[0], _extent(unit, function, variable)
    )


def _extent(unit: Unit, function: Function, variable: str) -> str:
    """What the indices are bounded by in every mask: ``p < k``."""
    found = set()
    for node in walk(function.body):
        if node.type == "comparison_operator" and variable in names(unit, node):
            match = re.fullmatch(rf"{variable}(?:\[[^\]]*\])? < (\w+)", unit.text(node))
            found.add(match[1] if match else "")
    if len(found) != 1 or "" in found:
        raise NotApplicable(f"no single extent bounds {variable}")
    return found.pop()


def _settings(unit: Unit, function: Function, split: _Split) -> dict[str, str]:
    launch = only_launch(unit, function)
    if launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    extents = _extents(unit, function, 3)
    cleared = _cleared(unit, function, split)
    settings = {
        "indices": split.variable,
        "block": split.block,
        "part": split.name,
        "parts": unit.text(extents[2]),
        "clear": unit.text(cleared),
        "clear.at": str(_number(cleared)),
    }
    if "sem" in keywords(unit, split.atomic):
        settings["sem"] = unit.text(value_of(keywords(unit, split.atomic)["sem"]))
    return settings


def _number(statement: Node) -> int:
    block = statement.parent
    return statements(block).index(statement) if block is not None else 0


def _extents(unit: Unit, function: Function, count: int) -> list[Node]:
    """The extents that the kernel is launched with: so many, 2 or 3."""
    launch = only_launch(unit, function)
    grid: Node | None = launch.grid if launch is not None else None
    if launch is not None and grid is not None and grid.type == "identifier" and launch.host is not None:
        wanted = unit.text(grid)
        made = [
            p[1]
            for s in statements(launch.host.body)
            if (p := sides(s)) is not None and unit.text(p[0]) == wanted
        ]
        grid = made[0] if len(made) == 1 else None
    if grid is None or grid.type != "tuple" or len(elements(grid)) != count:
        raise NotApplicable(f"the grid is not written as {('two', 'three')[count - 2]} extents")
    return elements(grid)


def _cleared(unit: Unit, function: Function, split: _Split) -> Node:
    """The host's statement that sets the output to zero before the launch."""
    launch = only_launch(unit, function)
    given = positional(split.atomic)
    name = next((unit.text(n) for n in walk(given[0]) if n.type == "identifier"), "")
    base = (passed(unit, function, launch, name) if launch is not None and name else None) or name
    for statement in statements(launch.host.body) if launch is not None and launch.host is not None else ():
        if re.fullmatch(rf"{re.escape(base)}\.(?:zero_\(\)|fill_\(0(?:\.0)?\))", unit.text(statement)):
            return statement
    raise NotApplicable(f"the host does not set {base} to zero under that name before the launch")


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    if function is None:
        raise NotApplicable("no such function")
    split = _split(unit, function)
    _settings(unit, function, split)
    if mentions(unit, function.body, _TOTAL) or mentions(unit, function.body, "start"):
        raise NotApplicable("the names 'total' or 'start' are taken")
    extents = _extents(unit, function, 3)
    cleared, given = _cleared(unit, function, split), positional(split.atomic)
    right = sides(split.part)
    assert right is not None
    indent, newline = unit.indent(split.indices.start_byte), unit.newline(split.indices.start_byte)
    start, end = unit.line_start(split.indices.start_byte), unit.lines_of(split.part)[1]
    kept = unit.source[unit.lines_of(split.indices)[1] : unit.line_start(split.part.start_byte)]
    moved = b"".join(b"    " + line if line.strip() else line for line in kept.splitlines(keepends=True))
    lines = [
        f"{_TOTAL} = tl.zeros({_shape(unit, function, given[0])}, dtype=tl.float32)",
        f"for start in range(0, {split.extent}, {split.block}):",
        f"    {split.variable} = start + tl.arange(0, {split.block})",
    ]
    head = b"".join(indent + line.encode("utf-8", "surrogateescape") + newline for line in lines)
    tail = f"    {_TOTAL} += {unit.text(right[1])}".encode("utf-8", "surrogateescape")
    text = head + moved + indent + tail + newline
    mask = keywords(unit, split.atomic).get("mask")
    stored = f"tl.store({unit.text(given[0])}, {_TOTAL}{f', {unit.text(mask)}' if mask is not None else ''})"
    return Rewrite(
        tuple(
            sorted(
                (
                    Edit(start, end, text),
                    Edit(
                        split.atomic.start_byte,
                        split.atomic.end_byte,
                        stored.encode("utf-8", "surrogateescape"),
                    ),
                    Edit(extents[1].end_byte, extents[2].end_byte),
                    Edit(*unit.lines_of(cleared)),
                )
            )
        )
    )


def _shape(unit: Unit, function: Function, address: Node) -> str:
    """The shape of what is added: the extents of the indices in its address, rows before columns."""
    spans = {}
    for statement in statements(function.body):
        pair = sides(statement)
        match = re.search(r"tl\.arange\(0, (\w+)\)", unit.text(pair[1])) if pair is not None else None
        if match is not None and pair is not None and pair[0].type == "identifier":
            spans[unit.text(pair[0])] = match[1]
    text = unit.text(address)
    rows = [n for n in spans if f"{n}[:, None]" in text]
    columns = [n for n in spans if f"{n}[None, :]" in text]
    plain = [n for n in spans if re.search(rf"\b{n}\b(?!\[)", text)]
    if len(rows) == len(columns) == 1 and not plain:
        return f"({spans[rows[0]]}, {spans[columns[0]]})"
    if len(plain) == 1 and not rows and not columns:
        return f"({spans[plain[0]]},)"
    raise NotApplicable(f"the shape of what is added at {text} is not known")


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    launch = only_launch(unit, function) if function is not None else None
    variable, block, part, parts, clear = (
        setting(settings, n) for n in ("indices", "block", "part", "parts", "clear")
    )
    if function is None or launch is None or launch.host is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    loop, added, store = _loop(unit, function, variable, block)
    body = loop.child_by_field_name("body")
    zero = loop.prev_named_sibling
    given, named = positional(store), keywords(unit, store)
    if body is None or zero is None or len(given) != 2:
        raise NotApplicable("no loop that sums over blocks and stores once")
    indent, newline = unit.indent(loop.start_byte), unit.newline(loop.start_byte)
    first = statements(body)[0]
    kept = unit.source[unit.lines_of(first)[1] : unit.line_start(added.start_byte)]
    moved = b"".join(
        line[4:] if line.startswith(b"    ") else line for line in kept.splitlines(keepends=True)
    )
    head = f"{variable} = tl.program_id(2) * {block} + tl.arange(0, {block})".encode(
        "utf-8", "surrogateescape"
    )
    inner = added.named_children[0].child_by_field_name("right")
    tail = f"{part} = {unit.text(inner) if inner is not None else ''}".encode("utf-8", "surrogateescape")
    text = indent + head + newline + moved + indent + tail + newline
    options = "".join(f", {unit.text(k)}" for k in named.values())
    options += f", sem={settings['sem']}" if "sem" in settings else ""
    atomic = f"tl.atomic_add({unit.text(given[0])}, {part}{options})".encode("utf-8", "surrogateescape")
    grid = _extents(unit, function, 2)[1]
    before = statements(launch.host.body)[int(settings.get("clear.at", "0"))]
    at = unit.line_start(before.start_byte)
    cleared = unit.indent(at) + clear.encode("utf-8", "surrogateescape") + unit.newline(at)
    return tuple(
        sorted(
            (
                Edit(unit.line_start(zero.start_byte), unit.lines_of(loop)[1], text),
                Edit(store.start_byte, store.end_byte, atomic),
                Edit(grid.end_byte, grid.end_byte, f", {parts}".encode("utf-8", "surrogateescape")),
                Edit(at, at, cleared),
            )
        )
    )


def _loop(unit: Unit, function: Function, variable: str, block: str) -> tuple[Node, Node, Node]:
    """(loop over blocks, the statement that adds to the total, the store of the total)."""
    for node in statements(function.body):
        body = node.child_by_field_name("body") if node.type == "for_statement" else None
        inside = statements(body) if body is not None else []
        pair = sides(inside[0]) if inside else None
        if (
            pair is None
            or unit.text(pair[0]) != variable
            or f"tl.arange(0, {block})" not in unit.text(pair[1])
        ):
            continue
        added = next((s for s in inside if unit.text(s).startswith(f"{_TOTAL} += ")), None)
        stores = [c for c in tl_calls(unit, function.body, "store") if _TOTAL in names(unit, c)]
        if added is not None and added == inside[-1] and len(stores) == 1:
            return node, added, stores[0]
    raise NotApplicable(f"no loop over blocks of {variable} that adds to a total")


SPLIT_K = Rule(
    name="split-sum",
    action="split_or_cluster",
    surface="triton",
    title="Let one program compute the whole sum",
    adds="Split the sum over several programs",
    at="The loop over a long sum, the store of its result, and the grid of the launch",
    rationale="Several programs each take a part of a long sum and add their results with atomics, so that few "
    "output tiles still fill the machine; with one program a tile, it walks the whole sum alone.",
    preconditions=(
        "Data types: the output's type can be added to by atomics, and the order of the parts may change the result.",
        "Storage: the output is zero before the first program adds to it.",
        "Pipeline: there are too few output tiles to occupy the machine, and the sum is long.",
        "Hardware: atomic additions of the output's type in the last-level cache (of bf16 from sm_90 on).",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "warp_specialize"),
    # The matrix of types and architectures of atom.add and red.add: PTX ISA; what is missing is emulated in a loop.
    known={"Hardware": Known('satisfies("nvidia-sm90") or element in ("fp16", "fp32")', "platform")},
)
