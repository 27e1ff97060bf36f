"""The start of a server: however it ends, and whatever its imports do, it ends, and leaves no folder."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import sys

from klineage.worker.home import open_home

TELL_SECONDS, START_SECONDS = 110, 130  # who waits gives up between them (executor.parent)


def begin() -> str:
    """Make this process's folder, and see to it that a start ends: at SIGTERM, or when it takes for ever.

    An exception would not do: where it comes out of a weak reference's callback, or a module in C, it is lost. And one that
    hangs in C hears no Python handler; the alarm ends it.
    """
    faulthandler.dump_traceback_later(TELL_SECONDS)  # in the log, then: where it hangs
    signal.alarm(START_SECONDS)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    home = str(open_home())

    def leave(*_: object) -> None:
        shutil.rmtree(home, ignore_errors=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return home


def end() -> None:
    """From now on a job may run: SIGTERM ends it in good order, once."""

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit()

    signal.signal(signal.SIGTERM, leave)
    signal.alarm(0)
    faulthandler.cancel_dump_traceback_later()
