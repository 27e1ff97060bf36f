"""Fusion: a kernel that stores an intermediate and goes on with it becomes two kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import (
    Launch,
    defined,
    delete_statements,
    drop_parameter,
    identifiers,
    jit_functions,
    keywords,
    launches,
    names,
    only_launch,
    parameters,
    positional,
    sides,
    statements,
    tl_call,
    tl_calls,
    used,
    value_of,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, parse, parse_kernel


@dataclass(frozen=True)
class _Fused:
    """A store of ``value`` that later statements go on computing with."""

    value: str
    definition: Node
    store: Node  # the statement
    pointer: str  # the parameter that the store goes to
    first: tuple[Node, ...]  # the statements that the store needs, itself included
    second: tuple[Node, ...]  # the statements that the rest needs, the definition included


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        fused = _fused(unit, function)
        if fused is not None and only_launch(unit, function) is not None:
            settings = {"value": fused.value, "through": fused.pointer}
            sites.append(Site(function.locus, (Feature(function.locus, "fusion"),), settings))
    return tuple(sites)


def _fused(unit: Unit, function: Function) -> _Fused | None:
    """The first such store in a straight-line kernel."""
    body = [s for s in statements(function.body) if s.type == "expression_statement"]
    if len(body) != len(statements(function.body)):
        return None
    stores = [s for s in body if tl_calls(unit, s, "store")]
    for store in stores[:-1]:
        call = tl_calls(unit, store, "store")[0]
        given = positional(call)
        value = _bare_value(unit, given[1]) if len(given) >= 2 else None
        pointer = next((unit.text(n) for n in identifiers(given[0])), None) if given else None
        definition = next((s for s in body if (p := sides(s)) is not None and unit.text(p[0]) == value), None)
        if (
            value is None
            or pointer is None
            or definition is None
            or pointer not in parameters(unit, function)
        ):
            continue
        if _is_load(unit, definition):
            continue
        later = [s for s in stores if s.start_byte > store.start_byte]
        first, second = _slice(unit, body, [store], None), _slice(unit, body, later, definition)
        if definition in second and definition in first:
            return _Fused(value, definition, store, pointer, first, second)
    return None


def _is_load(unit: Unit, statement: Node) -> bool:
    """Whether a statement only loads (and converts): then there is nothing to compute twice."""
    pair = sides(statement)
    value = pair[1] if pair is not None else None
    while value is not None and value.type == "call" and tl_call(unit, value) is None:
        function = value.child_by_field_name("function")
        value = function.child_by_field_name("object") if function is not None else None
    return value is not None and tl_call(unit, value) == "load"


def _bare_value(unit: Unit, node: Node) -> str | None:
    """The name in ``value`` or ``value.to(...)``."""
    match = re.match(r"(\w+)(\.to\(.*\))?\s*$", unit.text(node), re.DOTALL)
    return match.group(1) if match else None


def _slice(unit: Unit, body: list[Node], wanted: list[Node], stop: Node | None) -> tuple[Node, ...]:
    """The statements that ``wanted`` need, in order; nothing is followed beyond ``stop``, which is included.

    Straight-line code that assigns every name before it is read; all assignments to a needed name count.
    """
    needed = {n for s in wanted for n in used(unit, s)}
    keep = list(wanted)
    for statement in reversed(body):
        if statement in keep or not defined(unit, statement) & needed:
            continue
        keep.append(statement)
        if statement == stop:
            # what replaces it is a load with the same address and mask as the store
            continue
        needed |= used(unit, statement)
    return tuple(sorted(keep, key=lambda s: s.start_byte))


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    fused = _fused(unit, function) if function is not None else None
    launch = only_launch(unit, function) if function is not None else None
    if function is None or fused is None or launch is None:
        raise NotApplicable("the kernel stores nothing that it goes on computing with")
    name = _first_name(unit, fused.pointer)
    reads = _reads_back(unit, fused)
    needed = _with_reload(unit, function, fused)
    in_first = {n for s in fused.first for n in used(unit, s)}
    in_second = {n for s in needed for n in used(unit, s) if s != fused.definition} | reads[1]
    known = list(parameters(unit, function))
    gone = [s for s in statements(function.body) if s not in needed]
    pair = sides(fused.definition)
    assert pair is not None
    second = merge_edits(
        delete_statements(unit, gone),
        (Edit(pair[1].start_byte, pair[1].end_byte, reads[0].encode("utf-8", "surrogateescape")),),
        drop_parameter(unit, function, [n for n in known if n not in in_second]),
    )
    first = _first_kernel(kernel, function, fused, name, [n for n in known if n not in in_first])
    return Rewrite((*merge_edits(second), *_both(unit, function, launch, first)))


def _first_name(unit: Unit, pointer: str) -> str:
    name = f"{pointer.removesuffix('_ptr')}_kernel"
    if unit.function(name) is not None:
        raise NotApplicable(f"a function {name!r} is already there")
    return name


def _reads_back(unit: Unit, fused: _Fused) -> tuple[str, set[str]]:
    """The load that gets the intermediate back, and the names that it reads."""
    call = tl_calls(unit, fused.store, "store")[0]
    given, mask = positional(call), keywords(unit, call).get("mask")
    mask_node = value_of(mask) if mask is not None else (given[2] if len(given) > 2 else None)
    masked = f", mask={unit.text(mask_node)}, other=0.0" if mask_node is not None else ""
    read = names(unit, given[0]) | (names(unit, mask_node) if mask_node is not None else set())
    return f"tl.load({unit.text(given[0])}{masked}).to(tl.float32)", read


def _with_reload(unit: Unit, function: Function, fused: _Fused) -> tuple[Node, ...]:
    """The second kernel's statements: its slice, and what the address and mask of the reload need."""
    body = statements(function.body)
    needed = _reads_back(unit, fused)[1]
    keep = set(fused.second)
    for statement in reversed(body[: body.index(fused.definition)]):
        if defined(unit, statement) & needed:
            keep.add(statement)
            needed = needed | used(unit, statement)
    return tuple(sorted(keep, key=lambda s: s.start_byte))


