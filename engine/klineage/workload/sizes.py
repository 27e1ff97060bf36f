"""Sizes for a problem that comes with one size only: small ones for every gate, ragged ones, a hidden one.

``docs/workloads.md`` states the rule. Nothing here runs the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

SMALL, BENCH = 1 << 14, 1 << 20  # elements of the largest input
_TIED = {SMALL: 256, BENCH: 1024}  # the most that a dimension of the weights may have
_FLOOR, _LEAST, _FAR = 16, 2, 16
_RAGGED_FROM, _SCALED_FROM = 8, 64

Dims = dict[str, int]


@dataclass(frozen=True)
class Given:
    """The one size that a problem has.

    free: dimensions that may change by themselves. tied: those that shape the weights, and change by one
    factor only. Others never change. elements: of the largest input, for any dimensions. allowed: whether the
    problem's own conditions hold. floor: no dimension is halved below it.
    """

    dims: Dims
    free: tuple[str, ...]
    tied: tuple[str, ...]
    elements: Callable[[Dims], int]
    allowed: Callable[[Dims], bool] = lambda dims: True
    floor: int = _FLOOR


@dataclass(frozen=True)
class Sizes:
    """Named sizes as a workload has them. derived: whether any is not the one that was given."""

    named: dict[str, Dims]
    hidden: Dims | None
    derived: bool


def derived(given: Given) -> Sizes:
    """Small, ragged, bench and a hidden size, and the given one as ``paper``."""
    small, bench = (_shrunk(given, budget) for budget in (SMALL, BENCH))
    ragged = _ragged(given, small, small)
    hidden = _ragged(given, small, ragged)
    named = {"small": small, "ragged": ragged}
    if bench not in (small, given.dims):
        named["bench"] = bench
    if given.elements(given.dims) <= BENCH and "bench" not in named:
        named["bench"] = given.dims
    named["paper"] = given.dims
    return Sizes(named, hidden if hidden != ragged else None, small != given.dims)


def _shrunk(given: Given, budget: int) -> Dims:
    """Halve dimensions, the largest first, until the largest input has no more than ``budget`` elements.

    What shapes the weights is divided by one power of two before that, and by a larger one when the rest alone
    leaves far too many elements.
    """
    factor = 1
    while max((given.dims[name] for name in given.tied), default=0) // factor > _TIED[budget]:
        factor *= 2
    while True:
        dims = _halved(given, _scaled(given, factor), budget)
        further = _scaled(given, factor * 2)
        if given.elements(dims) <= _FAR * budget or further == _scaled(given, factor):
            return dims
        factor *= 2


def _halved(given: Given, start: Dims, budget: int) -> Dims:
    dims = start if given.allowed(start) else dict(given.dims)
    stuck: set[str] = set()
    while given.elements(dims) > budget:
        able = [
            name for name in given.free if name not in stuck and dims[name] // 2 >= _floor(given, dims, name)
        ]
        if not able:
            break
        name = max(able, key=lambda n: dims[n])
        tried = {**dims, name: dims[name] // 2}
        if given.allowed(tried):
            dims = tried
        else:
            stuck.add(name)
    return dims


def _floor(given: Given, dims: Dims, name: str) -> int:
    """The first free dimension counts independent pieces of work: two are enough, when the others are small."""
    others = [n for n in given.free if n != name]
    alone = name == given.free[0] and others and all(dims[n] // 2 < given.floor for n in others)
    return _LEAST if alone else given.floor


def _scaled(given: Given, factor: int) -> Dims:
    """Divide what shapes the weights by one power of two; small numbers (strides, groups) stay."""
    return {
        name: extent // factor
        if name in given.tied and extent % factor == 0 and extent >= max(_SCALED_FROM, factor * _LEAST)
        else extent
        for name, extent in given.dims.items()
    }


def _ragged(given: Given, small: Dims, last: Dims) -> Dims:
    """Free dimensions as primes above those of ``last``, no two alike, where the problem allows it."""
    dims, taken = dict(small), set(last.values()) | set(small.values())
    for name in given.free:
        if small[name] < _RAGGED_FROM and name != given.free[0]:
            continue
        prime = next(p for p in _primes(last[name] + 1) if p not in taken)
        if given.allowed({**dims, name: prime}):
            dims[name] = prime
            taken.add(prime)
    return dims


def _primes(start: int) -> Iterator[int]:
    number = max(2, start)
    while True:
        if all(number % d for d in range(2, int(number**0.5) + 1)):
            yield number
        number += 1
