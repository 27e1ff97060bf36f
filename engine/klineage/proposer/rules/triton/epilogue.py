"""What a kernel does with its sums before it stores them becomes a kernel of its own."""

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
    jit_functions,
    keywords,
    launches,
    names,
    only_launch,
    parameters,
    positional,
    sides,
    statements,
    tl_calls,
    used,
    value_of,
)
from klineage.surface.lists import add_element, elements
from klineage.surface.tree import Edit, Function, Unit, apply_edits, merge_edits, parse, parse_kernel

_NAME = "_epilogue"
_BEHIND = "behind."


@dataclass(frozen=True)
class _Epilogue:
    """The statements between the loop and the store that compute with what the loop summed."""

    total: str  # the name that the loop leaves
    steps: tuple[Node, ...]  # what is computed with it
    store: Node  # the statement
    call: Node
    value: str  # the name that is stored


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        found = _epilogue(unit, function)
        if found is None:
            continue
        settings = {"total": found.total, "value": found.value}
        order = list(parameters(unit, function))
        for name in _unneeded(unit, function, found):
            settings[_BEHIND + name] = order[order.index(name) - 1] if order.index(name) else ""
        sites.append(Site(function.locus, (Feature(function.locus, "fusion"),), settings))
    return tuple(sites)


def _epilogue(unit: Unit, function: Function) -> _Epilogue | None:
    body = statements(function.body)
    loops = [i for i, s in enumerate(body) if s.type == "for_statement"]
    stores = tl_calls(unit, function.body, "store")
    if (
        not loops
        or len(stores) != 1
        or stores[0].parent != body[-1]
        or tl_calls(unit, function.body, "atomic_add")
    ):
        return None
    loop, tail, call = body[loops[-1]], body[loops[-1] + 1 : -1], stores[0]
    given = positional(call)
    stored = (
        re.fullmatch(r"(\w+)(?:\.to\(.*\))?", unit.text(given[1]), re.DOTALL) if len(given) >= 2 else None
    )
    left = defined(unit, loop) & {n for s in (*tail, body[-1]) for n in used(unit, s)}
    if stored is None or len(left) != 1 or any(s.type != "expression_statement" for s in tail):
        return None
    total = next(iter(left))
    steps, known = [], {total}
    for statement in tail:
        if used(unit, statement) & known:
            steps.append(statement)
            known |= defined(unit, statement)
    where = names(unit, given[0]) | {
        n for k in keywords(unit, call).values() for n in names(unit, value_of(k))
    }
    if not steps or stored[1] not in known or where & known:
        return None
    return _Epilogue(total, tuple(steps), body[-1], call, stored[1])


def _kept(unit: Unit, function: Function, found: _Epilogue) -> tuple[list[Node], list[Node]]:
    """(statements of the kernel that sums, statements of the kernel that goes on)."""
    body = statements(function.body)
    loop = next(i for i, s in reversed(list(enumerate(body))) if s.type == "for_statement")
    where = _where(unit, found)
    summing = body[: loop + 1] + _needed(unit, body[loop + 1 : -1], where, found.steps) + [found.store]
    wanted = where | {n for s in found.steps for n in used(unit, s)} - {found.total}
    outside = [s for s in body[:-1] if s.type == "expression_statement" and s not in found.steps]
    going_on = sorted(
        [*_needed(unit, outside, wanted, (), found.total), *found.steps, found.store],
        key=lambda s: s.start_byte,
    )
    return summing, going_on


def _where(unit: Unit, found: _Epilogue) -> set[str]:
    """The names in the address and the mask of the store."""
    given = positional(found.call)
    return names(unit, given[0]) | {
        n for k in keywords(unit, found.call).values() for n in names(unit, value_of(k))
    }


def _needed(
    unit: Unit, body: list[Node], wanted: set[str], without: tuple[Node, ...], total: str = ""
) -> list[Node]:
    """The statements that ``wanted`` names come from, in order; those that make the total are left out."""
    keep: list[Node] = []
    for statement in reversed(body):
        made = defined(unit, statement)
        if statement in without or total in made or not made & wanted:
            continue
        keep.insert(0, statement)
        wanted = wanted | used(unit, statement)
    return keep


