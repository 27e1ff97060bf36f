"""The server's folder: everything that it and its children write, gone when it ends, however it ends.

A server that was killed cannot tidy up. The next one does: a folder whose lock nobody holds has no owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from klineage.worker.faults import WorkerError

_PREFIX = "klineage-server-"
_BUILDING = "KLINEAGE_BUILDING"
_STALE_SECONDS = 3600
_held: list[int] = []  # the lock lives as long as this process


@functools.lru_cache(maxsize=1)
def root() -> Path:
    """Where temporary files of this machine are, whatever becomes those of this process."""
    return Path(tempfile.gettempdir())


def open_home() -> Path:
    """Make this process's folder, point temporary files at it, and go there.

    Raises WorkerError("disk") when there is no room for one.
    """
    try:
        sweep(root())
        home = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root()))
        descriptor = os.open(home / "unlocked", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (home / "unlocked").rename(home / "lock")  # so that none is seen that its owner does not hold yet
        (home / "room").write_bytes(bytes(1 << 20))
        (home / "room").unlink()
    except OSError as error:
        where = os.environ.get("TMPDIR", "/tmp")
        text = f"no place for temporary files in {where}: {error.strerror}; make room there, or set TMPDIR"
        raise WorkerError("disk", text) from error
    _held.append(descriptor)
    os.environ["TMPDIR"] = tempfile.tempdir = str(home)
    os.chdir(home)
    return home


def sweep(folders: Path) -> None:
    """Remove what servers that were killed left there."""
    for folder in folders.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and _orphaned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _orphaned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # its server has just begun, or was killed then
        return time.time() - folder.stat().st_mtime > _STALE_SECONDS
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextlib.contextmanager
def open_cache(folder: object) -> Iterator[None]:
    """Make the folder of kept builds that a request names, and in it one for this job's unfinished ones, while it lasts.

    Raises WorkerError("cache") when there is no place for them.
    """
    if not isinstance(folder, str):
        yield
        return
    cache = Path(folder)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep_builds(cache)
        own = tempfile.mkdtemp(dir=cache, prefix="job-")
    except OSError as error:
        raise no_room(cache, error) from error
    os.environ[_BUILDING] = own
    try:
        yield
    finally:
        del os.environ[_BUILDING]
        shutil.rmtree(own, ignore_errors=True)


def building(cache: Path) -> Path:
    """Where unfinished builds of this job are, on the disk of ``cache``."""
    return Path(os.environ.get(_BUILDING) or cache)


@contextlib.contextmanager
def keeping(cache: Path) -> Iterator[None]:
    """Nobody else puts a build into ``cache`` meanwhile: a job may read only the file that was there when it began."""
    descriptor = os.open(cache, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # not by closing alone: a child forked just now would keep it
        os.close(descriptor)


def no_room(cache: Path, error: OSError) -> WorkerError:
    """The fault of a cache that cannot be written."""
    text = (
        f"cannot keep compiled kernels in {cache}: {error.strerror}; make room there, or set XDG_CACHE_HOME"
    )
    return WorkerError("cache", text)


def _sweep_builds(cache: Path) -> None:
    """Remove what servers that were killed left: nothing is built for an hour."""
    for unfinished in cache.glob("job-*"):
        with contextlib.suppress(FileNotFoundError):  # another server was faster
            if time.time() - unfinished.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(unfinished, ignore_errors=True)
