"""bfloat16 for numpy, which has none: the interpreter holds it as the upper half of a float32.

Every result is rounded once, to nearest even, from an fp32 result: what torch does on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NAN = np.uint16(0x7FC0)


def decode(bits: Any) -> Any:
    """The fp32 array that holds exactly the bfloat16 values whose bit patterns are ``bits`` (uint16)."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def encode(values: Any) -> Any:
    """Bit patterns (uint16) of ``values`` rounded to bfloat16, ties to even; every NaN becomes 0x7FC0.

    ``values``: any real array; it is taken to fp32 first, as torch does with integers and doubles.
    """
    single = np.asarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(single)
    if nan.any():
        rounded = np.where(nan, NAN, rounded)
    return rounded


def truncate(values: Any) -> Any:
    """Bit patterns (uint16) of ``values`` rounded toward zero."""
    single = np.asarray(values, dtype=np.float32)
    bits = (single.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(single), NAN, bits)
