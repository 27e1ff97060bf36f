"""Fits of ``even-masks``: the condition, in the host's words, under which the masks of some loads hold everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.fitting.fit import Fit, Settings, free
from klineage.proposer.rules.triton.alignment import HINTS
from klineage.proposer.rules.triton.code import (
    Launch,
    is_constexpr,
    jit_functions,
    keywords,
    names,
    only_launch,
    parameters,
    sides,
    statements,
    tl_calls,
    value_of,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Function, Unit, parse_kernel


def even_masks(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The masked loads of every loop and kernel whose mask holds everywhere when a block divides an extent."""
    unit = parse_kernel(kernel)
    for function in jit_functions(unit):
        launch = only_launch(unit, function)
        if launch is None:
            continue
        given, flag = given_by(unit, function, launch), free("EVEN", names(unit, function.node))
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
    hinted = rf"(?:tl\.(?:{'|'.join(HINTS)})\()*"
    lanes = re.search(
        rf"\b{compared[1]} = (?:\w+ \+ )?{hinted}tl\.arange\(0, (\w+)\)", unit.text(function.body)
    )
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


def given_by(unit: Unit, function: Function, launch: Launch) -> dict[str, str]:
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
