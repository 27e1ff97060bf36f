"""Workers of this machine: one preloaded parent a kind, started on demand and kept warm."""

from __future__ import annotations

import atexit
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

# What a worker may see of the environment: never a key or a token.
_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "CC",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "TRITON_CACHE_DIR",
    "TRITON_PTXAS_PATH",
    "TRITON_DEFAULT_FP_FUSION",
    "COVERAGE_PROCESS_START",
)

Progress = Callable[[dict[str, Any]], None]


class Cancelled(Exception):
    """The caller cancelled the job; its processes are gone."""


class _Died(Exception):
    """The parent ended while it had a job."""


class _Parent:
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
        """Wait for the hello. Raises _Died when it does not come."""
        deadline = time.monotonic() + START_SECONDS
        message = self._next(deadline, cancel)
        if message is None or message.get("hello") != PROTOCOL:
            raise _Died(f"said {message!r} instead of hello")
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
        while True:
            try:
                message = self._next(deadline, cancel)
            except Cancelled:
                self._send({"cancel": number})
                self._drain(number)
                raise
            if message is None:
                raise _Died("gave no answer in time")
            if message.get("id") != number:
                continue
            if "progress" in message and on_progress:
                on_progress(message["progress"])
            if "result" in message:
                result: dict[str, Any] = message["result"]
                return result

    def _drain(self, number: int) -> None:
        """After a cancel: the parent answers as soon as its children are gone."""
        deadline = time.monotonic() + 5
        while True:
            message = self._next(deadline, None)
            if message is None:
                raise _Died("did not cancel")
            if message.get("id") == number and "result" in message:
                return

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._in.write(json.dumps(message).encode() + b"\n")
            self._in.flush()
        except (BrokenPipeError, ValueError) as error:
            raise _Died("is gone") from error

    def _next(self, deadline: float, cancel: threading.Event | None) -> dict[str, Any] | None:
        """The next line, or None at the deadline. Raises Cancelled, or _Died at the end of its output."""
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
                    raise _Died(f"ended (exit {self._process.wait(5)})")
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


class LocalExecutor:
    """Warm parents by kind. Safe from several threads: one job a kind at a time."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in _KEPT if name in source}
        self._parents: dict[str, _Parent] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def submit(
        self,
        kind: str,
        job: dict[str, Any],
        on_progress: Progress | None = None,
        timeout: float = 600.0,
        cancel: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Run a job and return its result, a dict with ``verdict``, ``reason`` and ``summary``.

        A parent that dies is replaced; the job that it had becomes an error result, never an exception.
        Raises Cancelled within a tenth of a second of ``cancel``, with the job's processes gone.
        """
        with _held(self._lock(kind), cancel):
            parent: _Parent | None = None
            try:
                parent = self._running(kind, cancel)
                return parent.submit(job, on_progress, time.monotonic() + timeout, cancel)
            except _Died as died:
                words = self._discard(kind)
                return {
                    "verdict": "error",
                    "reason": "worker",
                    "summary": f"the {kind} worker {died}; a new one starts with the next gate",
                    "log": words,
                }

    def versions(self, kind: str, cancel: threading.Event | None = None) -> dict[str, str]:
        """Versions of what the kind's parent, started if need be, could import; empty if it cannot start."""
        with _held(self._lock(kind), cancel):
            try:
                return dict(self._running(kind, cancel).versions)
            except _Died:
                self._discard(kind)
                return {}

    def pids(self) -> tuple[int, ...]:
        """The parents that run now."""
        with self._guard:
            return tuple(parent.pid for parent in self._parents.values() if parent.alive())

    def close(self) -> None:
        """End every parent and all of their children."""
        with self._guard:
            parents, self._parents = list(self._parents.values()), {}
        for parent in parents:
            parent.close()

    def _lock(self, kind: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(kind, threading.Lock())

    def _running(self, kind: str, cancel: threading.Event | None) -> _Parent:
        with self._guard:
            parent = self._parents.get(kind)
        if parent is not None and parent.alive():
            return parent
        if parent is not None:
            self._discard(kind)
        parent = _Parent(kind, self._environment)
        try:
            parent.greet(cancel)
        except Cancelled:
            parent.close()
            raise
        finally:
            if parent.alive():
                with self._guard:
                    self._parents[kind] = parent
        return parent

    def _discard(self, kind: str) -> str:
        with self._guard:
            parent = self._parents.pop(kind, None)
        if parent is None:
            return ""
        words = parent.last_words()
        parent.close()
        return words


class _held:
    """A lock that a waiting thread can be called away from."""

    def __init__(self, lock: threading.Lock, cancel: threading.Event | None) -> None:
        self._lock, self._cancel = lock, cancel

    def __enter__(self) -> None:
        if self._cancel is None:
            self._lock.acquire()
            return
        while not self._lock.acquire(timeout=CANCEL_POLL):
            if self._cancel.is_set():
                raise Cancelled

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_shared: LocalExecutor | None = None
_shared_guard = threading.Lock()


def local() -> LocalExecutor:
    """The executor that this process shares; closed when the process ends."""
    global _shared
    with _shared_guard:
        if _shared is None:
            _shared = LocalExecutor()
            atexit.register(_shared.close)
        return _shared
