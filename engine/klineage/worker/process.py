"""Children of the server: fork one, talk to it in JSON lines, watch several, and end them as groups."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.worker.faults import KernelFault

LOG_CAP = 1 << 20  # bytes a child may print before it is ended
LOG_KEPT = 64 << 10
LINE_CAP = 4 << 20
MEMORY_EXIT = 117  # exit status of a kernel whose allocation was refused


class Cancelled(Exception):
    """The caller asked for this job to stop."""


class Closed(Exception):
    """The caller went away; there is nobody to answer."""


class Channel:
    """The child's end: lines out, lines in."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._buffer = read, write, b""

    def send(self, **message: Any) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._write, data) :]

    def receive(self) -> dict[str, Any]:
        """The next line from the server. Raises EOFError when it closed the pipe."""
        while b"\n" not in self._buffer:
            piece = os.read(self._read, 65536)
            if not piece:
                raise EOFError
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass
class Child:
    """The server's end of one child."""

    name: str
    pid: int
    inbox: int
    outbox: int
    log: int
    pending: bytes = b""
    printed: int = 0
    text: bytes = b""
    status: int | None = None
    ended: bool = False  # one of its pipes is closed
    closed: list[int] = field(default_factory=list)

    def send(self, **message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.outbox, json.dumps(message).encode() + b"\n")

    @property
    def death(self) -> str:
        """How it ended: "SIGSEGV", or "exit 3"."""
        if self.status is None:
            return "running"
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            try:
                return signal.Signals(number).name
            except ValueError:
                return f"signal {number}"
        return f"exit {os.WEXITSTATUS(self.status)}"


def spawn(name: str, body: Callable[[Channel], None], keep: tuple[int, ...] = ()) -> Child:
    """Fork a child in its own session that runs ``body`` and exits.

    It keeps only its channel, ``keep``, and a pipe as stdout and stderr: the server's own stdin and
    stdout are out of its reach. A KernelFault becomes its last message ``{"fault": ...}``.
    """
    inbox, child_write = os.pipe()
    child_read, outbox = os.pipe()
    log, child_log = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(body, child_read, child_write, child_log, keep)
    for descriptor in (child_read, child_write, child_log):
        os.close(descriptor)
    os.set_blocking(inbox, False)
    os.set_blocking(log, False)
    return Child(name, pid, inbox, outbox, log)


def _child(body: Callable[[Channel], None], read: int, write: int, log: int, keep: tuple[int, ...]) -> None:
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        kept = sorted({0, 1, 2, read, write, *keep})
        for low, high in zip(kept, [*kept[1:], 4096], strict=True):
            os.closerange(low + 1, high)
        channel = Channel(read, write)
        channel.send(**_outcome(body, channel))
        status = 0
    finally:
        os._exit(status)


def _outcome(body: Callable[[Channel], None], channel: Channel) -> dict[str, Any]:
    try:
        body(channel)
    except KernelFault as fault:
        return {"fault": fault_record(fault)}
    except MemoryError:
        return {
            "fault": {"verdict": "fail", "reason": "memory", "summary": "ran out of the memory a gate allows"}
        }
    except BaseException as error:
        return {
            "fault": {
                "verdict": "error",
                "reason": "raised",
                "summary": f"{type(error).__name__}: {error}",
                "log": traceback.format_exc()[-8000:],
            }
        }
    return {"finished": True}


def fault_record(fault: KernelFault) -> dict[str, Any]:
    """A fault as it travels: verdict, reason, summary, and its details as far as JSON holds them."""
    details = json.loads(json.dumps(fault.details, default=str))
    return {"verdict": fault.verdict, "reason": fault.reason, "summary": str(fault), **details}


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
            message = json.loads(line)
            if "cancel" in message:
                cancelled = cancelled or message["cancel"] == job
            else:
                self.waiting.append(message)
        if cancelled:
            raise Cancelled


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


def end(children: list[Child]) -> None:
    """Kill every child with its whole group, wait, and end what it left behind elsewhere."""
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        if child.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            child.status = os.waitpid(child.pid, 0)[1]
        for descriptor in (child.inbox, child.outbox, child.log):
            if descriptor not in child.closed:
                os.close(descriptor)
                child.closed.append(descriptor)
    _end_strays()


def _end_strays() -> None:
    """Grandchildren that left their group were handed to us (see limits.adopt_orphans)."""
    for _ in range(100):
        try:
            listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
            strays = [int(pid) for pid in listed.split()]
        except OSError:
            return
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
