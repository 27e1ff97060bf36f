"""Does an output equal the reference within the tolerance? Numbers only; no process, no workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klineage.worker.buffers import FLOATS, LARGEST, decode, is_poison


@dataclass(frozen=True)
class Comparison:
    """``worst`` is the largest ``|y - reference| / (RMS + |reference|)``: it passes up to ``rtol``."""

    wrong: int
    unwritten: int
    total: int
    worst: float
    rtol: float
    index: tuple[int, ...] | None = None  # the first wrong element in row-major order
    got: float | str = 0.0
    expected: float | str = 0.0

    @property
    def ok(self) -> bool:
        return self.wrong == 0


def describe(value: Any) -> float | str:
    """A number for a report: JSON has no NaN and no infinity, so those become words."""
    number = float(value)
    if np.isnan(number):
        return "nan"
    if np.isinf(number):
        return "inf" if number > 0 else "-inf"
    return int(value) if float(number).is_integer() and abs(number) < 2**53 else number


def _float_errors(
    got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], rtol: float
) -> tuple[np.ndarray[Any, Any], float]:
    """Mask of wrong elements, and the worst scaled error among elements finite on both sides."""
    finite = np.isfinite(expected)
    kept = expected[finite]
    rms = float(np.sqrt(np.mean(np.square(kept)))) if kept.size else 0.0
    same_special = (np.isnan(expected) & np.isnan(got)) | (expected == got)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got - expected)
        scale = rms + np.abs(expected)
        within = error <= rtol * scale
    wrong = np.where(finite, ~within, ~same_special)
    comparable = finite & np.isfinite(got) & (scale > 0)
    worst = float((error[comparable] / scale[comparable]).max()) if comparable.any() else 0.0
    return wrong, worst


def compare(
    stored: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], type_: str, rtol: float
) -> Comparison:
    """Compare a stored output with the reference (float64, or integers).

    NaN and infinity must be where the reference has them, and an expected value beyond the range of
    the type counts as infinity. An element that still holds poison is wrong whatever was expected.
    """
    got = decode(stored, type_)
    if type_ in FLOATS:
        beyond = np.abs(expected) > LARGEST[type_]
        if beyond.any():
            expected = np.where(beyond, np.copysign(np.inf, expected), expected)
        wrong, worst = _float_errors(got, expected, rtol)
        untouched = is_poison(stored, type_)
        wrong |= untouched
    else:
        wrong, worst = np.asarray(got != expected), 0.0
        untouched = is_poison(stored, type_) & wrong
    count = int(np.count_nonzero(wrong))
    unwritten = int(np.count_nonzero(untouched))
    if count == 0:
        return Comparison(0, 0, got.size, worst, rtol)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape)) if got.shape else ()
    shown: float | str = "poison" if untouched[index] else describe(got[index])
    return Comparison(count, unwritten, got.size, worst, rtol, index, shown, describe(expected[index]))
