"""A native worker with spare children, whose device takes its time to open: spare_worker.py HOW FOLDER IDLE."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from klineage.worker import server, spares
from klineage.worker.__main__ import main

HOW, FOLDER, IDLE = sys.argv[1:4]


def opened(called: Callable[[], bool]) -> None:
    """Note that it was begun, and after a while that it is done; or fail as told."""
    Path(FOLDER, f"begun-{os.getpid()}").touch()
    patience = time.monotonic() + (20 if HOW == "called" else 0.4)
    while time.monotonic() < patience and not (HOW == "called" and called()):
        time.sleep(0.01)
    if HOW == "called":
        Path(FOLDER, f"called-{os.getpid()}").touch()
    if HOW == "raises":
        raise RuntimeError("no device")
    if HOW == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    Path.cwd()  # a library looks around; a job's folder, in which it was begun, may be gone
    print("a driver's word")
    Path(FOLDER, f"open-{os.getpid()}").touch()


if HOW == "busy":  # it never rests between gates
    spares.REST_SECONDS = 30.0
server.spares_of = lambda kind, versions: spares.Spares(
    5 if HOW in ("many", "busy") else 2, opened, idle_seconds=float(IDLE)
)
server._MEASURES = ("time_c",)
main(sys.argv[4:])
