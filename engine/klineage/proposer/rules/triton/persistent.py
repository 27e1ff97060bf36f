"""Persistent programs, which take tile after tile, become one program a tile."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import Known, NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    Launch,
    defined,
    drop_parameter,
    is_constexpr,
    jit_functions,
    mentions,
    only_launch,
    parameters,
    positional,
    sides,
    statements,
    tl_call,
    used,
    value_of,
)
from klineage.surface.lists import add_element, elements
from klineage.surface.tree import Edit, Function, Unit, merge_edits, parse_kernel, walk

_LEAVING = ("return_statement", "break_statement", "continue_statement")
_BARE = re.compile(r"[\w.]+(?:\([^()]*\)|\[[^\[\]]*\])*")


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        for loop in _loops(unit, function):
            locus = next(place for place, node in unit.loci.items() if node == loop)
            feature = Feature(locus, "persistent_schedule")
            sites.append(Site(locus, (feature,), _settings(unit, function, loop)))
    return tuple(sites)


def _loops(unit: Unit, function: Function) -> list[Node]:
    """The outermost loops that begin at the program's own number and go on by the number of programs."""
    body = statements(function.body)
    programs = {
        unit.text(p[0]) for s in body if (p := sides(s)) is not None and tl_call(unit, p[1]) == "program_id"
    }
    found = []
    for node in body:
        bounds = _bounds(unit, node)
        if len(bounds) != 3:
            continue
        begins = unit.text(bounds[0]) in programs or tl_call(unit, bounds[0]) == "program_id"
        step = bounds[2]
        fixed = step.type == "identifier" or tl_call(unit, step) == "num_programs"
        if begins and fixed:
            found.append(node)
    return found


def _bounds(unit: Unit, loop: Node) -> list[Node]:
    right = loop.child_by_field_name("right") if loop.type == "for_statement" else None
    callee = right.child_by_field_name("function") if right is not None and right.type == "call" else None
    if right is None or callee is None or unit.text(callee) not in ("range", "tl.range"):
        return []
    return positional(right)


def _settings(unit: Unit, function: Function, loop: Node) -> dict[str, str]:
    left, right, launch = (
        loop.child_by_field_name("left"),
        loop.child_by_field_name("right"),
        only_launch(unit, function),
    )
    settings = {
        "tile": unit.text(left) if left is not None else "",
        "range": " ".join(unit.text(right).split()) if right is not None else "",
    }
    if launch is not None:
        settings["grid"] = " ".join(unit.text(launch.grid).split())
        settings |= _counted(unit, function, launch, loop)
    step = _only_step(unit, function, loop)
    value = passed(unit, function, launch, step) if launch is not None and step else None
    if value is not None:
        order = list(parameters(unit, function))
        settings |= {"step": f"{step}={value}", "behind": order[order.index(step) - 1]}
    return settings


def _counted(unit: Unit, function: Function, launch: Launch, loop: Node) -> dict[str, str]:
    """How many tiles there are, as the host computes it: on another kernel the grid counts something else."""
    try:
        return {"tiles": _on_host(unit, function, launch, _bounds(unit, loop)[1])}
    except NotApplicable:
        return {}  # removing says why


def _only_step(unit: Unit, function: Function, loop: Node) -> str:
    """The constant parameter that is nothing but the loop's step; empty when there is none."""
    text = unit.text(_bounds(unit, loop)[2])
    known = parameters(unit, function)
    constant = text in known and is_constexpr(unit, known[text]) and next(iter(known)) != text
    return text if constant and len(mentions(unit, function.body, text)) == 1 else ""


def passed(unit: Unit, function: Function, launch: Launch, name: str) -> str | None:
    """What a launch gives to a parameter, by name or by position."""
    keyword = launch.keyword(unit, name)
    if keyword is not None:
        return unit.text(value_of(keyword))
    order, given = list(parameters(unit, function)), elements(launch.arguments)
    index = order.index(name) if name in order else len(given)
    if index < len(given) and given[index].type not in ("keyword_argument", "list_splat", "dictionary_splat"):
        return unit.text(given[index])
    return None


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function, loop = unit.function_at(site.locus), unit.loci.get(site.locus)
    launch = only_launch(unit, function) if function is not None else None
    if function is None or loop is None or launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    body = loop.child_by_field_name("body")
    if body is None or statements(function.body)[-1] != loop:
        raise NotApplicable("more follows the loop over tiles in the kernel")
    _refuse_carried(unit, function, loop, body)
    programs = launch.grid
    if programs.type in ("tuple", "list") and len(elements(programs)) != 1:
        raise NotApplicable("the grid has several dimensions")
    start, end, _ = _bounds(unit, loop)
    count = _on_host(unit, function, launch, end)
    head = f"{site.settings['tile']} = {unit.text(start)}".encode("utf-8", "surrogateescape")
    first, last = unit.line_start(body.start_byte), unit.lines_of(loop)[1]
    indent, own = unit.indent(loop.start_byte), unit.indent(body.start_byte)
    lines = unit.source[first:last].splitlines(keepends=True)
    moved = b"".join(indent + line[len(own) :] if line.startswith(own) else line for line in lines)
    newline = unit.newline(loop.start_byte)
    step = site.settings.get("step", "").partition("=")[0]
    dropped = drop_parameter(unit, function, [step]) if step else ()
    return Rewrite(
        merge_edits(
            (
                Edit(loop.start_byte, last, head + newline + moved),
                Edit(
                    programs.start_byte, programs.end_byte, f"({count},)".encode("utf-8", "surrogateescape")
                ),
            ),
            dropped,
        )
    )