def _first_kernel(
    kernel: Kernel, function: Function, fused: _Fused, name: str, unneeded: list[str]
) -> tuple[bytes, bytes]:
    """(definition, launch) of the kernel that computes and stores the intermediate."""
    unit = parse_kernel(kernel)
    title = function.definition.child_by_field_name("name")
    assert title is not None
    gone = [s for s in statements(function.body) if s not in fused.first]
    edits = merge_edits(
        delete_statements(unit, gone),
        drop_parameter(unit, function, unneeded),
        (Edit(title.start_byte, title.end_byte, name.encode("utf-8", "surrogateescape")),),
        tuple(_renamed(launch, name) for launch in launches(unit, function.name)),
    )
    other = parse(kernel.surface, kernel.filename, apply_edits(kernel.source, edits))
    made = other.function(name)
    launch = launches(other, name)
    if made is None or len(launch) != 1:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    definition = other.source[slice(*other.lines_of(made.node))]
    statement = launch[0].call.parent
    assert statement is not None
    return definition, other.source[slice(*other.lines_of(statement))]


def _renamed(launch: Launch, name: str) -> Edit:
    function = launch.call.child_by_field_name("function")
    value = function.child_by_field_name("value") if function is not None else None
    assert value is not None
    return Edit(value.start_byte, value.end_byte, name.encode("utf-8", "surrogateescape"))


