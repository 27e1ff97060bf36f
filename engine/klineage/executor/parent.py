"""One preloaded parent: a worker process, here or behind ssh, and the lines that go to and fro."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from klineage.worker.home import root, sweep

PROTOCOL = 1
START_SECONDS = 120.0
CANCEL_POLL = 0.02
LINE_CAP = 64 << 20
_GREETING_LINES = 200

Progress = Callable[[dict[str, Any]], None]


class Cancelled(Exception):
    """The caller cancelled the job; its processes are gone."""


class Died(Exception):
    """The worker is not there any more, or never was. ``words``: the end of what it wrote to stderr.

    ``reason`` is a machine-readable code: "worker", or why a host could not be used.
    """

    def __init__(self, message: str, reason: str = "worker", *, complete: bool = False) -> None:
        super().__init__(message)
        self.reason, self.words = reason, ""
        self.complete = complete  # the message is a sentence already


class _Nonsense(Died):
    """A line that is no message."""


class Parent:
    """One running worker: ``command`` is started and given ``source`` before the first line, if there is any."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], source: bytes = b"") -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._temporary = Path(environment.get("TMPDIR") or root())
        os.set_blocking(self._in.fileno(), False)
        self._source, self._buffer, self._jobs = source, b"", 0
        self.versions: dict[str, str] = {}
        self.hello: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._process.poll()

    def greet(self, cancel: threading.Event | None) -> None:
        """Wait for the hello. Raises Died when it does not come."""
        deadline = time.monotonic() + START_SECONDS
        try:
            self._write(self._source, deadline, cancel)
        except Died as gone:
            message = self._farewell(gone)
        else:
            message = self._first(deadline, cancel)
        if "refused" in message:
            raise Died(str(message.get("summary")), str(message["refused"]), complete=True)
        versions = message.get("versions")
        if message.get("hello") != PROTOCOL or not isinstance(versions, dict):
            raise Died(f"said {str(message)[:200]} instead of hello")
        self.hello, self.versions = message, {str(k): str(v) for k, v in versions.items()}

    def _farewell(self, gone: Died) -> dict[str, Any]:
        """What it said before it ended without taking its source. Raises ``gone`` when that was nothing."""
        try:
            return self._first(time.monotonic() + 5, None)
        except Died:
            raise gone from None

    def _first(self, deadline: float, cancel: threading.Event | None) -> dict[str, Any]:
        """The first message. A login shell may have something to say before it."""
        for _ in range(_GREETING_LINES):
            try:
                message = self._next(deadline, cancel)
            except _Nonsense:
                continue
            if message is None:
                raise Died(f"did not start within {START_SECONDS:.0f} s")
            return message
        raise Died("said nothing that is a message")

    def submit(
        self,
        job: dict[str, Any],
        on_progress: Progress | None,
        timeout: float,
        cancel: threading.Event | None,
    ) -> dict[str, Any]:
        """Run a job; its answer has ``verdict``, ``reason`` and ``summary``. Waiting for a device costs no time.

        Raises Died when no such answer comes within ``timeout`` seconds, Cancelled when the job was cancelled.
        """
        self._jobs += 1
        number = self._jobs
        deadline = time.monotonic() + timeout
        self._send({**job, "id": number}, deadline, cancel)
        try:
            while True:
                message = self._next(deadline, cancel)
                if message is None:
                    raise Died("gave no answer in time")
                if message.get("id") != number:
                    continue
                progress = message.get("progress")
                if isinstance(progress, dict):
                    deadline = time.monotonic() + timeout if progress.get("waiting") else deadline
                    if on_progress:
                        on_progress(progress)
                if "result" in message:
                    return _checked(message["result"])
        except Died:
            raise
        except BaseException:  # cancelled, interrupted, or what the caller's own callback raised
            self._send({"cancel": number}, time.monotonic() + 5, None)
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

    def _send(self, message: dict[str, Any], deadline: float, cancel: threading.Event | None) -> None:
        self._write(json.dumps(message).encode() + b"\n", deadline, cancel)

    def _write(self, data: bytes, deadline: float, cancel: threading.Event | None) -> None:
        """Write all of it. Raises Died when it does not take it, Cancelled when called away."""
        view = memoryview(data)
        with selectors.DefaultSelector() as selector:
            with contextlib.suppress(ValueError):  # it is closed; the loop says so
                selector.register(self._in, selectors.EVENT_WRITE)
            while view:
                if self._in.closed:
                    raise Died(self._end())
                if cancel is not None and cancel.is_set():
                    raise Cancelled if self._source else Died("was left in the middle of a line")
                if time.monotonic() > deadline:
                    raise Died("takes no more input")
                if not selector.select(CANCEL_POLL):
                    continue
                try:
                    view = view[os.write(self._in.fileno(), view) :]
                except BlockingIOError:
                    continue
                except (OSError, ValueError) as error:
                    raise Died(self._end()) from error

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
                    raise Died(self._end())
                self._buffer += piece
                if len(self._buffer) > LINE_CAP:
                    raise Died("sent a line without an end")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return parse_line(line)

    def _end(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f"ended (exit {self._process.wait(5)})"
        return "closed its output"

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4000))
        return self._errors.read().decode("utf-8", "replace")

    def alive(self) -> bool:
        return self._process.poll() is None

    def dismiss(self, starting: bool) -> None:
        """Tell it to end, and do not wait: the end of its input says so, to one that is ``starting`` a signal."""
        if starting and self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
        elif not starting:
            with contextlib.suppress(OSError):
                self._in.close()

    def end(self, patience: float = 2.0) -> None:
        """End it: the end of its input is enough; one that takes longer than ``patience`` is killed with its group."""
        with contextlib.suppress(OSError):
            self._in.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self, patience: float = 2.0) -> None:
        """``end`` it, where nobody else reads its output, and put its lines away."""
        self.end(patience)
        self._out.close()
        self._errors.close()

    def tidy(self) -> None:
        """Remove the folder of a worker of this machine that has ended, and could not do so itself."""
        home = self.hello.get("home")
        if home is None:  # it did not come to say where
            sweep(self._temporary)
        if isinstance(home, str) and Path(home).name.startswith("klineage-server-"):
            shutil.rmtree(home, ignore_errors=True)


def parse_line(line: bytes) -> dict[str, Any]:
    """One message. Raises Died (or rather its kind _Nonsense) for anything that is not one."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise _Nonsense(f"sent a line that is no message: {line[:80]!r}")
    return message


_VERDICTS = ("pass", "fail", "error", "timeout", "unsupported", "noisy", "skipped", "cancelled")


def _checked(result: object) -> dict[str, Any]:
    """An answer that has what every answer has, of the right types. Raises Died otherwise."""
    if isinstance(result, dict) and result.get("verdict") in _VERDICTS:
        texts = all(isinstance(result.get(name), str) for name in ("reason", "summary"))
        known = (_texts(result.get("log")), _flags(result.get("layers")), _numbers(result.get("numbers")))
        if texts and all(known) and isinstance(result.get("case"), (dict, type(None))):
            return result
    raise Died(f"sent an answer that is none: {str(result)[:200]}")


def _texts(log: object) -> bool:
    return log is None or isinstance(log, str)


def _flags(layers: object) -> bool:
    return layers is None or (isinstance(layers, dict) and all(isinstance(v, bool) for v in layers.values()))


def _numbers(numbers: object) -> bool:
    return numbers is None or (
        isinstance(numbers, dict) and all(isinstance(v, (int, float)) for v in numbers.values())
    )
