"""One supervised run of a command: its output as it comes, and how it ended."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from klineage.errors import KlineageError
from klineage.proposer.base import OnProposerEvent, ProposerEvent
from klineage.proposer.command.streams import PlainStream, Stream
from klineage.proposer.secrets import redacted

GRACE = 3.0  # seconds between asking a command to end and ending it
_TICK = 0.1  # seconds between two pieces of output that are shown
_PIECE = 8_000  # characters shown in one tick; what is beyond is counted
_LINE_CAP = 4 << 20  # bytes of one line
_TAIL = 2_000
_SUPERVISOR = Path(__file__).with_name("supervise.py")
_OVERDUE = 30.0  # seconds after which a supervisor that should have ended is given up


class NotStarted(KlineageError):
    """A command that could not be started."""


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    why:  "ended", "timeout" or "cancelled".
    exit: its exit status, negative for a signal.
    left: how many processes it left behind, which were ended (0 where the system does not tell).
    said: the end of what it wrote, without secrets.
    """

    why: str
    exit: int
    left: int
    said: str


@dataclass
class _Shown:
    """Output on its way to the screen: at most one piece a tick, of bounded size."""

    on_event: OnProposerEvent | None
    waiting: list[ProposerEvent] = field(default_factory=list)
    held: int = 0
    dropped: int = 0
    last: float = 0.0

    def add(self, events: Sequence[ProposerEvent]) -> None:
        for event in events:
            if self.held + len(event.text) > _PIECE:
                self.dropped += len(event.text)
            else:
                self.waiting.append(event)
                self.held += len(event.text)

    def flush(self, *, now: float | None = None) -> None:
        """Pass on what waits; with a time, only when a tick has gone by since the last."""
        if now is not None and now - self.last < _TICK:
            return
        self.last = now if now is not None else self.last
        if self.dropped:
            self.waiting.append(
                ProposerEvent("status", f"{self.dropped:,} characters of its output not shown")
            )
        if self.on_event is not None:
            for event in _joined(self.waiting):
                self.on_event(ProposerEvent(event.kind, redacted(event.text)))
        self.waiting, self.held, self.dropped = [], 0, 0


def run(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    stream: Stream,
    on_event: OnProposerEvent | None = None,
    cancel: threading.Event | None = None,
) -> Ending:
    """Run ``command`` in ``folder`` for at most ``seconds``, and end all of it before returning.

    Its output goes to ``stream``, whose events go to ``on_event``; its environment is this process's own.
    Raises NotStarted when it cannot be started.
    """
    shown, tail = _Shown(on_event), bytearray()
    out, err = _Lines(), _Lines()
    with _supervised(command, folder, seconds) as (process, status):
        outcome = b""
        life = process.stdin
        assert life is not None and process.stdout is not None and process.stderr is not None
        deadline = time.monotonic() + seconds + GRACE + _OVERDUE
        with selectors.DefaultSelector() as selector:
            for file, name in ((process.stdout, "out"), (process.stderr, "err"), (status, "status")):
                selector.register(file, selectors.EVENT_READ, name)
            while selector.get_map() and time.monotonic() < deadline:
                if cancel is not None and cancel.is_set() and not life.closed:
                    life.close()
                for key, _ in selector.select(0.05):
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.data == "status":
                        outcome += piece
                        deadline = min(deadline, time.monotonic() + 2)  # pipes that somebody still holds
                    else:
                        tail = (tail + piece)[-_TAIL:]
                        reader, lines = (stream, out) if key.data == "out" else (PlainStream(), err)
                        for line in lines.feed(piece):
                            shown.add(reader.read(line))
                shown.flush(now=time.monotonic())
        for line in out.rest():
            shown.add(stream.read(line))
        shown.flush()
    return _ending(outcome, command[0], redacted(bytes(tail).decode("utf-8", "replace")))


@contextmanager
def _supervised(
    command: Sequence[str], folder: Path, seconds: float
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The supervisor of a command, and the descriptor on which it reports. Both are gone afterwards."""
    read, write = os.pipe()
    words = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(write), str(seconds), str(GRACE), *command]
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, "PWD": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(write,),
            start_new_session=True,
        )
    except OSError as error:
        os.close(read)
        raise NotStarted(f"the command {command[0]} cannot be started: {error.strerror}") from error
    finally:
        os.close(write)
    try:
        yield process, read
    finally:
        os.close(read)
        for file in (process.stdin, process.stdout, process.stderr):
            if file is not None:
                file.close()  # the first tells a supervisor that still runs to end everything
        try:
            process.wait(GRACE + _OVERDUE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Lines:
    """Bytes as lines of text; a line without end is cut."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, piece: bytes) -> list[str]:
        self._buffer += piece
        if len(self._buffer) > _LINE_CAP:
            self._buffer += b"\n"
        *lines, self._buffer = self._buffer.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def rest(self) -> list[str]:
        return [self._buffer.decode("utf-8", "replace")] if self._buffer else []


def _joined(events: Sequence[ProposerEvent]) -> list[ProposerEvent]:
    """Pieces of text that follow each other, as one."""
    joined: list[ProposerEvent] = []
    for event in events:
        if joined and joined[-1].kind == event.kind == "text":
            joined[-1] = ProposerEvent("text", joined[-1].text + event.text)
        else:
            joined.append(event)
    return joined


def _ending(outcome: bytes, program: str, said: str) -> Ending:
    try:
        record = json.loads(outcome)
    except ValueError:
        return Ending("ended", 1, 0, "its supervisor was killed")
    if record["why"] == "not started":
        raise NotStarted(
            f"the command {program} cannot be started: {record['error']}; install it, or name another under "
            "[proposer.commands] in config.toml"
        )
    return Ending(record["why"], record["exit"], record["left"], said)
