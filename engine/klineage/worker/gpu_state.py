"""Clocks, power and temperature of the GPU, from NVIDIA's management library (what nvidia-smi asks)."""

from __future__ import annotations

import ctypes
from typing import Any

CHANGED = 1.1  # largest over smallest clock of one measurement that is worth a word
_SM, _MEMORY = 1, 2
_REASONS = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake",
}  # fmt: skip


class Watcher:
    """Samples of one GPU. Without the library every sample is empty, and the summary says so."""

    def __init__(self, uuid: str = "") -> None:
        self.samples: list[dict[str, int]] = []
        self._library, self._handle = _open(uuid)

    def sample(self) -> None:
        """Read once; some microseconds."""
        if self._library is None:
            return
        found: dict[str, int] = {}
        for name, function, arguments in (
            ("sm_mhz", "nvmlDeviceGetClockInfo", (_SM,)),
            ("memory_mhz", "nvmlDeviceGetClockInfo", (_MEMORY,)),
            ("milliwatts", "nvmlDeviceGetPowerUsage", ()),
            ("celsius", "nvmlDeviceGetTemperature", (0,)),
            ("reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", ()),
        ):
            value = ctypes.c_ulonglong(0) if name == "reasons" else ctypes.c_uint(0)
            if getattr(self._library, function)(self._handle, *arguments, ctypes.byref(value)) == 0:
                found[name] = int(value.value)
        self.samples.append(found)

    def summary(self) -> dict[str, Any]:
        """Median clocks, power and temperature; how far the clock moved; what held it back."""
        return summarized(self.samples)


def summarized(samples: list[dict[str, int]]) -> dict[str, Any]:
    """See ``Watcher.summary``."""
    told: dict[str, Any] = {}
    for name in ("sm_mhz", "memory_mhz", "milliwatts", "celsius"):
        values = sorted(sample[name] for sample in samples if sample.get(name))
        if values:
            told[name] = values[len(values) // 2]
    clocks = [sample["sm_mhz"] for sample in samples if sample.get("sm_mhz")]
    if clocks:
        told["sm_mhz_low"], told["sm_mhz_high"] = min(clocks), max(clocks)
    seen = 0
    for sample in samples:
        seen |= sample.get("reasons", 0)
    told["held_back_by"] = [word for bit, word in _REASONS.items() if seen & bit]
    return told


def changed(told: dict[str, Any]) -> str:
    """A few words when the clock moved or was held back under the run; empty when not."""
    low, high = told.get("sm_mhz_low", 0), told.get("sm_mhz_high", 0)
    parts = []
    if low and high > CHANGED * low:
        parts.append(f"the clock moved between {low} and {high} MHz")
    if told.get("held_back_by"):
        parts.append(f"it was held back by {', '.join(told['held_back_by'])}")
    return ", and ".join(parts)


def _open(uuid: str) -> tuple[Any, Any]:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, None
    handle = ctypes.c_void_p()
    if library.nvmlInit_v2() != 0:
        return None, None
    name = uuid if uuid.startswith("GPU-") or not uuid else f"GPU-{uuid}"
    found = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) if name else 1
    if found != 0 and library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) != 0:
        return None, None
    return library, handle
