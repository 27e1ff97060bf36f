"""One writer at a time, across threads and processes, and a sign when the last one died at work."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError

NAME = "klineage.lock"
WAIT_SECONDS = 30.0  # for one write of somebody else
ORPHAN_SECONDS = 10.0  # for the last git of a writer that is dead


@dataclass
class Held:
    """The lock, while it is held.

    descriptor:  inherited by the git processes of a write, so that the lock outlives a killed klineage
                 until its last git has ended.
    interrupted: (lineage id, time) of a writer that died between its two halves, else None.
    unfinished:  set by the writer while a death would leave work for the next one.
    """

    descriptor: int
    interrupted: tuple[str, float] | None
    unfinished: bool = False


@contextmanager
def writing(git_dir: Path, lineage_id: str, finish: Callable[[Held], None]) -> Iterator[Held]:
    """Hold the workspace for one write. ``finish`` first completes what an interrupted writer left.

    Raises KlineageError when the folder cannot be written, or another klineage keeps it too long.
    """
    path = git_dir / NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        closed = error.errno in (errno.EACCES, errno.EROFS, errno.EPERM)
        reason = "it is read-only" if closed else f"{NAME}: {error.strerror}"
        raise KlineageError(f"cannot write to {git_dir}: {reason}; nothing was changed") from error
    try:
        _take(descriptor, git_dir)
        held = Held(descriptor, _interrupted(descriptor))
        if held.interrupted is not None:
            finish(held)  # until it returns, the sign of the interrupted writer stays
        _put(descriptor, f"{os.getpid()} {time.time():.3f} {lineage_id}\n")
        try:
            yield held
        finally:
            if not held.unfinished:
                _put(descriptor, "")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise KlineageError(
                f"the disk is full, nothing was changed in {git_dir}; free some space"
            ) from error
        raise
    finally:
        os.close(descriptor)


def interrupted(git_dir: Path) -> bool:
    """Whether a writer died at work here, and nobody has finished it yet.

    The last git of a writer that has just died may still be running: it is waited for.
    """
    try:
        descriptor = os.open(git_dir / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        deadline = time.monotonic() + ORPHAN_SECONDS
        while not _try(descriptor, fcntl.LOCK_SH):
            if _alive(_content(descriptor)) or time.monotonic() > deadline:
                return False
            time.sleep(0.003)
        return _interrupted(descriptor) is not None
    finally:
        os.close(descriptor)


def _alive(content: str) -> bool:
    """Whether the process that wrote ``content`` exists; an empty lock is just being taken or released."""
    pid = content.partition(" ")[0]
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take(descriptor: int, git_dir: Path) -> None:
    """Wait for those who write before this one. Each may take so long: on a busy machine many do, one after the other."""
    holder, deadline = _content(descriptor), time.monotonic() + WAIT_SECONDS
    while not _try(descriptor, fcntl.LOCK_EX):
        if (now := _content(descriptor)) != holder:
            holder, deadline = now, time.monotonic() + WAIT_SECONDS
        if time.monotonic() > deadline:
            who = holder.partition(" ")[0] or "unknown"
            raise KlineageError(
                f"another klineage (process {who}) is writing to {git_dir}; wait for it or end it"
            )
        time.sleep(0.003)


def _content(descriptor: int) -> str:
    return os.pread(descriptor, 4096, 0).decode("utf-8", "replace")


def _interrupted(descriptor: int) -> tuple[str, float] | None:
    words = _content(descriptor).split()
    if len(words) != 3:
        return None
    try:
        return words[2], float(words[1])
    except ValueError:
        return None


def _put(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