def _unneeded(unit: Unit, function: Function, found: _Epilogue) -> list[str]:
    """The parameters that the kernel that sums does not need."""
    summing, _ = _kept(unit, function, found)
    read = (
        {n for s in summing if s != found.store for n in used(unit, s)}
        | _where(unit, found)
        | _suffix_names(unit, found)
    )
    return [n for n in parameters(unit, function) if n not in read]


def _suffix_names(unit: Unit, found: _Epilogue) -> set[str]:
    return names(unit, positional(found.call)[1]) - {found.value}


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    found = _epilogue(unit, function) if function is not None else None
    launch = only_launch(unit, function) if function is not None else None
    if function is None or found is None or launch is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    if unit.function(function.name + _NAME) is not None:
        raise NotApplicable(f"a function {function.name}{_NAME} is already there")
    statement = launch.call.parent
    if statement is None or statement.type != "expression_statement":
        raise NotApplicable("the launch is part of a larger statement")
    summing, _ = _kept(unit, function, found)
    gone = [s for s in statements(function.body) if s not in summing]
    edits = merge_edits(
        delete_statements(unit, gone),
        drop_parameter(unit, function, _unneeded(unit, function, found)),
        (_stored(found, found.total),),
    )
    definition, call = _second(kernel, function, found)
    at, after = unit.lines_of(function.node)[1], unit.lines_of(statement)[1]
    blank = unit.newline(at - 1) * 2
    return Rewrite(merge_edits(edits, (Edit(at, at, blank + definition), Edit(after, after, call))))


def _stored(found: _Epilogue, name: str) -> Edit:
    at = positional(found.call)[1].start_byte
    return Edit(at, at + len(found.value.encode()), name.encode("utf-8", "surrogateescape"))


def _second(kernel: Kernel, function: Function, found: _Epilogue) -> tuple[bytes, bytes]:
    """(definition, launch) of the kernel that loads the sums and goes on with them."""
    unit = parse_kernel(kernel)
    _, going_on = _kept(unit, function, found)
    title = function.definition.child_by_field_name("name")
    assert title is not None
    given, mask = positional(found.call), keywords(unit, found.call).get("mask")
    bound = f", {unit.text(mask)}, other=0.0" if mask is not None else ""
    reload = f"{found.total} = tl.load({unit.text(given[0])}{bound}).to(tl.float32)"
    if len(given) > 2:
        raise NotApplicable("the mask of the store is not named")
    first = _before_all(unit, going_on, found)
    at = unit.line_start(first.start_byte)
    text = unit.indent(at) + reload.encode("utf-8", "surrogateescape") + unit.newline(at)
    read = {n for s in going_on for n in used(unit, s)}
    edits = merge_edits(
        delete_statements(unit, [s for s in statements(function.body) if s not in going_on]),
        drop_parameter(unit, function, [n for n in parameters(unit, function) if n not in read]),
        (
            Edit(
                title.start_byte, title.end_byte, f"{function.name}{_NAME}".encode("utf-8", "surrogateescape")
            ),
            Edit(at, at, text),
        ),
        tuple(_renamed(launch, function.name + _NAME) for launch in launches(unit, function.name)),
    )
    other = parse(kernel.surface, kernel.filename, apply_edits(kernel.source, edits))
    made, launch = other.function(function.name + _NAME), launches(other, function.name + _NAME)
    statement = launch[0].call.parent if len(launch) == 1 else None
    if made is None or statement is None:
        raise NotApplicable("the kernel is not launched at exactly one place in this file")
    return other.source[slice(*other.lines_of(made.node))], other.source[slice(*other.lines_of(statement))]


def _before_all(unit: Unit, going_on: list[Node], found: _Epilogue) -> Node:
    """The statement in front of which the sums are loaded: the first step, or the store if its address comes later."""
    place = _needed(
        unit, [s for s in going_on if s not in found.steps and s != found.store], _where(unit, found), ()
    )
    first = found.steps[0]
    if any(s.start_byte > first.start_byte for s in place):
        raise NotApplicable("the address of the store is computed after the first step")
    return first


