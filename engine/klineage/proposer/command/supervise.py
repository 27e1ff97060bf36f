"""Run one command and end it with everything that it started; a program of its own, standard library only.

    python -I -S supervise.py STATUS SECONDS GRACE WORD...

The command is in a session of its own. It is ended when SECONDS have passed, when standard input of this
program closes (whoever watches it is gone, or has cancelled), and, for what it left behind, when it ends
by itself: SIGTERM to its group, SIGKILL after GRACE seconds. On Linux, processes that left the group are
found too. One JSON line on the descriptor STATUS says how it went: ``why`` ("ended", "timeout",
"cancelled", "not started"), ``exit`` (negative for a signal), ``left`` (how many processes it left behind).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of Linux's prctl
_TICK = 0.05
_ROUNDS = 200


def main(words: list[str]) -> int:
    """Run the command to its end. Returns 0, however the command ended."""
    status, seconds, grace, command = int(words[0]), float(words[1]), float(words[2]), words[3:]
    _prctl(_SUBREAPER, 1)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_us
        )
    except OSError as error:
        _say(status, {"why": "not started", "error": error.strerror or str(error)})
        return 0
    why = _wait(process.pid, time.monotonic() + seconds)
    if why != "ended":
        _kill_group(process.pid, signal.SIGTERM)
        end = time.monotonic() + grace
        while time.monotonic() < end and not _has_ended(process.pid):
            time.sleep(_TICK)
    _kill_group(process.pid, signal.SIGKILL)  # before it is waited for: until then its number is its own
    code = process.wait()
    _say(status, {"why": why, "exit": code, "left": _end_strays()})
    return 0


def _wait(pid: int, deadline: float) -> str:
    while True:
        if _has_ended(pid):
            return "ended"
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "timeout"
        if select.select([0], [], [], min(_TICK, remaining))[0]:
            return "cancelled"


def _has_ended(pid: int) -> bool:
    """Whether the process has ended; it stays to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _end_strays() -> int:
    """End what was handed to us when its parents died. Returns how many processes that were."""
    ended = 0
    for _ in range(_ROUNDS):
        try:
            listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        except OSError:
            return ended  # no such list here: the group is all that can be ended
        if not listed.strip():
            return ended
        for pid in map(int, listed.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
                ended += 1
    return ended


def _die_with_us() -> None:
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _say(status: int, outcome: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(status, json.dumps(outcome).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
