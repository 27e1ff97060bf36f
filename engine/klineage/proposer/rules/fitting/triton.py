"""Fits of the rules for Triton kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.proposer.rules.triton import tile_size
from klineage.proposer.rules.triton.code import (
    Launch,
    is_constexpr,
    jit_functions,
    keywords,
    names,
    only_launch,
    parameters,
    positional,
    sides,
    statements,
    tl_calls,
    value_of,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Function, Unit, parse_kernel, walk

_LOG2_E = "1.4426950408889634"


def tiles(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded sizes on the blocks of every kernel here: by name, else in their order; equal sizes for blocks that are
    equal here, since a grid may repeat one number for both; then half and a quarter of them."""
    unit = parse_kernel(kernel)
    for function in jit_functions(unit):
        here = tile_size.tiles_of(kernel, function)
        named = {name: size for name, size in settings.items() if name in here}
        rest = [size for name, size in settings.items() if name not in here]
        free = [name for name in here if name not in named]
        placed = {
            n: int(s) for n, s in {**named, **dict(zip(free, rest, strict=False))}.items() if s.isdigit()
        }
        least = {
            size: min((placed[n] for n in placed if here[n] == size), default=0) for size in here.values()
        }
        equal = {name: least[here[name]] for name in placed}
        for sizes, shrink in ((placed, 1), (equal, 1), (placed, 2), (equal, 2), (placed, 4)):
            made = {name: max(size // shrink, int(here[name])) for name, size in sizes.items()}
            grown = {name: str(size) for name, size in made.items() if size > int(here[name])}
            if grown:
                yield Fit(function.locus, grown, _sized(settings, grown, shrink))


def _sized(settings: Settings, made: Settings, shrink: int) -> tuple[str, ...]:
    if made == dict(settings):
        return ()
    was, now = (", ".join(f"{n}={s}" for n, s in sizes.items()) for sizes in (settings, made))
    why = f"a {shrink}th of it, for the whole may not fit" if shrink > 1 else "the blocks that are here"
    return (f"{was} became {now}: {why}",)


def online(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded names, or others where they are taken."""
    unit = parse_kernel(kernel)
    for function in jit_functions(unit):
        taken = names(unit, function.node)
        made = {key: _free(name, taken) for key, name in settings.items()}
        changed = {name: made[key] for key, name in settings.items() if made[key] != name}
        why = tuple(f"{old} is taken here, so it is called {new}" for old, new in changed.items())
        yield Fit(function.locus, made, why)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def peeled(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every loop over blocks; the header of the rest is written as the loop's own."""
    unit = parse_kernel(kernel)
    for locus, node in unit.loci.items():
        function = unit.function_at(locus)
        if node.type != "for_statement" or function is None:
            continue
        boundary = _free(settings.get("boundary", "whole"), names(unit, function.node))
        why = ("the rest counts as the loop itself does",) if "rest" in settings else ()
        yield Fit(locus, {"boundary": boundary}, why)


def base_two(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """log2(e) folded into a factor that every exponential's argument already has."""
    unit = parse_kernel(kernel)
    factors = list(settings.values())
    factor = factors[0] if factors else _LOG2_E
    imported = re.search(rb"^import math$", unit.source, re.MULTILINE) is not None
    why: tuple[str, ...] = ()
    if "math." in factor and not imported:
        factor, why = _LOG2_E, ("the factor is written as a number, for this file imports no math",)
    for function in jit_functions(unit):
        if not tl_calls(unit, function.body, "exp"):
            continue
        for name in _assigned_factors(unit, function):
            yield Fit(function.locus, {name: factor}, (f"{name} takes the factor here", *why))


def _assigned_factors(unit: Unit, function: Function) -> list[str]:
    """Names that are assigned somewhere in the file and multiplied with something in the kernel."""
    assigned = {
        unit.text(left)
        for node in walk(unit.root)
        if node.type == "assignment"
        and (left := node.child_by_field_name("left")) is not None
        and left.type == "identifier"
    }
    found = []
    for node in walk(function.body):
        sign = node.child_by_field_name("operator") if node.type == "binary_operator" else None
        if sign is not None and unit.text(sign) == "*":
            found += [unit.text(n) for n in node.named_children if n.type == "identifier"]
    return [name for name in dict.fromkeys(found) if name in assigned]


def fusions(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every value that one kernel stores and a later one loads back from the same tensor."""
    unit = parse_kernel(kernel)
    for first in jit_functions(unit):
        stored = _stored_to(unit, first)
        for second in jit_functions(unit):
            launched = only_launch(unit, first), only_launch(unit, second)
            if first == second or launched[0] is None or launched[1] is None:
                continue
            for value, pointer in _loaded_back(unit, second):
                given = _given(unit, second, launched[1]).get(pointer)
                if given is not None and given in (_given(unit, first, launched[0]).get(p) for p in stored):
                    made = {"value": value, "through": pointer, "first": first.name}
                    yield Fit(
                        second.locus, made, (f"{first.name} hands {value} over through {pointer} here",)
                    )


def _stored_to(unit: Unit, function: Function) -> set[str]:
    known = parameters(unit, function)
    calls = [c for c in tl_calls(unit, function.body, "store") if positional(unit, c)]
    return {name for c in calls for name in names(unit, positional(unit, c)[0]) if name in known}


def _loaded_back(unit: Unit, function: Function) -> Iterator[tuple[str, str]]:
    """(value, pointer) of every statement ``value = tl.load(pointer + ...)``."""
    known = parameters(unit, function)
    for statement in statements(function.body):
        pair = sides(statement)
        loads = tl_calls(unit, pair[1], "load") if pair is not None else []
        if (
            pair is not None
            and pair[0].type == "identifier"
            and len(loads) == 1
            and positional(unit, loads[0])
        ):
            for name in names(unit, positional(unit, loads[0])[0]):
                if name in known and name.endswith("_ptr"):
                    yield unit.text(pair[0]), name


def _given(unit: Unit, function: Function, launch: Launch) -> dict[str, str]:
    """What each parameter gets in a launch, as text."""
    order, found = list(parameters(unit, function)), {}
    placed = [a for a in elements(launch.arguments) if a.type != "keyword_argument"]
    for name, node in zip(order, placed, strict=False):
        found[name] = unit.text(node)
    for name in order:
        keyword = launch.keyword(unit, name)
        if keyword is not None:
            found[name] = unit.text(value_of(keyword))
    return found


def even_masks(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The masked loads of every loop and kernel whose mask holds everywhere when a block divides an extent."""
    unit = parse_kernel(kernel)
    for function in jit_functions(unit):
        launch = only_launch(unit, function)
        if launch is None:
            continue
        given, flag = _given(unit, function, launch), _free("EVEN", names(unit, function.node))
        for locus, node in unit.loci.items():
            own = locus == function.locus
            if unit.function_at(locus) != function or (not own and node.type != "for_statement"):
                continue
            body = function.body if own else node.child_by_field_name("body")
            found = _run(unit, function, body, node, own, given) if body is not None else None
            if found is not None:
                targets, condition = found
                why = f"the flag is true when {condition}, which makes the masks of {', '.join(targets)} hold everywhere"
                yield Fit(locus, {flag: condition, "of": " ".join(targets)}, (why,))


def _run(
    unit: Unit, function: Function, body: Node, place: Node, own: bool, given: Mapping[str, str]
) -> tuple[list[str], str] | None:
    """(targets, condition) of the masked loads in a block that one condition makes whole."""
    targets: list[str] = []
    conditions: set[str] = set()
    for statement in statements(body):
        pair = sides(statement)
        calls = (
            tl_calls(unit, statement, "load")
            if pair is not None and statement.type != "for_statement"
            else []
        )
        masks = [keywords(unit, c)["mask"] for c in calls if "mask" in keywords(unit, c)]
        condition = _whole(unit, function, place, own, masks[0], given) if len(masks) == 1 else None
        if pair is not None and condition is not None:
            targets.append(unit.text(pair[0]))
            conditions.add(condition)
        elif targets:
            break
    return (targets, conditions.pop()) if len(conditions) == 1 else None


def _whole(
    unit: Unit, function: Function, place: Node, own: bool, mask: Node, given: Mapping[str, str]
) -> str | None:
    """When a mask holds for every lane, in the host's words; None where that cannot be told."""
    text = _resolved(unit, function, unit.text(value_of(mask)))
    text = re.sub(r"\[(?:None, :|:, None)\]", "", text)
    compared = re.fullmatch(r"\(?(\w+)\)? < (\w+)(?: - (\w+))?", text)
    if compared is None or compared[2] not in given:
        return None
    lanes = re.search(rf"\b{compared[1]} = (?:\w+ \+ )?tl\.arange\(0, (\w+)\)", unit.text(function.body))
    block = lanes[1] if lanes else None
    constants = {n for n, node in parameters(unit, function).items() if is_constexpr(unit, node)}
    if block not in constants or block not in given:
        return None
    if own:
        return f"{given[compared[2]]} == {given[block]}" if compared[3] is None else None
    return (
        f"{given[compared[2]]} % {given[block]} == 0" if _steps_by(unit, place, compared[2], block) else None
    )


def _steps_by(unit: Unit, loop: Node, extent: str, block: str) -> bool:
    right = loop.child_by_field_name("right")
    text = unit.text(right) if right is not None else ""
    return re.fullmatch(rf"(?:tl\.)?range\(0, {extent}, {block}(?:, .*)?\)", text) is not None


def _resolved(unit: Unit, function: Function, text: str) -> str:
    """A mask by its name becomes what the name was given."""
    match = re.fullmatch(r"(\w+)((?:\[(?:None, :|:, None)\])?)", text)
    if match is None:
        return text
    found = re.findall(rf"^\s*{match[1]} = (.+)$", unit.text(function.body), re.MULTILINE)
    return found[0] if len(found) == 1 else text


FITS: dict[str, Callable[[Kernel, Settings], Iterator[Fit]]] = {
    "tile-size": tiles,
    "online-softmax": online,
    "loop-peeling": peeled,
    "base-two": base_two,
    "fusion": fusions,
    "even-masks": even_masks,
}