def _renamed(launch: Launch, name: str) -> Edit:
    function = launch.call.child_by_field_name("function")
    value = function.child_by_field_name("value") if function is not None else None
    assert value is not None
    return Edit(value.start_byte, value.end_byte, name.encode("utf-8", "surrogateescape"))


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    """The second kernel's own statements in front of the first one's store, and its parameters."""
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    total, value = setting(settings, "total"), setting(settings, "value")
    second = unit.function(f"{function.name}{_NAME}") if function is not None else None
    calls = (
        (only_launch(unit, function), only_launch(unit, second))
        if function is not None and second is not None
        else (None, None)
    )
    if (
        function is None
        or second is None
        or calls[0] is None
        or calls[1] is None
        or calls[1].call.parent is None
    ):
        raise NotApplicable("no two kernels of which one goes on with what the other sums")
    store = statements(function.body)[-1]
    call = next(iter(tl_calls(unit, store, "store")), None)
    given = positional(call) if call is not None else []
    if len(given) < 2 or not unit.text(given[1]).startswith(total):
        raise NotApplicable(f"the kernel does not store {total}")
    edits = _moved(unit, function, second, total)
    at = given[1].start_byte
    edits.append(Edit(at, at + len(total.encode()), value.encode("utf-8", "surrogateescape")))
    edits.append(Edit(unit.lines_of(function.node)[1], unit.lines_of(second.node)[1]))
    edits.append(Edit(*unit.lines_of(calls[1].call.parent)))
    for key, behind in settings.items():
        if key.startswith(_BEHIND):
            edits += _parameter(
                unit, (function, second), (calls[0], calls[1]), key.removeprefix(_BEHIND), behind
            )
    return tuple(sorted(edits))


def _moved(unit: Unit, first: Function, second: Function, total: str) -> list[Edit]:
    """What the second kernel computes and the first does not, each in front of what both have behind it."""
    ours = {_flat(unit, s): s for s in statements(first.body)[:-1]}
    theirs = statements(second.body)
    store = statements(first.body)[-1]
    lines: dict[int, bytes] = {}
    for index, statement in enumerate(theirs[:-1]):
        pair = sides(statement)
        reload = (
            pair is not None and unit.text(pair[0]) == total and unit.text(pair[1]).startswith("tl.load(")
        )
        if _flat(unit, statement) in ours or reload:
            continue
        behind = next((ours[t] for s in theirs[index + 1 :] if (t := _flat(unit, s)) in ours), store)
        at = unit.line_start(behind.start_byte)
        lines[at] = lines.get(at, b"") + unit.source[slice(*unit.lines_of(statement))]
    if not lines:
        raise NotApplicable(f"the second kernel computes nothing with {total}")
    return [Edit(at, at, text) for at, text in lines.items()]


def _flat(unit: Unit, statement: Node) -> str:
    return re.sub(r"\s+", "", unit.text(statement))


def _parameter(
    unit: Unit, functions: tuple[Function, Function], calls: tuple[Launch, Launch], name: str, behind: str
) -> list[Edit]:
    """A parameter of the second kernel for the first one too, and what the launch gives to it."""
    (first, second), (one, two) = functions, calls
    known, theirs = parameters(unit, first), parameters(unit, second)
    listing = first.definition.child_by_field_name("parameters")
    if name not in theirs or name in known or behind not in known or listing is None:
        raise NotApplicable(f"{name} cannot be added to the kernel's parameters")
    edits = [add_element(unit, listing, unit.text(theirs[name]), known[behind])]
    keyword = two.keyword(unit, name)
    if keyword is not None:
        return [*edits, add_element(unit, one.arguments, unit.text(keyword), one.keyword(unit, behind))]
    given, ours = elements(two.arguments), elements(one.arguments)
    index, place = list(theirs).index(name), list(known).index(behind)
    if index >= len(given) or place >= len(ours):
        raise NotApplicable(f"the launch gives nothing to {name}")
    return [*edits, add_element(unit, one.arguments, unit.text(given[index]), ours[place])]


EPILOGUE = Rule(
    name="fused-epilogue",
    action="fusion",
    surface="triton",
    title="Store the sums, and go on in a second kernel",
    adds="Go on with the sums before they are stored",
    at="A kernel that stores sums, and the next one that loads them to add, scale or activate",
    rationale="Bias, activation or scaling are computed on the sums while they are in registers; as a kernel of "
    "its own, the epilogue loads the whole result again and stores it a second time.",
    preconditions=(
        "Layout: the epilogue works element by element on the tile that a program has summed.",
        "Storage: what the epilogue reads beside the sums fits in registers next to them.",
        "Data types: the sums need not be rounded to the stored type before the epilogue.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
    after=(
        "autotune",
        "persistent_schedule",
        "split_or_cluster",
        "warp_specialize",
        "cache_policy",
        "mask_specialize",
    ),
)
