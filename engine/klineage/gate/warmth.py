"""Start workers before they are needed, so that the first gate is as fast as the next."""

from __future__ import annotations

import threading

from klineage.executor import current
from klineage.kernel import Surface

_KINDS: dict[str, tuple[str, ...]] = {
    "c": ("native",),
    "cuda": ("native",),
    "triton": ("compiler", "interpreter"),
}


def prepare(surface: Surface) -> None:
    """Start the surface's workers in the background; returns at once."""
    for kind in _KINDS[surface]:
        threading.Thread(target=current().versions, args=(kind,), name=f"warm {kind}", daemon=True).start()