def _both(unit: Unit, function: Function, launch: Launch, first: tuple[bytes, bytes]) -> tuple[Edit, ...]:
    statement = launch.call.parent
    if statement is None or statement.type != "expression_statement":
        raise NotApplicable("the launch is part of a larger statement")
    before = unit.line_start(function.node.start_byte)
    call = unit.line_start(statement.start_byte)
    blank = unit.newline(before) * 2
    lead = first[0].rstrip(b"\r\n") + unit.newline(before) + blank
    return Edit(before, before, lead), Edit(call, call, first[1])


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """Move the first kernel's statements in front of the reload, which its value replaces."""
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    value, pointer = setting(settings, "value"), setting(settings, "through")
    first = unit.function(settings.get("first", f"{pointer.removesuffix('_ptr')}_kernel"))
    if function is None or first is None:
        raise NotApplicable("no two kernels that hand an intermediate over")
    reload = next(
        (s for s in statements(function.body) if (p := sides(s)) and unit.text(p[0]) == value), None
    )
    calls = only_launch(unit, first), only_launch(unit, function)
    if reload is None or calls[0] is None or calls[1] is None:
        raise NotApplicable(f"{value!r} is not loaded back, or a kernel is launched at several places")
    edits = _moved(unit, first, function, reload, value)
    calls_gone = calls[0].call.parent
    assert calls_gone is not None
    edits.append(Edit(*unit.lines_of(calls_gone)))
    after = unit.line_start(function.node.start_byte)
    edits.append(Edit(unit.line_start(first.node.start_byte), after))
    return (*edits, *_joined_parameters(unit, first, function, calls[0], calls[1]))


def _moved(unit: Unit, first: Function, second: Function, reload: Node, value: str) -> list[Edit]:
    """The first kernel's own statements: what leads to the value after what both have, the rest for
    the reload."""
    body = statements(second.body)
    have = [_flat(unit, s) for s in body]
    moved = [s for s in statements(first.body) if _flat(unit, s) not in have]
    shared = [have.index(t) for s in statements(first.body) if (t := _flat(unit, s)) in have]
    definition = next((i for i, s in enumerate(moved) if value in defined(unit, s)), 0)
    following = body[max(shared, default=-1) + 1]
    early, late = (
        b"".join(unit.source[slice(*unit.lines_of(s))] for s in part)
        for part in (moved[:definition], moved[definition:])
    )
    start, end = unit.lines_of(reload)
    if following == reload:
        return [Edit(start, end, early + late)]
    at = unit.line_start(following.start_byte)
    return [Edit(at, at, early), Edit(start, end, late)]


def _flat(unit: Unit, statement: Node) -> str:
    return re.sub(r"\s+", "", unit.text(statement))


def _joined_parameters(unit: Unit, first: Function, second: Function, one: Launch, two: Launch) -> list[Edit]:
    """The first kernel's parameters that the second lacks, put before it, with what they are given."""
    theirs, ours = parameters(unit, first), parameters(unit, second)
    listing = second.definition.child_by_field_name("parameters")
    given = [a for a in elements(one.arguments) if a.type != "keyword_argument"]
    missing = [(i, n) for i, n in enumerate(theirs) if n not in ours]
    if listing is None or not ours or not elements(two.arguments) or any(i >= len(given) for i, _ in missing):
        raise NotApplicable("the first kernel takes a constant that the second lacks")
    if not missing:
        return []
    first_own, first_given = next(iter(ours.values())), elements(two.arguments)[0]
    own_line = unit.alone(first_own.start_byte, first_own.end_byte + 1)
    gap = unit.newline(first_own.start_byte) + unit.indent(first_own.start_byte) if own_line else b" "
    return [
        Edit(
            first_own.start_byte,
            first_own.start_byte,
            b"".join(
                unit.text(theirs[n]).encode("utf-8", "surrogateescape") + b"," + gap for _, n in missing
            ),
        ),
        Edit(
            first_given.start_byte,
            first_given.start_byte,
            b"".join(unit.text(given[i]).encode("utf-8", "surrogateescape") + b", " for i, _ in missing),
        ),
    ]


FUSION = Rule(
    name="fusion",
    action="fusion",
    surface="triton",
    title="Split the fused kernel at its intermediate",
    adds="Fuse the two kernels",
    at="Two kernels of which one loads what the other has just stored, and their launches",
    rationale="The intermediate is used while it is still in registers; as two kernels it is stored by one "
    "and loaded again by the other.",
    preconditions=(
        "Layout: both halves walk the same elements in the same program, so the value is there when it is "
        "needed.",
        "Storage: the intermediate's tile fits in registers until its last use.",
        "Data types: going on with the unrounded value may not be required to match the stored one bit for "
        "bit.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=("autotune", "alignment", "cache_policy", "warps", "fast_rsqrt"),  # both halves would keep them
)
