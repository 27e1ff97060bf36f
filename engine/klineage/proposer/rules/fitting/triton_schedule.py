"""Fits of what decides which program computes what: programs that stay, and kernels that go on with their own sums."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from klineage.kernel import Kernel
from klineage.proposer.rules.fitting.fit import Fit, Settings
from klineage.proposer.rules.fitting.triton_masks import given_by
from klineage.proposer.rules.triton.code import (
    jit_functions,
    only_launch,
    parameters,
    positional,
    sides,
    statements,
    tl_calls,
)
from klineage.surface.lists import elements
from klineage.surface.tree import Function, Unit, parse_kernel

_FIRST = "tl.program_id(0)"
_BEHIND = "behind."


def persistent(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """The recorded share of work for every kernel that starts one program for each of something that it is told the number
    of: the loop counts to that number, and the grid is as much smaller as it was."""
    unit = parse_kernel(kernel)
    was = re.fullmatch(r"(\S+\(\S+, )(\w+)(, .*\))", settings.get("range", ""))
    grid, tiles = settings.get("grid", ""), settings.get("tiles", "")
    if was is None or "step" in settings or not tiles:
        return
    for function in jit_functions(unit):
        launch = only_launch(unit, function)
        extents = elements(launch.grid) if launch is not None and launch.grid.type == "tuple" else []
        number = _numbered(unit, function)
        if launch is None or len(extents) != 1 or not number:
            continue
        here = unit.text(extents[0])
        told = [name for name, text in given_by(unit, function, launch).items() if text == here]
        for bound in told[:1]:
            made = {
                "tile": number,
                "range": f"{was[1]}{bound}{was[3]}",
                "grid": re.sub(rf"(?<![\w.]){re.escape(tiles)}(?!\w)", here, grid),
                "tiles": here,
            }
            why = (f"{number} counts {here} here, which the kernel knows as {bound}",)
            yield Fit(function.locus, made, () if made == dict(settings) else why)


def _numbered(unit: Unit, function: Function) -> str:
    """What a kernel calls its program's own number; empty where it has no name."""
    pairs = [pair for s in statements(function.body) if (pair := sides(s)) is not None]
    return next((unit.text(left) for left, right in pairs if unit.text(right) == _FIRST), "")


def epilogues(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every kernel whose sums a second one goes on with, under the names that both have here."""
    unit = parse_kernel(kernel)
    for first in jit_functions(unit):
        second = unit.function(f"{first.name}_epilogue")
        total, value = _stored(unit, first), _stored(unit, second) if second is not None else ""
        if second is None or not total or not value:
            continue
        made = {"total": total, "value": value, **_behind(unit, first, second)}
        why = (f"{first.name} sums {total} here, and {second.name} makes {value} of it",)
        yield Fit(first.locus, made, () if made == dict(settings) else why)


def _stored(unit: Unit, function: Function) -> str:
    """The name that a kernel stores last, whatever type it is stored as."""
    body = statements(function.body)
    call = next(iter(tl_calls(unit, body[-1], "store")), None) if body else None
    given = positional(call) if call is not None else []
    found = re.match(r"\w+", unit.text(given[1])) if len(given) > 1 else None
    return found[0] if found else ""


def _behind(unit: Unit, first: Function, second: Function) -> Mapping[str, str]:
    """Where each parameter that only the second kernel has would stand among those of the first."""
    ours, found, last = parameters(unit, first), {}, next(iter(parameters(unit, first)), "")
    for name in parameters(unit, second):
        if name in ours:
            last = name
        else:
            found[_BEHIND + name] = last
    return found
