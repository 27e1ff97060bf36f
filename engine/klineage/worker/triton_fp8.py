"""The two 8-bit floats of NVIDIA GPUs for numpy, which has neither: float8e4nv (e4m3fn) and float8e5 (e5m2).

As ``cvt.rn.satfinite`` on the GPU: rounded once, to nearest even; what is too large, infinity too, becomes the
largest number; NaN stays NaN. Triton's own interpreter forgets the carry of a rounding and knows no NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NAN = np.uint8(0x7F)


@dataclass(frozen=True)
class Format:
    """mantissa: bits. bias: of the exponent. largest: the largest finite number."""

    mantissa: int
    bias: int
    largest: float


FORMATS = {"fp8e4nv": Format(3, 7, 448.0), "fp8e5": Format(2, 15, 57344.0)}


def encode(values: Any, format_: Format, toward_zero: bool = False) -> Any:
    """Bit patterns (uint8) of real values."""
    numbers = np.asarray(values, np.float64)
    size = np.minimum(np.nan_to_num(np.abs(numbers), nan=0.0, posinf=np.inf), 2 * format_.largest)
    _, exponent = np.frexp(size)
    lowest = 1 - format_.bias  # below: subnormal, in steps of the smallest normal number's
    exponent = np.where(size == 0, lowest, np.maximum(exponent - 1, lowest))
    steps = np.ldexp(size, format_.mantissa - exponent)
    steps = np.trunc(steps) if toward_zero else np.rint(steps)
    # A normal number has its leading one in ``steps``, so a carry moves the exponent by itself.
    bits = ((exponent + format_.bias - 1) << format_.mantissa) + steps.astype(np.int64)
    bits = np.minimum(bits, _largest(format_))
    signed = bits.astype(np.uint8) | (np.signbit(numbers).astype(np.uint8) << np.uint8(7))
    return np.where(np.isnan(numbers), NAN, signed)


def _largest(format_: Format) -> int:
    fraction, exponent = np.frexp(format_.largest)
    steps = int(np.ldexp(fraction, format_.mantissa + 1))
    return ((int(exponent) - 1 + format_.bias - 1) << format_.mantissa) + steps


def decode(bits: Any, format_: Format) -> Any:
    """The fp32 array of the numbers whose bit patterns are ``bits`` (uint8)."""
    return _table(format_)[bits]


def _table(format_: Format) -> Any:
    magnitude = np.arange(128)
    exponent = np.maximum(magnitude >> format_.mantissa, 1) - format_.bias
    normal = (magnitude >> format_.mantissa > 0).astype(np.int64) << format_.mantissa
    steps = normal + (magnitude & ((1 << format_.mantissa) - 1))
    numbers = np.ldexp(steps.astype(np.float64), exponent - format_.mantissa)
    if format_.mantissa == 2:  # e5m2 keeps IEEE's infinity and NaNs
        numbers[0x7C], numbers[0x7D:] = np.inf, np.nan
    else:
        numbers[0x7F] = np.nan
    return np.concatenate([numbers, -numbers]).astype(np.float32)
