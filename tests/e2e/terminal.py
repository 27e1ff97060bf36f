"""A real pseudo-terminal with a screen in memory, to use the app as a person does."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from types import TracebackType

import pyte

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "ctrl+s": "\x13",
    "ctrl+p": "\x10",
}


def _set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _environment(more: dict[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TEXTUAL_ANIMATIONS": "none"}
    return {**kept, **terminal, **more}


class Terminal:
    """Runs a command in a pty of the given size. Use as a context manager; it ends what it started."""

    def __init__(
        self, command: Sequence[str], columns: int, rows: int, environment: dict[str, str] | None = None
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            _set_size(0, columns, rows)
            # The C library's own environment may hold a size that readline put there: pass ours alone.
            os.execvpe(command[0], list(command), _environment(environment or {}))
        self.status: int | None = None

    def resize(self, columns: int, rows: int) -> None:
        _set_size(self._fd, columns, rows)
        self.screen.resize(rows, columns)
        os.kill(self.pid, signal.SIGWINCH)

    def send(self, key: str) -> None:
        os.write(self._fd, KEYS.get(key, key).encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.send(key)
            self.read(0.05)

    def escape(self, left: str) -> None:
        """Press escape and wait until ``left`` is gone: an escape that another key follows at once is that key with alt."""
        self.send("escape")
        self.wait_gone(left)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, wanted: str, seconds: float = 60.0) -> str:
        """The screen once ``wanted`` is on it. Fails with the last screen otherwise."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.05)
            if wanted in self.text():
                return self.text()
        raise AssertionError(f"{wanted!r} did not appear within {seconds} s; the screen:\n{self.text()}")

    def wait_gone(self, unwanted: str, seconds: float = 60.0) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.05)
            if unwanted not in self.text():
                return self.text()
        raise AssertionError(f"{unwanted!r} is still there after {seconds} s; the screen:\n{self.text()}")

    def wait_exit(self, seconds: float = 60.0) -> int:
        """The exit code of the command."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        raise AssertionError(f"the app did not end within {seconds} s; the screen:\n{self.text()}")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.wait_exit()

    def read(self, seconds: float) -> None:
        """Draw whatever the program writes in the next ``seconds``."""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return
            try:
                data = os.read(self._fd, 65536)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            self._stream.feed(data)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status is None:
            self.kill()
        os.close(self._fd)
