"""A loop that strides by the whole grid becomes one element a thread, in a grid that covers them all."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.c.code import node_at, place_of
from klineage.proposer.rules.cuda.code import declarations, has_kernel
from klineage.proposer.rules.rewritten import function_of
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.surface.tree import Edit, Function, Unit, parse_kernel, walk

_BLOCK = r"blockIdx\.x \* blockDim\.x \+ threadIdx\.x"
_START = re.compile(
    rf"(?P<type>[\w: ]+?) (?P<name>\w+) = (?P<first>{_BLOCK}|threadIdx\.x \+ blockIdx\.x \* blockDim\.x|blockIdx\.x);"
)
_STEP = re.compile(
    r"(?P<name>\w+) \+= (?:gridDim\.x \* blockDim\.x|blockDim\.x \* gridDim\.x|(?P<blocks>gridDim\.x))"
)
_PARENTHESES = r"\((?:[^()]|\([^()]*\))*\)"
_LAUNCH = re.compile(r"^[ \t]*//[ \t]*klineage:[ \t]*launch[ \t]+(\w+)[^\r\n]*", re.MULTILINE)
_DIRECTIVE = re.compile(
    rf"^([ \t]*//[ \t]*klineage:[ \t]*launch[ \t]+(\w+)\b[^\r\n]*?\bgrid=)({_PARENTHESES}|[^\s()]+)",
    re.MULTILINE,
)
_BARRIERS = re.compile(r"\b(?:__sync\w+|__shfl\w*|\w*barrier\w*|\w*\.sync)\b")


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for locus, node in unit.loci.items() if has_kernel(unit) else ():
        function = unit.function_at(locus)
        if node.type == "for_statement" and function is not None and function.jit and _strided(unit, node):
            sites.append(
                Site(locus, (Feature(locus, "persistent_schedule"),), _settings(unit, node, function))
            )
    return tuple(sites)


def _strided(unit: Unit, loop: Node) -> re.Match[str] | None:
    """The start of ``for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)``."""
    parts = [loop.child_by_field_name(name) for name in ("initializer", "condition", "update")]
    texts = [" ".join(unit.text(p).split()) if p is not None else "" for p in parts]
    start, step = _START.fullmatch(texts[0]), _STEP.fullmatch(texts[2])
    if start is None or step is None or start["name"] != step["name"]:
        return None
    whole_blocks = start["first"] == "blockIdx.x"
    return (
        start
        if whole_blocks == bool(step["blocks"]) and re.match(rf"{start['name']} < \w+$", texts[1])
        else None
    )


def _settings(unit: Unit, loop: Node, function: Function) -> dict[str, str]:
    update = loop.child_by_field_name("update")
    found = {"step": " ".join(unit.text(update).split()) if update is not None else ""}
    grid = _grids(unit).get(function.name)
    return found | ({"grid": grid[1]} if grid is not None else {})


def _grids(unit: Unit) -> dict[str, tuple[int, str]]:
    """(offset in bytes, text) of the grid of every kernel that is launched at one place."""
    text = unit.source.decode("latin-1")
    found: dict[str, list[tuple[int, str]]] = {}
    for match in _DIRECTIVE.finditer(text):
        found.setdefault(match[2], []).append((match.start(3), match[3]))
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    loop, function = node_at(unit, place_of(unit, site.locus)), unit.function_at(site.locus)
    start, body = _strided(unit, loop), loop.child_by_field_name("body")
    grid = _grids(unit).get(function.name) if function is not None else None
    if function is None or start is None or body is None or grid is None:
        raise NotApplicable(
            "the kernel is not launched at exactly one place, whose grid could cover every element"
        )
    _refuse_carried(unit, function, loop, body)
    condition = loop.child_by_field_name("condition")
    limit = unit.text(condition).partition("<")[2].strip() if condition is not None else ""
    elements = _named(unit, function, limit)
    if start["first"] != "blockIdx.x":
        elements = f"cdiv({elements}, {_threads(unit, function.name)})"
    if loop.parent is None or loop.parent.type != "compound_statement":
        raise NotApplicable("the loop is no statement of a block")
    head = f"const {start['type'].removeprefix('const ')} {start['name']} = {start['first']};"
    newline, indent = unit.newline(loop.start_byte), unit.indent(loop.start_byte)
    test = f"if ({unit.text(condition)})" if condition is not None else ""
    text = (
        head.encode("utf-8", "surrogateescape") + newline + indent + test.encode("utf-8", "surrogateescape")
    )
    header_end = _header_end(loop)
    return Rewrite(
        (
            Edit(grid[0], grid[0] + len(grid[1]), f"({elements})".encode()),
            Edit(loop.start_byte, header_end, text),
        )
    )


def _header_end(loop: Node) -> int:
    return next(c.end_byte for c in reversed(loop.children) if c.type == ")")


def _refuse_carried(unit: Unit, function: Function, loop: Node, body: Node) -> None:
    """Raise NotApplicable when iterations depend on each other or meet at a barrier."""
    if _BARRIERS.search(unit.text(body)):
        raise NotApplicable("threads wait for each other inside the loop")
    inside = {
        name
        for name, _, node in declarations(unit, function)
        if body.start_byte <= node.start_byte < body.end_byte
    }
    for node in walk(body):
        if node.type in ("break_statement", "continue_statement", "return_statement", "goto_statement"):
            raise NotApplicable(f"line {unit.line(node.start_byte)} leaves an iteration early")
        target = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if node.type == "update_expression":
            target = node.child_by_field_name("argument")
        if target is not None and target.type == "identifier" and unit.text(target) not in inside:
            raise NotApplicable(f"{unit.text(target)} is carried from one iteration to the next")
    after = [c for c in function.body.named_children if c.start_byte > loop.end_byte and c.type != "comment"]
    if after:
        raise NotApplicable("more follows the loop in the kernel")


def _named(unit: Unit, function: Function, name: str) -> str:
    """What a launch comment calls the loop's limit: a parameter that gets what has its own name."""
    known = {n for n, _, node in declarations(unit, function) if node.type == "parameter_declaration"}
    if name not in known or re.search(r"\bargs=", _launch_line(unit, function.name)):
        raise NotApplicable(f"{name} is no parameter of which the launch says what it is")
    return name


