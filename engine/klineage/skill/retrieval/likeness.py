"""How like a target each value of a card's scope is, from 0 (not at all) to 1 (the same), with the reason in words."""

from __future__ import annotations

from functools import lru_cache

from klineage.errors import KlineageError
from klineage.platform import Platform, parse

ANYWHERE = "*"
DECLARED = 0.25  # what the author believes to hold anywhere says less than any place where it was tried
_SATISFIED = 0.75


def of_workload(target: str, value: str) -> float:
    """1 for the same workload; else the share of words that two names have in common: rmsnorm is half of add_rmsnorm."""
    if value == ANYWHERE:
        return DECLARED
    if value == target:
        return 1.0
    one, two = set(target.split("_")), set(value.split("_"))
    return len(one & two) / len(one | two)


def of_platform(target: str, value: str) -> float:
    """1 for the same hardware, less for one that the target satisfies (see ``klineage.platform``), 0 for any other."""
    if value == ANYWHERE:
        return DECLARED
    there, here = _platform(value), _platform(target)
    if there is None or here is None or not here.satisfies(there):
        return 0.0
    return 1.0 if there.satisfies(here) else _SATISFIED


def of_surface(target: str, value: str) -> float:
    """1 for the same language, else 0: a carrier is code of its language."""
    return DECLARED if value == ANYWHERE else float(value == target)


@lru_cache(maxsize=1024)
def _platform(name: str) -> Platform | None:
    try:
        return parse(name)
    except KlineageError:
        return None  # a card's word for hardware that this version does not know: like nothing
