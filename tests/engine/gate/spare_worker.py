"""A native worker with spare children, whose device takes its time to open: spare_worker.py HOW FOLDER IDLE."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from klineage.worker import device, server
from klineage.worker.__main__ import main
from klineage.worker.spares import Spares

HOW, FOLDER, IDLE = sys.argv[1:4]


def opened(called: Callable[[], bool]) -> None:
    """Note that it was begun, and after a while that it is done; or fail as told."""
    Path(FOLDER, f"begun-{os.getpid()}").touch()
    patience = time.monotonic() + (20 if HOW in ("called", "long") else 0.4)
    while time.monotonic() < patience and not (HOW in ("called", "long") and called()):
        time.sleep(0.01)
        if Path(FOLDER, "enough").exists():
            break
    if HOW == "called":
        Path(FOLDER, f"called-{os.getpid()}").touch()
    if HOW == "long":
        Path(FOLDER, f"beside-{os.getpid()}").write_text(" ".join(siblings()), encoding="ascii")
    if HOW == "raises":
        raise RuntimeError("no device")
    if HOW == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    print("a driver's word")
    Path(FOLDER, f"open-{os.getpid()}").touch()


def reserve() -> Callable[[], None] | None:
    """Share the device, unless a file says that somebody else holds it."""
    return None if Path(FOLDER, "held").exists() else lambda: None


def operations(kind: str) -> dict[str, Any]:
    """The server's own; one that measures first notes how its spares are."""
    table = known(kind)

    def time_c(request: dict[str, Any], context: Any) -> Any:
        states = [state(child.pid) for child in context.spares.waiting]
        Path(FOLDER, "states").write_text(" ".join(states), encoding="ascii")
        return timing(request, context)

    timing = table["time_c"]
    return {**table, "time_c": time_c}


def siblings() -> list[str]:
    """How the other children of this one's server are."""
    parent = os.getppid()
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    return [state(int(pid)) for pid in listed]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


MOST = {"many": 4, "long": 3}.get(HOW, 2)
if HOW == "late":  # the first take their time to come from the fork to their body

    def late() -> None:
        if len(list(Path(FOLDER).glob("late-*"))) < MOST:
            Path(FOLDER, f"late-{os.getpid()}").touch()
            time.sleep(1.5)

    os.register_at_fork(after_in_child=late)
    reserve = functools.partial(device.try_share, Path(FOLDER).name)  # type: ignore[assignment]
    server._device_for = lambda context, *_: device.reserved(
        Path(FOLDER).name, context.control, context.job, context.progress
    )
known, server._operations = server._operations, operations
server.spares_of = lambda kind, versions: Spares(MOST, opened, reserve, idle_seconds=float(IDLE))
server._MEASURES = ("time_c",)
main(sys.argv[4:])
