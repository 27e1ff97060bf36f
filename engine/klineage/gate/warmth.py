"""Start workers before they are needed, all at once, so that the first gate is nearly as fast as the next."""

from __future__ import annotations

import contextlib
import threading

from klineage.errors import KlineageError
from klineage.executor import Cancelled, Died, Executor, current
from klineage.kernel import Surface

_KINDS: dict[str, tuple[str, ...]] = {
    "c": ("native",),
    "cuda": ("native",),
    "triton": ("compiler", "native"),
}


def prepare(surface: Surface) -> None:
    """Start the surface's workers in the background; returns at once."""
    begin(current(), surface)


def begin(executor: Executor, surface: Surface, platform: str = "") -> None:
    """Start the workers of an executor that a gate of the surface uses, in the background; returns at once.

    Where the machine has a GPU for ``platform`` (any, if it is empty), the GPU's worker opens it meanwhile.
    """
    for kind in _KINDS[surface]:
        _start(executor, kind)
    if surface != "c":
        threading.Thread(
            target=_judge, args=(executor, surface, platform), name="warm judge", daemon=True
        ).start()


def _start(executor: Executor, kind: str) -> None:
    threading.Thread(target=executor.versions, args=(kind,), name=f"warm {kind}", daemon=True).start()


def _judge(executor: Executor, surface: Surface, platform: str) -> None:
    """The worker that runs kernels: on the GPU, or for Triton in the interpreter."""
    from klineage.platform import satisfies

    with contextlib.suppress(
        Died, Cancelled, KlineageError
    ):  # the gate asks the same, and says what is wrong
        gpu = executor.machine().gpu
        if gpu is not None and (not platform or satisfies(gpu.platform, platform)):
            _start(executor, "gpu")
        elif surface == "triton":
            _start(executor, "interpreter")
