"""What interpreted kernels did: exact, deterministic counts. One set per process, reset by the caller."""

from __future__ import annotations

NAMES = (
    "launches",
    "programs",
    "iterations",  # trips of for loops (range, tl.range, tl.static_range); while loops are not counted
    "loads",  # load operations of one block each
    "stores",
    "atomics",
    "bytes_loaded",  # lanes whose mask was on, times the element size
    "bytes_stored",
    "masked_lanes",  # lanes of loads and stores whose mask was off
    "contiguous_runs",  # runs of neighbouring addresses, along the better axis of each block
    "dots",
    "dot_operations",  # 2 * m * n * k
    "elementwise_operations",  # floating-point results of elementwise operations, casts aside
    "integer_operations",  # integer and pointer results: addresses, masks, indices
    "casts",  # elements converted between types
    "reductions",  # reduce and scan operations of one block each
    "reduction_operations",  # elements that went into them
)

_counts = dict.fromkeys(NAMES, 0)


def add(name: str, amount: int = 1) -> None:
    _counts[name] += amount


def reset() -> None:
    for name in NAMES:
        _counts[name] = 0


def read() -> dict[str, int]:
    """A copy, with ``operations``: floating-point operations of dots, elementwise work and reductions."""
    result = dict(_counts)
    result["operations"] = (
        result["dot_operations"] + result["elementwise_operations"] + result["reduction_operations"]
    )
    return result
