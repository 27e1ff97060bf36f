"""What a worker and its children see of the environment: never a key or a token, wherever they run."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

_NAMES = (
    "PATH", "HOME", "USER", "LANG", "TMPDIR", "TZ", "CC", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "XDG_CACHE_HOME",
    "KLINEAGE_CUDA_COMPILER",
)  # fmt: skip
_FAMILIES = ("LC_", "CUDA_", "TRITON_")
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def kept(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a worker needs."""
    return {name: value for name, value in environment.items() if _needed(name)}


def _needed(name: str) -> bool:
    listed = name in _NAMES or name.startswith(_FAMILIES)
    return listed and not any(word in name for word in _SECRETS)


def forget() -> None:
    """Drop the rest of this process's environment, as a login on another machine may have set it, without a trace."""
    dropped = set(os.environ) - set(kept(os.environ))
    for name in dropped:
        del os.environ[name]
    if dropped:
        for name, value in list(os.environ.items()):
            os.environ[name] = value  # into memory of its own, away from what is wiped
        _wipe()


def _wipe() -> None:
    """Overwrite the block of memory that /proc/self/environ shows: it still holds what was there at the start."""
    try:
        fields = (
            Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return
    begin, end = int(fields[47]), int(fields[48])  # env_start and env_end of proc(5)
    if begin and end > begin:
        ctypes.memset(begin, 0, end - begin)
