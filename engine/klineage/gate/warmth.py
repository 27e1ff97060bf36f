"""Start workers before they are needed, all at once, so that the first gate is nearly as fast as the next."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from klineage.errors import KlineageError
from klineage.executor import Cancelled, Died, Executor, current
from klineage.gate import cache
from klineage.kernel import SUFFIXES, SURFACES, Surface

_KINDS: dict[str, tuple[str, ...]] = {
    "c": ("native",),
    "cuda": ("native",),
    "triton": ("compiler", "native"),
}


def prepare(surface: Surface) -> None:
    """Start the surface's workers in the background; returns at once."""
    begin(current(), surface)


def expect(file: Path, surface: str | None = None, fresh: bool = False) -> None:
    """A gate of this file is about to be asked for: begin what it will wait for; returns at once.

    That is a look at the machine, and the workers, unless some report of the file's text may be kept (``fresh``: even
    then). surface: where the file's name does not tell. A file that cannot be read is left to whoever reads it next.
    """
    executor = current()
    threading.Thread(target=_look, args=(executor,), name="look", daemon=True).start()
    known = next((s for s in SURFACES if s == surface), SUFFIXES.get(file.suffix.lower()))
    if known is not None and file.is_file():
        with contextlib.suppress(OSError):
            if fresh or not cache.knows(file.read_bytes()):
                begin(executor, known)


def _look(executor: Executor) -> None:
    with contextlib.suppress(Died, Cancelled):  # the gate asks the same, and says what is wrong
        executor.machine()


def begin(executor: Executor, surface: Surface, platform: str = "") -> None:
    """Start the workers of an executor that a gate of the surface uses, in the background; returns at once.

    Where the machine has a GPU for ``platform`` (any, if it is empty), the GPU's worker opens it meanwhile.
    """
    for kind in _KINDS[surface]:
        _start(executor, kind)
    if surface != "c":
        threading.Thread(
            target=_judge,
            args=(executor, surface, platform, executor.closings),
            name="warm judge",
            daemon=True,
        ).start()


def _start(executor: Executor, kind: str) -> None:
    threading.Thread(target=executor.versions, args=(kind,), name=f"warm {kind}", daemon=True).start()


def _judge(executor: Executor, surface: Surface, platform: str, closings: int) -> None:
    """The worker that runs kernels: on the GPU, or for Triton in the interpreter."""
    from klineage.platform import satisfies

    with contextlib.suppress(
        Died, Cancelled, KlineageError
    ):  # the gate asks the same, and says what is wrong
        if not platform and executor.sees_gpu():
            _start(executor, "gpu")
            return
        gpu = executor.machine().gpu
        if closings != executor.closings:  # while the machine was looked at
            return
        if gpu is not None and (not platform or satisfies(gpu.platform, platform)):
            _start(executor, "gpu")
        elif surface == "triton":
            _start(executor, "interpreter")
