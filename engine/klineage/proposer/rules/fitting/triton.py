"""Fits of the rules for Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from klineage.kernel import Kernel
from klineage.proposer.rules.fitting.fit import Fit, Settings, free
from klineage.proposer.rules.fitting.triton_exponents import base_two
from klineage.proposer.rules.fitting.triton_masks import even_masks, given_by
from klineage.proposer.rules.fitting.triton_schedule import epilogues, persistent
from klineage.proposer.rules.fitting.triton_splits import split_reductions, split_sums
from klineage.proposer.rules.triton import tile_size
from klineage.proposer.rules.triton.code import (
    jit_functions,
    names,
    only_launch,
    parameters,
    positional,
    sides,
    statements,
    tl_calls,
)
from klineage.surface.tree import Function, Unit, parse_kernel


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
        made = {key: free(name, taken) for key, name in settings.items()}
        changed = {name: made[key] for key, name in settings.items() if made[key] != name}
        why = tuple(f"{old} is taken here, so it is called {new}" for old, new in changed.items())
        yield Fit(function.locus, made, why)


def peeled(kernel: Kernel, settings: Settings) -> Iterator[Fit]:
    """Every loop over blocks; the header of the rest is written as the loop's own."""
    unit = parse_kernel(kernel)
    for locus, node in unit.loci.items():
        function = unit.function_at(locus)
        if node.type != "for_statement" or function is None:
            continue
        boundary = free(settings.get("boundary", "whole"), names(unit, function.node))
        why = ("the rest counts as the loop itself does",) if "rest" in settings else ()
        yield Fit(locus, {"boundary": boundary}, why)


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
                given = given_by(unit, second, launched[1]).get(pointer)
                if given is not None and given in (given_by(unit, first, launched[0]).get(p) for p in stored):
                    made = {"value": value, "through": pointer, "first": first.name}
                    yield Fit(
                        second.locus, made, (f"{first.name} hands {value} over through {pointer} here",)
                    )


def _stored_to(unit: Unit, function: Function) -> set[str]:
    known = parameters(unit, function)
    calls = [c for c in tl_calls(unit, function.body, "store") if positional(c)]
    return {name for c in calls for name in names(unit, positional(c)[0]) if name in known}


def _loaded_back(unit: Unit, function: Function) -> Iterator[tuple[str, str]]:
    """(value, pointer) of every statement ``value = tl.load(pointer + ...)``."""
    known = parameters(unit, function)
    for statement in statements(function.body):
        pair = sides(statement)
        loads = tl_calls(unit, pair[1], "load") if pair is not None else []
        if pair is not None and pair[0].type == "identifier" and len(loads) == 1 and positional(loads[0]):
            for name in names(unit, positional(loads[0])[0]):
                if name in known and name.endswith("_ptr"):
                    yield unit.text(pair[0]), name


FITS: dict[str, Callable[[Kernel, Settings], Iterator[Fit]]] = {
    "tile-size": tiles,
    "online-softmax": online,
    "loop-peeling": peeled,
    "base-two": base_two,
    "fusion": fusions,
    "even-masks": even_masks,
    "persistent-programs": persistent,
    "fused-epilogue": epilogues,
    "split-sum": split_sums,
    "split-reduction": split_reductions,
}
