"""What a child may not do, and which of those walls really stood on this machine.

Every layer is optional: a hardened kernel or another operating system may lack one. ``apply`` says
which held, and the report repeats it. What follows is one way only: a child cannot take it back.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from klineage.worker import landlock, namespaces, seccomp

PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Ceilings of one child. ``memory`` is bytes beyond what the child already maps (None: no ceiling).

    ``reads`` and ``writes`` are paths that it needs beside Python, libraries and its own temporary folder,
    which holds ``folder_bytes``. ``devices``: it uses a GPU. ``sockets``: it makes system calls that seccomp refuses, and
    speaks to itself, as NVIDIA's tools do. ``files``: it sees only what is named here; False leaves that to a program that it
    starts. ``counters``: it reads the GPU's counters, for which drivers
    want CAP_PERFMON in the system's own user namespace: root keeps that alone.
    """

    cpu_seconds: int = 120
    memory: int | None = 8 * GIB
    file_bytes: int = 64 << 20
    open_files: int = 256
    processes: bool = False  # may it start programs? (a compiler must, a kernel must not)
    devices: bool = False
    sockets: bool = False
    files: bool = True
    counters: bool = False
    folder_bytes: int = 256 << 20
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    arguments = [ctypes.c_ulong(v) for v in (value, 0, 0, 0)]
    return int(seccomp.libc().prctl(option, *arguments)) == 0


def die_with_parent() -> bool:
    """The child is killed when the server that forked it dies, however it dies."""
    return _prctl(seccomp.PR_SET_PDEATHSIG, signal.SIGKILL.value)


def adopt_orphans() -> bool:
    """Grandchildren whose parent ends become ours, so that they can be found and ended."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _rlimit(name: str, value: int) -> bool:
    which = getattr(resource, name, None)
    if which is None:
        return False
    hard = resource.getrlimit(which)[1]
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(which, (ceiling, ceiling))
    except (ValueError, OSError):
        return False
    return True


def prepare() -> None:
    """What a server does once, so that its children need not: find paths, build filters."""
    landlock.prepare()
    seccomp.prepare()


def _mapped_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def apply(limits: Limits, name: str = "child") -> dict[str, bool]:
    """Confine the calling process for good. Returns the layers by name and whether each holds.

    It is in an empty temporary folder of its own afterwards, inside ``$KLINEAGE_SCRATCH``.
    """
    root = limits.counters and os.geteuid() == 0
    held = {
        "cpu_time": _rlimit("RLIMIT_CPU", limits.cpu_seconds),
        "file_size": _rlimit("RLIMIT_FSIZE", limits.file_bytes),
        "open_files": _rlimit("RLIMIT_NOFILE", limits.open_files),
        "no_core_dump": _rlimit("RLIMIT_CORE", 0),
        "parent_death": die_with_parent(),
        **namespaces.enter(own_users=not root),
        "no_new_privileges": _prctl(PR_SET_NO_NEW_PRIVS, 1),
    }
    if limits.sockets and held["no_network"]:
        namespaces.raise_loopback()
    scratch = os.environ.get("KLINEAGE_SCRATCH") or tempfile.gettempdir()
    folder, held["small_folder"] = namespaces.private_folder(
        scratch, name, limits.folder_bytes, held.pop("own_mounts")
    )
    if root:
        namespaces.keep_only(namespaces.PERFMON)
    if limits.memory is not None:
        held["memory"] = _rlimit("RLIMIT_AS", _mapped_bytes() + limits.memory)
    confined = held["no_new_privileges"]
    if limits.files:
        held["files"] = confined and landlock.restrict(
            limits.reads, (folder, *limits.writes), limits.processes, limits.devices
        )
    filtered = confined and not limits.sockets and seccomp.install(limits.processes)
    held["no_signals_or_sockets"] = filtered
    if not limits.processes:
        held["no_processes"] = filtered
    return held
