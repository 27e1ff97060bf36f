"""Follow several children at once, while the caller may cancel or go away."""

from __future__ import annotations

import json
import os
import select
import selectors
import time
from collections.abc import Iterator
from typing import Any

from klineage.worker.process import LINE_CAP, LOG_CAP, LOG_KEPT, Child


class Cancelled(Exception):
    """The caller asked for this job to stop."""


class Closed(Exception):
    """The caller went away; there is nobody to answer."""


class Control:
    """The server's stdin, read while a job runs: cancel lines, further requests, or the end."""

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor, self._buffer = descriptor, b""
        self.waiting: list[dict[str, Any]] = []

    def pump(self, job: object = None) -> None:
        """Read what is there. Raises Cancelled for ``job`` and Closed at the end of input."""
        assert self.descriptor is not None
        piece = os.read(self.descriptor, 1 << 20)
        if not piece:
            raise Closed
        self._buffer += piece
        *lines, self._buffer = self._buffer.split(b"\n")
        cancelled = False
        for line in lines:
            message = _parse(line)
            if message is None:
                self.waiting.append({"op": "a line that is no JSON object"})
            elif "cancel" in message:
                cancelled = cancelled or message["cancel"] == job
            else:
                self.waiting.append(message)
        if cancelled:
            raise Cancelled

    def poll(self, job: object) -> None:
        """``pump`` what has come, if anything has."""
        if self.wait(0):
            self.pump(job)

    def wait(self, seconds: float | None) -> bool:
        """Whether something comes within so many seconds (None: however long it takes)."""
        return self.descriptor is not None and bool(select.select([self.descriptor], [], [], seconds)[0])


def watch(
    children: list[Child], deadline: list[float], control: Control, job: object
) -> Iterator[tuple[Child | None, dict[str, Any]]]:
    """Yield ``(child, message)`` as they come, ``(child, {"exit": True})`` at each end, and
    ``(None, {"timeout": True})`` when ``deadline[0]`` (monotonic seconds, may be moved) passes.

    Ends when every child has. Raises Cancelled or Closed as the control says.
    """
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.inbox, selectors.EVENT_READ, (child, "inbox"))
            selector.register(child.log, selectors.EVENT_READ, (child, "log"))
        if control.descriptor is not None:
            selector.register(control.descriptor, selectors.EVENT_READ, None)
        while any(child.status is None for child in children):
            remaining = deadline[0] - time.monotonic()
            if remaining <= 0:
                yield None, {"timeout": True}
                return
            # A closed pipe means that its child is about to end: look again at once, not in a tick.
            tick = 0.002 if any(child.ended and child.status is None for child in children) else 0.05
            for key, _ in selector.select(min(remaining, tick)):
                if key.data is None:
                    control.pump(job)
                    continue
                child, kind = key.data
                messages, ended = _read(child, kind)
                if ended:
                    child.ended = True
                    selector.unregister(key.fd)
                yield from ((child, message) for message in messages)
            for child in children:
                if child.status is None and _reap(child):
                    messages, _ = _read(child, "inbox")
                    _read(child, "log")
                    yield from ((child, message) for message in messages)
                    yield child, {"exit": True}


def _reap(child: Child) -> bool:
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if pid == 0:
        return False
    child.status = status
    return True


def _read(child: Child, kind: str) -> tuple[list[dict[str, Any]], bool]:
    """Read one pipe of a child: its messages and whether the pipe ended."""
    messages: list[dict[str, Any]] = []
    while True:
        try:
            piece = os.read(child.inbox if kind == "inbox" else child.log, 1 << 16)
        except BlockingIOError:
            return messages, False
        if not piece:
            return messages, True
        if kind == "log":
            child.printed += len(piece)
            child.text = (child.text + piece)[:LOG_KEPT]
            if child.printed > LOG_CAP:
                return [*messages, {"flood": True}], False
            continue
        child.pending += piece
        if len(child.pending) > LINE_CAP:
            return [*messages, {"flood": True}], False
        *lines, child.pending = child.pending.split(b"\n")
        messages += [m for m in map(_parse, lines) if m is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    """A child's line. A kernel can write nonsense into the pipe, and then it is only nonsense."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
