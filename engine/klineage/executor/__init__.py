"""Where workers run: on this machine, or on another one over ssh."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from klineage.executor.base import Executor
from klineage.executor.host import Host, HostExecutor
from klineage.executor.local import LocalExecutor
from klineage.executor.parent import Cancelled, Died

__all__ = [
    "Cancelled",
    "Died",
    "Executor",
    "Host",
    "HostExecutor",
    "LocalExecutor",
    "current",
    "fresh_workers",
    "local",
    "use",
]

_shared: dict[Host | None, Executor] = {}
_host: Host | None = None
_guard = threading.Lock()


def use(host: Host | None) -> None:
    """From now on gates of this process run on ``host``; on this machine when it is None."""
    global _host
    with _guard:
        _host = host


def current() -> Executor:
    """The executor that gates of this process share; closed when the process ends."""
    return _of(_host)


@contextmanager
def fresh_workers() -> Iterator[Executor]:
    """Workers where ``current`` has them, that have run nothing yet; ended on the way out."""
    made = LocalExecutor() if _host is None else HostExecutor(_host)
    try:
        yield made
    finally:
        made.close()


def local() -> Executor:
    """The shared executor of this machine."""
    return _of(None)


def _of(host: Host | None) -> Executor:
    with _guard:
        if host not in _shared:
            made = LocalExecutor() if host is None else HostExecutor(host)
            atexit.register(made.close)
            _shared[host] = made
        return _shared[host]
