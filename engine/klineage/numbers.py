"""Numbers as people read them."""

from __future__ import annotations

import math


def plural(number: int, noun: str) -> str:
    """``1 card``, ``2 cards``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def three(value: float) -> str:
    """Three significant digits, without an exponent where people would not write one."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")  # first, so that 9.999 is 10.0 and not 10.00
    if math.isinf(rounded):  # the largest numbers round to more than a float holds
        return f"{value:.2e}"
    magnitude = math.floor(math.log10(abs(rounded)))
    if magnitude >= 6 or magnitude < -4:
        return f"{value:.2e}"
    return f"{rounded:.{max(0, 2 - magnitude)}f}"


def counted(ratio: float) -> str:
    """A ratio of exact counts: three digits, or as many as show that it is not 1: ``1.0042``."""
    text = three(ratio)
    if text != "1.00" or ratio == 1 or not math.isfinite(ratio):
        return text
    return f"{ratio:.{1 - math.floor(math.log10(abs(ratio - 1)))}f}"


def gained(gain: float, low: float | None, high: float | None) -> str:
    """A gain in digits: of an exact count, whose interval is a point, as many as ``counted`` says."""
    return counted(gain) if low == high else three(gain)
