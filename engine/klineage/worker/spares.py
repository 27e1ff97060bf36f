"""Children that wait for a job: forked early, their device opened, so that a job need not wait for that.

Opening a GPU takes a second, and a process that has opened it cannot be forked. A spare has run nothing but
that: it is as fresh as a child that is forked for its job, and is confined, as that one, once its job is there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import select
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from klineage.worker import limits
from klineage.worker.process import Channel, Child, Task, end, keep_apart, spawn

IDLE_SECONDS = 60.0  # a spare holds memory of the device
REST_SECONDS = 0.3  # a gate's next job comes sooner, and so does the end of a command that gates once
A_GATE = 3  # judges with two and times with one; a driver opens its device for one after the other, so others come later
SETTLE_SECONDS = 30.0
_TICK, _AGAIN = 0.02, 0.1

Release = Callable[[], None]


class Spares:
    """At most ``most`` waiting children of a server.

    initialise: what a spare does before it waits; it may leave out what is left when the function that it is given says
    that a job is there. reserve: asks for leave to do so on the device; returns how to
    give it back, or None for not now.
    """

    def __init__(
        self,
        most: int,
        initialise: Callable[[Callable[[], bool]], None],
        reserve: Callable[[], Release | None] = lambda: lambda: None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.most, self.initialise, self.reserve = most, initialise, reserve
        self.idle_seconds = idle_seconds
        self.waiting: list[Child] = []
        self._opening: set[int] = set()  # pids of those that are not ready
        self._release: Release | None = None
        self._used, self._broken, self._rested = time.monotonic() - REST_SECONDS, False, False
        self._sound = False

    def start(self, name: str, task: Task) -> Child:
        """A child that runs ``task``: a spare where there is one, a fresh fork otherwise."""
        self.look()
        while self.waiting:
            child = min(self.waiting, key=lambda spare: spare.pid in self._opening)
            self.waiting.remove(child)
            self._opened(child)
            keep_apart(child.pid, False)
            try:
                _hand_over(child, task)
            except (BrokenPipeError, ConnectionResetError):  # it has just died
                end([child], strays=False)
                continue
            child.name = name
            return child
        return spawn(name, task, task.files)

    def rested(self) -> None:
        """A job has ended: from now on, count the idle time; a spare that could not be made is tried again."""
        self._used, self._broken, self._rested = time.monotonic(), False, True

    def look(self) -> None:
        """Note which spares are ready, and bury the dead."""
        for child in list(self.waiting):
            with contextlib.suppress(BlockingIOError):
                if os.read(child.inbox, 65536) and child.pid in self._opening:
                    self._sound = True
                    self._opened(child)  # its only message, or its last words; then it is dead below
            with contextlib.suppress(BlockingIOError):
                os.read(child.log, 65536)  # what a driver says at its start is no kernel's word
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                child.status, self._broken, self._sound = status, True, False
                self._drop([child])

    def tend(self) -> float | None:
        """Make and end spares as is due. Returns the seconds until the next look; None when none is needed."""
        self.look()
        idle = time.monotonic() - self._used
        if idle > self.idle_seconds:
            self.close()
            return None
        if idle < REST_SECONDS:
            return REST_SECONDS - idle
        most = self.most if self._rested else min(self.most, A_GATE)
        if len(self.waiting) < most and not self._broken:
            if self._release is None:
                self._release = self.reserve()
            if self._release is None:
                return _AGAIN
            self._make(most)
        return _TICK if self._opening else max(_TICK, self.idle_seconds - idle)

    def settle(self, poll: Callable[[], None]) -> None:
        """Wait until no spare is busy with its device, as a measurement wants it. ``poll`` may raise."""
        patience = time.monotonic() + SETTLE_SECONDS
        while self._opening:
            if time.monotonic() > patience:
                self._drop([child for child in self.waiting if child.pid in self._opening])
                return
            poll()
            time.sleep(0.002)
            self.look()

    def give_way(self) -> None:
        """Give the device back, although some may still be opening it."""
        if self._release is not None:
            self._release()
            self._release = None

    def keep(self) -> None:
        """The job is over that held the device for those that open it: they share it on, or end where another waits for it."""
        self.look()
        if self._opening and self._release is None:
            self._release = self.reserve()
            if self._release is None:
                self._drop([child for child in self.waiting if child.pid in self._opening])

    def close(self) -> None:
        """End them all."""
        self._drop(list(self.waiting))

    def stock(self) -> None:
        """Make what the gate of a job lacks, beside that job, which holds the device and measures nothing.

        Not where the last one died: this job would take the next.
        """
        if self._sound:
            self._make(min(self.most, A_GATE))

    def _make(self, most: int) -> None:
        """Fork what is missing to so many."""
        for _ in range(most - len(self.waiting)):
            child = spawn("spare", functools.partial(_wait, self.initialise), (), _pair)
            keep_apart(child.pid, True)
            self._opening.add(child.pid)
            self.waiting.append(child)

    def _opened(self, child: Child) -> None:
        self._opening.discard(child.pid)
        if not self._opening:
            self.give_way()

    def _drop(self, children: list[Child]) -> None:
        for child in children:
            self.waiting.remove(child)
            keep_apart(child.pid, False)
            self._opened(child)
        if children:
            end(children, strays=False)


def _pair() -> tuple[int, int]:
    """A line on which files can be handed over: the child's end and the server's."""
    child, server = socket.socketpair()
    return child.detach(), server.detach()


def _wait(initialise: Callable[[Callable[[], bool]], None], channel: Channel) -> None:
    """Body of a spare."""
    server = os.getppid()
    limits.die_with_parent()
    os.chdir("/")  # the folder of the job beside which it was begun goes with that job
    initialise(lambda: bool(select.select([channel.line], [], [], 0)[0]))
    channel.send(spare="ready")
    task, environment, folder = _taken(channel.line)
    if os.getppid() != server:
        raise EOFError
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    os.chdir(folder)
    task(channel)


def _hand_over(child: Child, task: Task) -> None:
    """Give a spare its task with its files; it may be large, and the spare may not listen yet."""
    with tempfile.TemporaryFile() as file:
        told = (task.function, task.arguments, dict(os.environ), str(Path.cwd()))
        file.write(pickle.dumps(told))
        file.flush()
        line = socket.socket(fileno=child.outbox)
        try:
            socket.send_fds(line, [b"T"], [file.fileno(), *task.files])
        finally:
            line.detach()


def _taken(descriptor: int) -> tuple[Task, dict[str, str], str]:
    """The task that the server hands over. Raises EOFError when the server is gone."""
    line = socket.socket(fileno=descriptor)
    try:
        data, files, _, _ = socket.recv_fds(line, 1, 16)
    finally:
        line.detach()
    if not data:
        raise EOFError
    with os.fdopen(files[0], "rb") as file:
        file.seek(0)
        told: tuple[Any, Any, dict[str, str], str] = pickle.load(file)  # from our own server
    return Task(told[0], told[1], tuple(files[1:])), told[2], told[3]
