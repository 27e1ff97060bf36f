"""Numbers as people read them: three significant digits, a unit, the ratio before the times."""

from __future__ import annotations

from klineage.numbers import three

__all__ = ["count", "latency", "ratio", "seconds", "size", "three"]

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def latency(milliseconds: float) -> str:
    """A time with the unit that suits it: ``0.193 ms``, ``18.4 ms``, ``42.0 µs``, ``1.20 s``."""
    if milliseconds >= 1000:
        return f"{three(milliseconds / 1000)} s"
    if milliseconds >= 0.1:
        return f"{three(milliseconds)} ms"
    if milliseconds >= 1e-4:
        return f"{three(milliseconds * 1e3)} µs"
    return f"{three(milliseconds * 1e6)} ns"


def ratio(value: float, low: float | None = None, high: float | None = None) -> str:
    """``1.77x``, with its interval when known: ``1.77x [1.75, 1.79]``."""
    text = f"{three(value)}x"
    return text if low is None or high is None else f"{text} [{three(low)}, {three(high)}]"


def count(value: float, unit: str = "") -> str:
    """An exact quantity: whole below 10,000, then three digits and k, M, G or T."""
    suffix = f" {unit}" if unit else ""
    if abs(value) < 10_000:
        whole = f"{value:,.0f}" if float(value).is_integer() else three(value)
        return whole + suffix
    scale, letter = next((s, name) for s, name in _SCALES if abs(value) >= s)
    return f"{three(value / scale)}{letter}{suffix}"


def size(octets: float) -> str:
    """Bytes with a binary unit: ``96.0 KiB``, ``512 B``."""
    for scale, unit in _BINARY:
        if octets >= scale:
            return f"{three(octets / scale)} {unit}"
    return f"{octets:.0f} B"


def seconds(value: float) -> str:
    """How long something took: ``0.42 s``, ``3 min 05 s``."""
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"
