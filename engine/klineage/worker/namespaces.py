"""A child's own view of the system: no network, no privileges, and a small empty folder for its temporary files."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
import tempfile
from pathlib import Path

from klineage.worker.seccomp import libc

_MOUNTS, _USER, _NETWORK = 0x20000, 0x10000000, 0x40000000
_NOSUID_NODEV = 2 | 4
_PRIVATE_RECURSIVE = (1 << 18) | (1 << 14)
_SET_FLAGS, _UP = 0x8914, 0x1 | 0x40  # SIOCSIFFLAGS; IFF_UP and IFF_RUNNING
_DROP_BOUND, _LAST_CAPABILITY, PERFMON = 24, 63, 38
_CAPABILITIES = 0x20080522  # the version of capset's data


def _unshare(flags: int) -> bool:
    unshare = getattr(libc(), "unshare", None)
    return unshare is not None and int(unshare(ctypes.c_int(flags))) == 0


def enter(own_users: bool = True) -> dict[str, bool]:
    """Leave the network and, where the system allows, its users and mounts. Returns which of the three held.

    A process with threads (a GPU driver starts some) cannot change its user namespace; then it keeps its user.
    own_users: False leaves the users alone where the rest can be had without that.
    """
    if not sys.platform.startswith("linux"):
        return {"no_network": False, "no_privileges": False, "own_mounts": False}
    user, group = os.geteuid(), os.getegid()
    if own_users and _unshare(_USER | _NETWORK | _MOUNTS):
        mapped = _map(user, group)
        return {"no_network": True, "no_privileges": True, "own_mounts": mapped}
    if _unshare(_NETWORK | _MOUNTS):
        return {"no_network": True, "no_privileges": False, "own_mounts": True}
    if own_users and _unshare(_USER | _NETWORK):
        _map(user, group)
        return {"no_network": True, "no_privileges": True, "own_mounts": False}
    return {"no_network": _unshare(_NETWORK), "no_privileges": False, "own_mounts": False}


def _map(user: int, group: int) -> bool:
    """Keep the ids that this process had: files of an id that is not mapped cannot be made."""
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    except OSError:
        return False
    return True


def raise_loopback() -> bool:
    """Let a process that has left the network speak to itself: its own loopback interface begins switched off."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            fcntl.ioctl(line, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))
    except OSError:
        return False
    return True


def keep_only(capability: int) -> bool:
    """Give up every privilege but one, for good: also in programs that are started later. Whether that worked."""
    for other in range(_LAST_CAPABILITY + 1):
        if other != capability:  # beyond the last one of this kernel it refuses
            arguments = [ctypes.c_ulong(v) for v in (other, 0, 0, 0)]
            libc().prctl(_DROP_BOUND, *arguments)
    low, high = (1 << capability) & 0xFFFFFFFF, (1 << capability) >> 32
    header = struct.pack("Ii", _CAPABILITIES, 0)
    return int(libc().capset(header, struct.pack("6I", low, low, 0, high, high, 0))) == 0


def private_folder(scratch: str, name: str, bytes_: int, own_mounts: bool) -> tuple[str, bool]:
    """Make a fresh folder in ``scratch``, the child's place for files, and go there.

    Returns it, and whether its size is limited (a mount of its own, in memory, that ends with the child).
    """
    folder = tempfile.mkdtemp(prefix=f"{name}-", dir=scratch)
    limited = own_mounts and _mount(folder, bytes_)
    os.environ["TMPDIR"] = os.environ["KLINEAGE_SCRATCH"] = tempfile.tempdir = folder
    os.chdir(folder)
    return folder, limited


def _mount(folder: str, bytes_: int) -> bool:
    mount = libc().mount
    flags = ctypes.c_ulong(_PRIVATE_RECURSIVE)
    if int(mount(None, b"/", None, flags, None)) != 0:  # what is mounted here is seen nowhere else
        return False
    options = f"size={bytes_},nr_inodes=4096,mode=700".encode()
    return int(mount(b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(_NOSUID_NODEV), options)) == 0
