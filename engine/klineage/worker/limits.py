"""What a child may not do, and which of those walls really stood on this machine.

Every layer is optional: a hardened kernel or another operating system may lack one. ``apply`` says
which held, and the report repeats it. What follows is one way only: a child cannot take it back.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
CLONE_THREAD, CLONE_NEWUSER, CLONE_NEWNET = 0x10000, 0x10000000, 0x40000000
GIB = 1 << 30

# System call numbers: (clone, clone3, fatal ones, refused ones, kill, tgkill, audit architecture)
_CALLS = {
    "x86_64": (56, 435, (57, 58, 59, 322, 101), (41, 109, 112, 425), 62, 234, 0xC000003E),
    "aarch64": (220, 435, (221, 281, 117), (198, 154, 157, 425), 129, 131, 0xC00000B7),
}
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38


@dataclass(frozen=True)
class Limits:
    """Ceilings of one child. ``memory`` is bytes beyond what the child already maps (None: no ceiling)."""

    cpu_seconds: int = 120
    memory: int | None = 8 * GIB
    file_bytes: int = 64 << 20
    open_files: int = 256
    processes: bool = False  # may it start programs? (a compiler must, a kernel must not)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, *values: object) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    arguments = [ctypes.c_ulong(v) if isinstance(v, int) else v for v in values]
    while len(arguments) < 4:
        arguments.append(ctypes.c_ulong(0))
    return int(_libc().prctl(option, *arguments)) == 0


def die_with_parent() -> bool:
    """The child is killed when the server that forked it dies, however it dies."""
    return _prctl(PR_SET_PDEATHSIG, signal.SIGKILL.value)


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


def _mapped_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _no_network() -> bool:
    """An empty network namespace: not even the loopback interface is up."""
    if not sys.platform.startswith("linux"):
        return False
    unshare = getattr(_libc(), "unshare", None)
    if unshare is None:
        return False
    return int(unshare(CLONE_NEWNET)) == 0 or int(unshare(CLONE_NEWUSER | CLONE_NEWNET)) == 0


def _filter_program(processes: bool, pid: int, machine: str) -> bytes:
    """A classic BPF program over (number at 0, architecture at 4, first argument at 16)."""
    clone, clone3, fatal, refused, kill, tgkill, architecture = _CALLS[machine]
    load, equal, at_least, test, give = 0x20, 0x15, 0x35, 0x45, 0x06
    code: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, _KILL),
        (load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (give, 0, 0, _KILL),
    ]  # fmt: skip
    for number in (*refused, kill):
        code += [(equal, 0, 1, number), (give, 0, 0, _ERRNO | _EPERM)]
    # A signal to oneself is how abort() ends; to anybody else it is refused.
    code += [(equal, 0, 4, tgkill), (load, 0, 0, 16), (equal, 0, 1, pid), (give, 0, 0, _ALLOW)]
    code += [(give, 0, 0, _ERRNO | _EPERM)]
    if not processes:
        for number in fatal:
            code += [(equal, 0, 1, number), (give, 0, 0, _KILL)]
        # clone3 hides its flags in memory; "not implemented" makes libc fall back to clone.
        code += [(equal, 0, 1, clone3), (give, 0, 0, _ERRNO | _ENOSYS)]
        code += [(equal, 0, 4, clone), (load, 0, 0, 16), (test, 0, 1, CLONE_THREAD)]
        code += [(give, 0, 0, _ALLOW), (give, 0, 0, _KILL)]
    code.append((give, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _system_call_filter(processes: bool) -> bool:
    machine = platform.machine()
    if machine not in _CALLS or not sys.platform.startswith("linux"):
        return False
    program = _filter_program(processes, os.getpid(), machine)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    descriptor = Program(len(program) // 8, ctypes.addressof(buffer))
    return _prctl(PR_SET_SECCOMP, 2, ctypes.byref(descriptor))


def apply(limits: Limits) -> dict[str, bool]:
    """Confine the calling process for good. Returns the layers by name and whether each holds."""
    held = {
        "cpu_time": _rlimit("RLIMIT_CPU", limits.cpu_seconds),
        "file_size": _rlimit("RLIMIT_FSIZE", limits.file_bytes),
        "open_files": _rlimit("RLIMIT_NOFILE", limits.open_files),
        "no_core_dump": _rlimit("RLIMIT_CORE", 0),
        "parent_death": die_with_parent(),
        "no_network": _no_network(),
        "no_new_privileges": _prctl(PR_SET_NO_NEW_PRIVS, 1),
    }
    if limits.memory is not None:
        held["memory"] = _rlimit("RLIMIT_AS", _mapped_bytes() + limits.memory)
    filtered = held["no_new_privileges"] and _system_call_filter(limits.processes)
    held["no_signals_or_sockets"] = filtered
    if not limits.processes:
        held["no_processes"] = filtered
    return held
