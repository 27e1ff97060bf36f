"""Workers of this machine: one preloaded parent a kind, started on demand and kept warm."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from klineage.executor.parent import CANCEL_POLL, Cancelled, Died, Parent, Progress

# What a worker may see of the environment: never a key or a token.
_KEPT = tuple(
    [
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
    ]
)


class LocalExecutor:
    """Warm parents by kind. Safe from several threads: one job a kind at a time."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in _KEPT if name in source}
        self._parents: dict[str, Parent] = {}
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
            parent: Parent | None = None
            try:
                parent = self._running(kind, cancel)
                return parent.submit(job, on_progress, time.monotonic() + timeout, cancel)
            except Died as died:
                words = self._discard(kind) or died.words
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
            except Died:
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

    def _running(self, kind: str, cancel: threading.Event | None) -> Parent:
        with self._guard:
            parent = self._parents.get(kind)
        if parent is not None and parent.alive():
            return parent
        if parent is not None:
            self._discard(kind)
        try:
            parent = Parent(kind, self._environment)
        except OSError as error:
            raise Died(f"cannot start: {error}") from error
        try:
            parent.greet(cancel)
        except BaseException as error:
            if isinstance(error, Died):
                error.words = parent.last_words()
            parent.close()
            raise
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
