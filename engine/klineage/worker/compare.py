"""Does an output equal the reference within the tolerance? Numbers only; no process, no workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klineage.worker.buffers import FLOATS, LARGEST, QUANTUM, decode, is_poison

_BLOCK = 1 << 15  # elements compared at a time: what is computed on the way stays in the cache


@dataclass(frozen=True)
class Comparison:
    """``worst`` is the largest ``|y - reference| / (RMS + |reference|)``: it passes up to ``rtol``.

    ``rms`` is the root of the mean square of the error, as a part of that of the reference.
    """

    wrong: int
    unwritten: int
    total: int
    worst: float
    rtol: float
    index: tuple[int, ...] | None = None  # the first wrong element in row-major order
    got: float | str = 0.0
    expected: float | str = 0.0
    rms: float = 0.0

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
    stored: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], type_: str, rtol: float, second: bool
) -> tuple[np.ndarray[Any, Any], float, float]:
    """Flat mask of wrong elements; the worst scaled error and the relative RMS error of the finite ones."""
    rms, worst, squares = _rms(expected), 0.0, 0.0
    wrong = np.zeros(expected.size, np.bool_)
    for begin in range(0, expected.size, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        bits, wanted = stored[part], expected[part]
        error = decode(bits, type_)
        with np.errstate(invalid="ignore", over="ignore"):
            error -= wanted
            np.abs(error, out=error)
            scale = np.abs(wanted)
            largest = scale.max()
            scale += rms
            # The common case in few passes; anything odd (NaN included) makes a comparison false.
            if rms and largest <= LARGEST[type_] and not second:
                scale = np.divide(error, scale, out=scale)
                top = float(scale.max())
                if top <= rtol:
                    worst, squares = max(worst, top), squares + float(np.dot(error, error))
                    continue
        wrong[part], top, more = _examined(bits, wanted, type_, rtol, second, rms)
        worst, squares = max(worst, top), squares + more
    relative = float(np.sqrt(squares / expected.size)) / rms if rms else 0.0
    return wrong, worst, relative


def _examined(
    stored: np.ndarray[Any, Any],
    wanted: np.ndarray[Any, Any],
    type_: str,
    rtol: float,
    second: bool,
    rms: float,
) -> tuple[np.ndarray[Any, Any], float, float]:
    """By every rule: mask of wrong elements; worst scaled error and sum of squared errors of the finite ones."""
    got, size = decode(stored, type_), np.abs(wanted)
    if (size > LARGEST[type_]).any():
        wanted = np.where(size > LARGEST[type_], np.copysign(np.inf, wanted), wanted)
    with np.errstate(invalid="ignore", over="ignore"):
        error, scale = np.abs(got - wanted), size + rms
        bad = ~(error <= rtol * scale + QUANTUM[type_])
    if not np.isfinite(wanted).all():
        same = (np.isnan(wanted) & np.isnan(got)) | (wanted == got)
        bad = np.where(np.isfinite(wanted), bad, ~same)
    bad |= is_poison(stored, type_, second)
    comparable = np.isfinite(error) & (scale > 0) & np.isfinite(scale)
    above = np.maximum(error[comparable] - QUANTUM[type_], 0)
    if not above.size:
        return bad, 0.0, 0.0
    with np.errstate(over="ignore"):
        return bad, float((above / scale[comparable]).max()), float(np.dot(above, above))


def _rms(expected: np.ndarray[Any, Any]) -> float:
    """Root of the mean square of the finite elements; 0 when there is none."""
    total = float(np.dot(expected, expected))
    if np.isfinite(total):
        return float(np.sqrt(total / expected.size))
    kept = expected[np.isfinite(expected)]
    largest = float(np.abs(kept).max()) if kept.size else 0.0
    return largest * float(np.sqrt(np.mean(np.square(kept / largest)))) if largest else 0.0


def compare(
    stored: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    type_: str,
    rtol: float,
    second: bool = False,
) -> Comparison:
    """Compare a stored output with the reference (float64, or integers) of the same shape.

    NaN and infinity must be where the reference has them, and an expected value beyond the range of
    the type counts as infinity. A floating element that still holds poison (the first pattern, or the
    second) is wrong whatever was expected.
    """
    flat, wanted = np.ravel(stored), np.ravel(expected)
    if type_ in FLOATS:
        wrong, worst, rms = _float_errors(flat, wanted, type_, rtol, second)
    else:
        wrong, worst, rms = np.asarray(flat != wanted), 0.0, 0.0
    first = int(np.argmax(wrong))
    if not wrong[first]:
        return Comparison(0, 0, wrong.size, worst, rtol, rms=rms)
    unwritten = is_poison(flat, type_, second) & wrong
    index = tuple(int(i) for i in np.unravel_index(first, stored.shape)) if stored.shape else ()
    got: float | str = "poison" if unwritten[first] else describe(decode(flat[first : first + 1], type_)[0])
    counts = int(np.count_nonzero(wrong)), int(np.count_nonzero(unwritten))
    return Comparison(*counts, wrong.size, worst, rtol, index, got, describe(wanted[first]), rms)
