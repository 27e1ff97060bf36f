"""Try the walls: a confined child attempts what a bad kernel would, and says what happened."""

from __future__ import annotations

import mmap
import os
import socket
import time
from pathlib import Path
from typing import Any

from klineage.worker import limits
from klineage.worker.jobs import Context, Result, verdict
from klineage.worker.process import Channel, end, spawn
from klineage.worker.watch import watch


def _socket_refused() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    except OSError:
        return True
    return False


def _memory_refused() -> bool:
    try:
        mmap.mmap(-1, 64 << 30).close()
    except (OSError, ValueError, MemoryError):
        return True
    return False


def _read_refused(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return True
    return False


def _body(secret: str, channel: Channel) -> None:
    wanted = limits.Limits(cpu_seconds=10, memory=limits.GIB)
    held = limits.apply(wanted, "selftest")
    held["memory"] = held["memory"] and _memory_refused()
    held["no_signals_or_sockets"] = held["no_signals_or_sockets"] and _socket_refused()
    held["files"] = held["files"] and _read_refused(secret)
    space = os.statvfs(".")
    held["small_folder"] = held["small_folder"] and space.f_blocks * space.f_frsize <= wanted.folder_bytes
    channel.send(layers=held)
    if os.fork() == 0:  # the last thing that it does, where the wall stands
        os._exit(0)
    channel.send(forked=True)


def layers(context: Context) -> Result:
    """Which layers hold here, by attempt where an attempt is harmless."""
    held: dict[str, Any] = {}
    secret = str(Path(os.environ["KLINEAGE_SCRATCH"]) / "secret")
    Path(secret).write_text("a kernel may not read this", encoding="ascii")
    child = spawn("selftest", lambda channel: _body(secret, channel))
    try:
        for _, message in watch([child], [time.monotonic() + 20], context.control, context.job):
            if "layers" in message:
                held = message["layers"]
            if "forked" in message:
                held["no_processes"] = False
            if "timeout" in message or "exit" in message:
                break
    finally:
        end([child])
    if not held:
        return verdict(
            "error", "selftest", f"the confined child ended with {child.death} before it could say anything"
        )
    return verdict("pass", "ok", "", layers=held)
