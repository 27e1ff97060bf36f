"""This processor: which of its cores is quiet, how large its caches are, and memory to empty them with."""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from pathlib import Path
from typing import Any

import numpy as np


def walkable(size: int) -> Any:
    """So many bytes of real memory, in huge pages where the system gives them."""
    memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    walked = np.frombuffer(memory, np.int64)
    walked[:] = 1
    return walked


def last_level_cache() -> int:
    """Bytes of the largest cache of this processor; 32 MiB where the system does not say."""
    sizes = [32 << 20]
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")):
        text = entry.read_text(encoding="ascii").strip()
        unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * unit)
    return max(sizes[1:] or sizes)


def pin() -> None:
    """Stay on the processor that gave this thread most of a millisecond: its neighbours are the quietest."""
    if not hasattr(os, "sched_setaffinity"):
        return
    shares = {}
    for cpu in sorted(os.sched_getaffinity(0))[-8:]:
        os.sched_setaffinity(0, {cpu})
        wall, used = time.perf_counter_ns(), time.thread_time_ns()
        while time.perf_counter_ns() - wall < 1_000_000:
            pass
        shares[cpu] = (time.thread_time_ns() - used) / (time.perf_counter_ns() - wall)
    os.sched_setaffinity(0, {max(shares, key=lambda cpu: shares[cpu])})
