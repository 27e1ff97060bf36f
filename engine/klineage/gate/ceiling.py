"""How fast a workload could possibly be: its least traffic and arithmetic at the device's ceilings."""

from __future__ import annotations

from dataclasses import dataclass

IMPOSSIBLE = 0.9  # a time below this part of the floor is a mistake of the measurement, or of the kernel


@dataclass(frozen=True)
class Ceiling:
    """Bytes a second (read and written), and operations a second by element type."""

    bandwidth: float
    operations: dict[str, float]


# A copy as measured. Products at the most that the hardware can issue, 4096 operations a clock on each of 132
# multiprocessors at 1980 MHz: what a library reaches depends on the power that the data draws, and kernels do better.
_HOPPER = 4096 * 132 * 1980e6
_DEVICES = {"NVIDIA H200": Ceiling(4276e9, {"bf16": _HOPPER, "fp16": _HOPPER})}


def floor_ms(device: str, element: str, cost: dict[str, float], peak: float = 0.0) -> float | None:
    """The least milliseconds of a run with this cost, or None where no ceiling is known.

    ``peak``: bytes a second at the memory's clock, for a device whose ceilings nobody has measured.
    """
    ceiling = _DEVICES.get(device) or (Ceiling(peak, {}) if peak else None)
    if ceiling is None:
        return None
    seconds = cost["bytes"] / ceiling.bandwidth
    if element in ceiling.operations:
        seconds = max(seconds, cost["operations"] / ceiling.operations[element])
    return seconds * 1e3
