"""Fits of what splits one sum over several programs: the names and the extents of the sum that is here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from klineage.kernel import Kernel
from klineage.proposer.rules.fitting.fit import Fit, Settings, free
from klineage.proposer.rules.fitting.triton_masks import given_by
from klineage.proposer.rules.triton.code import (
    Launch,
    jit_functions,
    names,
    only_launch,
    positional,
    sides,
    statements,
    tl_calls,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Function, Unit, parse_kernel

_BLOCKS = re.compile(r"for (\w+) in (?:tl\.)?range\(0, (\w+), (\w+)\)")
_COUNTED = re.compile(r"for (\w+) in (?:tl\.)?range\(0, tl\.cdiv\((\w+), (\w+)\)\)")


@dataclass(frozen=True)
class _Sum:
    """One loop at the top of a kernel over blocks of an extent, both as the host gives them to the launch."""

    variable: str
    block: str
    extent_given: str
    block_given: str
    body: tuple[Node, ...]


def split_sums(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every loop that sums over blocks, as one program a block: the host counts them, and clears the output before."""
    unit = parse_kernel(kernel)
    for function, launch in _launched(unit):
        stored, body = _output(unit, function, launch), statements(launch.host.body) if launch.host else []
        at = next((i for i, s in enumerate(body) if s == launch.call.parent), None)
        for found in _sums(unit, function, launch, _BLOCKS):
            pair = sides(found.body[0]) if found.body else None
            if not stored or at is None or pair is None:
                continue
            made = {
                "indices": unit.text(pair[0]),
                "block": found.block,
                "part": free(settings.get("part", "part"), names(unit, function.node)),
                "parts": f"triton.cdiv({found.extent_given}, {found.block_given})",
                "clear": f"{stored}.zero_()",
                "clear.at": str(at),
                **{name: settings[name] for name in ("sem",) if name in settings},
            }
            why = f"{made['parts']} programs share the sum over {made['indices']} here, and add to {stored}"
            yield Fit(function.locus, made, () if made == dict(settings) else (why,))


def split_reductions(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every loop that sums pieces of a row for a second kernel, as one program a piece."""
    unit = parse_kernel(kernel)
    for function, launch in _launched(unit):
        extents = elements(launch.grid) if launch.grid.type == "tuple" else []
        if len(extents) != 2 or extents[1].type != "identifier":
            continue
        row = _row(unit, function)
        for found in _sums(unit, function, launch, _COUNTED):
            piece = found.variable
            made = {
                "piece": piece,
                "programs": f"{row}, {piece} = tl.program_id(0), tl.program_id(1)"
                if row
                else f"{piece} = tl.program_id(1)",
                "pieces": f"{unit.text(extents[1])} = triton.cdiv({found.extent_given}, {found.block_given})",
            }
            why = f"{made['pieces']} here, one for each program of a row"
            yield Fit(function.locus, made, () if made == dict(settings) else (why,))


def _launched(unit: Unit) -> Iterator[tuple[Function, Launch]]:
    for function in jit_functions(unit):
        launch = only_launch(unit, function)
        if launch is not None:
            yield function, launch


def _sums(unit: Unit, function: Function, launch: Launch, header: re.Pattern[str]) -> Iterator[_Sum]:
    given = given_by(unit, function, launch)
    for statement in statements(function.body):
        match = header.match(unit.text(statement)) if statement.type == "for_statement" else None
        body = statement.child_by_field_name("body")
        if match is not None and body is not None and match[2] in given and match[3] in given:
            yield _Sum(match[1], match[3], given[match[2]], given[match[3]], tuple(statements(body)))


def _output(unit: Unit, function: Function, launch: Launch) -> str:
    """What the host calls the tensor that the kernel stores to, where it is one."""
    given = given_by(unit, function, launch)
    calls = [c for c in tl_calls(unit, function.body, "store") if positional(c)]
    bases = {n for c in calls for n in names(unit, positional(c)[0]) if n in given and n.endswith("_ptr")}
    return given[bases.pop()] if len(calls) == len(bases) == 1 else ""


def _row(unit: Unit, function: Function) -> str:
    """What a kernel calls its number on the first axis; empty where it has no name of its own."""
    pairs = [pair for s in statements(function.body) if (pair := sides(s)) is not None]
    return next((unit.text(left) for left, right in pairs if unit.text(right) == "tl.program_id(0)"), "")
