"""One preloaded parent: a ``python -m klineage.worker`` process, and the lines that go to and fro."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

PROTOCOL = 1
START_SECONDS = 120.0
CANCEL_POLL = 0.02

Progress = Callable[[dict[str, Any]], None]


class Cancelled(Exception):
    """The caller cancelled the job; its processes are gone."""


class Died(Exception):
    """The parent ended while it had a job. ``words``: the end of what it wrote to stderr."""

    words = ""


class Parent:
    """One running ``python -m klineage.worker``."""

    def __init__(self, kind: str, environment: Mapping[str, str]) -> None:
        self.kind = kind
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._folder = tempfile.TemporaryDirectory(prefix="klineage-worker-")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "klineage.worker", "--kind", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
            cwd=self._folder.name,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._buffer = b""
        self._jobs = 0
        self.versions: dict[str, str] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def greet(self, cancel: threading.Event | None) -> None:
        """Wait for the hello. Raises Died when it does not come."""
        deadline = time.monotonic() + START_SECONDS
        message = self._next(deadline, cancel)
        if message is None or message.get("hello") != PROTOCOL:
            raise Died(f"said {message!r} instead of hello")
        self.versions = dict(message["versions"])

    def submit(
        self,
        job: dict[str, Any],
        on_progress: Progress | None,
        deadline: float,
        cancel: threading.Event | None,
    ) -> dict[str, Any]:
        self._jobs += 1
        number = self._jobs
        self._send({**job, "id": number})
        try:
            while True:
                message = self._next(deadline, cancel)
                if message is None:
                    raise Died("gave no answer in time")
                if message.get("id") != number:
                    continue
                if "progress" in message and on_progress:
                    on_progress(message["progress"])
                if "result" in message:
                    result: dict[str, Any] = message["result"]
                    return result
        except Died:
            raise
        except BaseException:  # cancelled, interrupted, or what the caller's own callback raised
            self._send({"cancel": number})
            self._drain(number)
            raise

    def _drain(self, number: int) -> None:
        """After a cancel: the parent answers as soon as its children are gone."""
        deadline = time.monotonic() + 5
        while True:
            message = self._next(deadline, None)
            if message is None:
                raise Died("did not cancel")
            if message.get("id") == number and "result" in message:
                return

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._in.write(json.dumps(message).encode() + b"\n")
            self._in.flush()
        except (BrokenPipeError, ValueError) as error:
            raise Died("is gone") from error

    def _next(self, deadline: float, cancel: threading.Event | None) -> dict[str, Any] | None:
        """The next line, or None at the deadline. Raises Cancelled, or Died at the end of its output."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if cancel is not None and cancel.is_set():
                    raise Cancelled
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return None
                if not selector.select(min(remaining, CANCEL_POLL if cancel else remaining)):
                    continue
                piece = os.read(self._out.fileno(), 1 << 20)
                if not piece:
                    raise Died(f"ended (exit {self._process.wait(5)})")
                self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read()[-4000:].decode("utf-8", "replace")

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it: the end of its input is enough; a parent that hangs is killed with its group."""
        self._in.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._out.close()
        self._errors.close()
        self._folder.cleanup()