def _refuse_carried(unit: Unit, function: Function, loop: Node, body: Node) -> None:
    """Raise NotApplicable when a tile needs what another left, or ends the loop."""
    for node in walk(body):
        if node.type in _LEAVING:
            raise NotApplicable(f"line {unit.line(node.start_byte)} leaves a tile early")
    before = {n for s in statements(function.body) if s != loop for n in defined(unit, s)}
    carried = sorted((before | set(parameters(unit, function))) & defined(unit, body) & used(unit, body))
    if carried:
        raise NotApplicable(f"{carried[0]} is carried from one tile to the next")


def _on_host(unit: Unit, function: Function, launch: Launch, bound: Node) -> str:
    """The number of tiles as the host can compute it: what the launch passes in place of parameters."""
    values = {
        unit.text(p[0]): p[1]
        for s in statements(function.body)
        if (p := sides(s)) is not None and p[0].type == "identifier"
    }
    text = unit.text(bound)
    for _ in range(8):  # a local that is computed from a local that ...
        local = next((n for n in _words(text) if n in values), None)
        if local is None:
            break
        text = _replaced(text, local, _bracketed(unit.text(values[local])))
    known = parameters(unit, function)
    for name in _words(text):
        if name in ("tl", "triton", "cdiv", "min", "max"):
            continue
        value = passed(unit, function, launch, name) if name in known else None
        if value is None:
            raise NotApplicable(f"the host does not know {name}, of which the number of tiles is computed")
        text = _replaced(text, name, f"\0{_bracketed(value)}\0")
    text = text.replace("\0", "").replace("tl.cdiv", "triton.cdiv")
    if bound.type == "identifier" and re.fullmatch(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", text):
        text = text[1:-1]
    if re.search(r"\btl\.", text):
        raise NotApplicable(f"the number of tiles, {text}, cannot be computed by the host")
    return text


def _words(text: str) -> list[str]:
    outside = re.sub(r"\0[^\0]*\0", "", text)
    return [m[0] for m in re.finditer(r"(?<![\w.])[A-Za-z_]\w*", outside)]


def _replaced(text: str, name: str, value: str) -> str:
    """The text with a name replaced, what was put in before left alone."""
    parts = re.split(r"(\0[^\0]*\0)", text)
    pattern = rf"(?<![\w.]){re.escape(name)}\b"
    return "".join(p if p.startswith("\0") else re.sub(pattern, lambda _: value, p) for p in parts)


def _bracketed(text: str) -> str:
    return text if _BARE.fullmatch(text) else f"({text})"


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    launch = only_launch(unit, function) if function is not None else None
    tile, counted, grid = (setting(settings, n) for n in ("tile", "range", "grid"))
    if function is None or launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    begin = next(
        (s for s in statements(function.body) if (p := sides(s)) is not None and unit.text(p[0]) == tile),
        None,
    )
    pair = sides(begin) if begin is not None else None
    if begin is None or pair is None or unit.text(pair[1]) not in counted:
        raise NotApplicable(f"the kernel computes no {tile} from its program's number")
    indent = unit.indent(begin.start_byte)
    rest, end = unit.line_end(begin.end_byte), unit.lines_of(statements(function.body)[-1])[1]
    head = f"for {tile} in {counted}:".encode("utf-8", "surrogateescape") + unit.newline(begin.start_byte)
    lines = unit.source[rest:end].splitlines(keepends=True)
    moved = b"".join(b"    " + line if line.strip() and line.startswith(indent) else line for line in lines)
    edits = [
        Edit(begin.start_byte, end, head + moved),
        Edit(launch.grid.start_byte, launch.grid.end_byte, grid.encode("utf-8", "surrogateescape")),
    ]
    if "step" in settings:
        edits += _again(unit, function, launch, settings)
    return tuple(sorted(edits))


def _again(unit: Unit, function: Function, launch: Launch, settings: Mapping[str, str]) -> list[Edit]:
    """The number of programs as a constant again."""
    name, _, value = settings["step"].partition("=")
    known, behind = parameters(unit, function), setting(settings, "behind")
    listing = function.definition.child_by_field_name("parameters")
    if listing is None or name in known or behind not in known:
        raise NotApplicable(f"{name} cannot be added to the kernel's parameters")
    given = elements(launch.arguments)
    before = launch.keyword(unit, behind)
    if before is None:
        plain = [a for a in given if a.type != "keyword_argument"]
        before = plain[-1] if plain else None
    return [
        add_element(unit, listing, f"{name}: tl.constexpr", known[behind]),
        add_element(unit, launch.arguments, f"{name}={value}", before),
    ]


PERSISTENT = Rule(
    name="persistent-programs",
    action="persistent_schedule",
    surface="triton",
    title="Start one program a tile",
    adds="Let programs stay and take tile after tile",
    at="Where a program takes its tile by its number, and the grid of the launch",
    rationale="A fixed number of programs walks over all tiles, so that loads of the next tile overlap the end of "
    "this one; with a program a tile, each starts, waits for its first loads and ends.",
    preconditions=(
        "Pipeline: tiles are independent, and many more than there are programs.",
        "Storage: what a program keeps between tiles leaves room for the tile itself.",
        "Hardware: as many programs as fit on the multiprocessors at once.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "loop_pipeline", "warp_specialize"),
    known={"Pipeline": Known(change="size", settings={"dim": "*", "value": "/8"})},
)