def _launch_line(unit: Unit, kernel: str) -> str:
    lines = (m for m in _LAUNCH.finditer(unit.source.decode("latin-1")) if m[1] == kernel)
    return next((m[0] for m in lines), "")


def _threads(unit: Unit, kernel: str) -> str:
    block = re.search(rf"\bblock=({_PARENTHESES}|[^\s()]+)", _launch_line(unit, kernel))
    text = block[1] if block is not None else ""
    inner = text[1:-1] if text.startswith("(") else text
    if not inner or "," in re.sub(r"\([^()]*\)", "", inner):
        raise NotApplicable("the block of the launch has several dimensions")
    return inner.strip()


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    grid = _grids(unit).get(function.name) if function is not None else None
    step, size = setting(settings, "step"), setting(settings, "grid")
    if function is None or grid is None:
        raise NotApplicable("the kernel is not launched at exactly one place")
    for node in function.body.named_children:
        name = re.match(
            rf"const ([\w: ]+) (\w+) = ({_BLOCK}|threadIdx\.x \+ blockIdx\.x \* blockDim\.x|blockIdx\.x);",
            unit.text(node),
        )
        test = node.next_named_sibling
        condition = (
            test.child_by_field_name("condition")
            if test is not None and test.type == "if_statement"
            else None
        )
        if (
            name is None
            or test is None
            or condition is None
            or test.child_by_field_name("alternative") is not None
        ):
            continue
        inner = unit.text(condition)[1:-1]
        if not inner.startswith(f"{name[2]} < ") or function_of(unit, node) != function:
            continue
        header = f"for ({name[1]} {name[2]} = {name[3]}; {inner}; {step})"
        return (
            Edit(grid[0], grid[0] + len(grid[1]), size.encode("latin-1", "replace")),
            Edit(node.start_byte, condition.end_byte, header.encode("utf-8", "surrogateescape")),
        )
    raise NotApplicable("the kernel computes no element a thread under a condition")


GRID_STRIDE = Rule(
    name="grid-stride",
    action="persistent_schedule",
    surface="cuda",
    title="Give each thread or block one item",
    adds="Let a fixed grid stride over the items",
    at="Where a block takes its item by its number, and the grid of the launch",
    rationale="A grid of fixed size walks over all items, so that what a block sets up serves many of them; with "
    "one item each, every block is launched, set up and ended for its own.",
    preconditions=(
        "Pipeline: items are independent, so that any block may take any of them.",
        "Hardware: the grid fills every multiprocessor once.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("unroll",),
)
