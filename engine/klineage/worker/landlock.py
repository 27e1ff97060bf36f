"""Which files a confined child sees: Python, its libraries, system libraries, its own folder, and what its job names.

Landlock needs Linux 5.13 and no privilege. It also keeps the child from the memory of other processes (/proc, ptrace).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import site
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from klineage.worker.seccomp import libc

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read a file, list a folder
_OF_A_FILE = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14)
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_WRITE = sum(1 << bit for bit in (1, *range(4, 13)))
_SCOPE_SOCKETS_SIGNALS = 3

_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store", "/gnu/store", "/proc/self", "/etc/alternatives",
           "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd",
           "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system", "/sys/fs/cgroup",
           "/dev/zero", "/dev/random", "/dev/urandom")  # fmt: skip
_DEVICES = (
    "/dev",
    "/proc/driver",
    "/proc/devices",
    "/proc/modules",
    "/proc/sys/vm",
    "/sys",
    "/etc/OpenCL",
    "/run/nvidia-persistenced",
)


def _call(number: int, *values: object) -> int:
    return int(libc().syscall(ctypes.c_long(number), *values))


@functools.lru_cache(maxsize=1)
def version() -> int:
    """The Landlock of this kernel: 0 when there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


@functools.lru_cache(maxsize=1)
def _python() -> tuple[str, ...]:
    """Where this Python, its packages and this program are."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).resolve().parent.parent)]
    paths += [path for path in sysconfig.get_paths().values() if path]
    paths += [
        p for p in sys.path if p and ("site-packages" in p or "dist-packages" in p or p.endswith(".zip"))
    ]
    paths += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    if __file__:
        paths.append(str(Path(__file__).resolve().parent.parent))
    return _outermost(paths)


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Those that exist and are not inside another of them or of the system's."""
    there = [path for path in dict.fromkeys(paths) if Path(path).exists()]
    covers = [Path(path) for path in (*_SYSTEM, *there)]
    return tuple(path for path in there if not any(cover in Path(path).parents for cover in covers))


@functools.lru_cache(maxsize=1)
def _system(devices: bool) -> tuple[str, ...]:
    return _outermost(_SYSTEM) + (_outermost(_DEVICES) if devices else ())


@functools.lru_cache(maxsize=1)
def _tools() -> tuple[str, ...]:
    """Where compilers are, for children that run them."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    programs = ("clang", "cc", "nvcc", "ptxas", "valgrind", "compute-sanitizer", "ncu")
    for name in (os.environ.get("CC") or "gcc", *programs):
        found = shutil.which(name)
        if found:
            homes += [str(Path(found).parent), str(Path(found).resolve().parent.parent)]
    homes.append("/proc")  # each program reads its own; those of others stay closed to Landlock's children
    homes += [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    return _outermost(home for home in homes if Path(home) not in (Path("/"), Path.home()))


def prepare() -> None:
    """Find out once, in the server, what its children would each find out again."""
    version()
    _system(False)
    _python()
    _tools()


def written(processes: bool) -> Iterator[str]:
    """Where Triton keeps what it compiled, for children that compile."""
    if processes and "triton" in sys.modules:
        home = Path(os.environ.get("TRITON_HOME") or Path.home()) / ".triton"
        cache = Path(os.environ.get("TRITON_CACHE_DIR") or home)
        with contextlib.suppress(OSError):
            cache.mkdir(parents=True, exist_ok=True)
        yield str(cache)


def _add(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is not there needs no rule
        try:
            allowed = rights if Path(path).is_dir() else rights & _OF_A_FILE
            _call(
                _ADD,
                ctypes.c_int(ruleset),
                ctypes.c_int(1),
                struct.pack("=Qi", allowed, descriptor),
                ctypes.c_uint32(0),
            )
        finally:
            os.close(descriptor)


def restrict(reads: Iterable[str], writes: Iterable[str], processes: bool, devices: bool) -> bool:
    """See only these files from now on, with what every child needs. Whether that worked.

    ``processes``: it may run compilers. ``devices``: it uses a GPU. Needs no-new-privileges.
    """
    abi = version()
    if not abi:
        return False
    write = _WRITE | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    handled = struct.pack("=QQQ", _READ | write, 0, _SCOPE_SOCKETS_SIGNALS if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE, handled, ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        tools = _tools() if processes else ()
        _add(ruleset, (*_system(devices), *_python(), *tools, *reads), _READ)
        _add(
            ruleset,
            (*writes, *written(processes), *(_DEVICES[:2] if devices else ()), "/dev/null"),
            _READ | write,
        )
        return _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)
