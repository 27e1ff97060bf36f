"""Children of the server: fork one, talk to it in JSON lines, and end it with its whole group."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.worker.faults import KernelFault

LOG_CAP = 1 << 20  # bytes a child may print before it is ended
LOG_KEPT = 64 << 10
LINE_CAP = 4 << 20
MEMORY_EXIT = 117  # exit status of a kernel whose allocation was refused


class Channel:
    """The child's end: lines out, lines in."""

    def __init__(self, read: int, write: int) -> None:
        self.line, self._write, self._buffer = read, write, b""

    def send(self, **message: Any) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._write, data) :]

    def receive(self) -> dict[str, Any]:
        """The next line from the server. Raises EOFError when it closed the pipe."""
        while b"\n" not in self._buffer:
            piece = os.read(self.line, 65536)
            if not piece:
                raise EOFError
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True)
class Task:
    """``function(*arguments, *files, channel)``: what a child does, in a form that can be sent to one.

    The function is one of a module, the arguments are plain values, the files are open descriptors.
    """

    function: Callable[..., None]
    arguments: tuple[Any, ...]
    files: tuple[int, ...] = ()

    def __call__(self, channel: Channel) -> None:
        self.function(*self.arguments, *self.files, channel)


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
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            os.write(self.outbox, json.dumps(message).encode() + b"\n")

    def threads(self) -> int:
        """How many threads it has now; 0 where the system does not say."""
        try:
            return len(list(Path(f"/proc/{self.pid}/task").iterdir()))
        except OSError:
            return 0

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


def spawn(
    name: str,
    body: Callable[[Channel], None],
    keep: tuple[int, ...] = (),
    line: Callable[[], tuple[int, int]] = os.pipe,
) -> Child:
    """Fork a child in its own session that runs ``body`` and exits.

    It keeps only its channel, ``keep``, and a pipe as stdout and stderr: the server's own stdin and
    stdout are out of its reach. A KernelFault becomes its last message ``{"fault": ...}``.
    line: makes the line to the child, the end to read first.
    """
    inbox, child_write = os.pipe()
    child_read, outbox = line()
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
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):  # Python and the server see to them
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        kept = sorted({0, 1, 2, read, write, *keep})
        for low, high in zip(kept, [*kept[1:], _highest() + 1]):  # noqa: B905 - strict= is of Python 3.10
            os.closerange(low + 1, high)
        channel = Channel(read, write)
        channel.send(**_outcome(body, channel))
        status = 0
    finally:
        os._exit(status)


def _highest() -> int:
    """The highest descriptor that is open."""
    try:
        return max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    except OSError:
        return 4096


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


_apart: set[int] = set()


def keep_apart(pid: int, apart: bool) -> None:
    """Whether this child is no stray: it waits for a job (see spares)."""
    (_apart.add if apart else _apart.discard)(pid)


def end(children: list[Child], strays: bool = True) -> None:
    """Kill every child with its whole group, wait, and end what it left behind elsewhere.

    strays: False where other children may be running, and these have run nothing that could leave something.
    """
    for child in children:  # all before any is waited for: a driver takes its time to give a device back
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        if child.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
    for child in children:
        if child.status is None:
            child.status = os.waitpid(child.pid, 0)[1]
        for descriptor in (child.inbox, child.outbox, child.log):
            if descriptor not in child.closed:
                os.close(descriptor)
                child.closed.append(descriptor)
    if strays:
        _end_strays()


def _end_strays() -> None:
    """Grandchildren that left their group were handed to us (see limits.adopt_orphans)."""
    for _ in range(100):
        try:
            listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
            strays = [int(pid) for pid in listed.split() if int(pid) not in _apart]
        except OSError:
            return
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
