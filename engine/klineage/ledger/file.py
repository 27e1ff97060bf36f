"""A file of lines that only grows: each is on the disk before anybody acts on it, and none is half another's."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from klineage.errors import KlineageError


class LineFile:
    """Whole lines, shared by processes. One lock is held while a line is decided on and written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[bytes]:
        """Every line, without its end; the last one too when a cut of power has left it without. [] for no file."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise KlineageError(f"cannot read {self.path}: {error.strerror}") from error
        with _locked(descriptor, fcntl.LOCK_SH):
            return _lines(descriptor)

    @contextmanager
    def appending(self) -> Iterator[Appender]:
        """Nobody else reads or writes while the block runs. Raises KlineageError when nothing can be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise KlineageError(f"cannot write {self.path}: {error.strerror}") from error
        with _locked(descriptor, fcntl.LOCK_EX):
            if new:
                _sync_folder(self.path.parent)
            yield Appender(self.path, descriptor)


class Appender:
    """The file, while it is locked."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def lines(self) -> list[bytes]:
        """Every line that is there now."""
        return _lines(self._descriptor)

    def append(self, line: bytes) -> None:
        """Add a line; it is on the disk when this returns. What cannot be written whole is taken back.

        A last line that a cut of power has torn is ended first, so that it spoils no other.
        """
        size = os.fstat(self._descriptor).st_size
        torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + line + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full; free some space" if full else error.strerror
            raise KlineageError(f"cannot write {self._path}: {reason}") from error


@contextmanager
def _locked(descriptor: int, kind: int) -> Iterator[None]:
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        # Not by closing alone: a child that was forked just now would keep the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _lines(descriptor: int) -> list[bytes]:
    size = os.fstat(descriptor).st_size
    pieces, at = [], 0
    while at < size:
        piece = os.pread(descriptor, size - at, at)
        if not piece:
            break
        pieces.append(piece)
        at += len(piece)
    lines = b"".join(pieces).split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
