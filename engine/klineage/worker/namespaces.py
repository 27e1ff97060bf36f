"""A child's own view of the system: no network, no privileges, and a small empty folder for its temporary files."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path

from klineage.worker.seccomp import libc

_MOUNTS, _USER, _NETWORK = 0x20000, 0x10000000, 0x40000000
_NOSUID_NODEV = 2 | 4
_PRIVATE_RECURSIVE = (1 << 18) | (1 << 14)


def _unshare(flags: int) -> bool:
    unshare = getattr(libc(), "unshare", None)
    return unshare is not None and int(unshare(ctypes.c_int(flags))) == 0


def enter() -> dict[str, bool]:
    """Leave the network and, where the system allows, its users and mounts. Returns which of the three held.

    A process with threads (a GPU driver starts some) cannot change its user namespace; then it keeps its user.
    """
    if not sys.platform.startswith("linux"):
        return {"no_network": False, "no_privileges": False, "own_mounts": False}
    user, group = os.geteuid(), os.getegid()
    if _unshare(_USER | _NETWORK | _MOUNTS):
        mapped = _map(user, group)
        return {"no_network": True, "no_privileges": True, "own_mounts": mapped}
    if _unshare(_NETWORK | _MOUNTS):
        return {"no_network": True, "no_privileges": False, "own_mounts": True}
    if _unshare(_USER | _NETWORK):
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
