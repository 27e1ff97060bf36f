"""Reading a kernel that a user brings: any text opens, what cannot be walked is refused with a sentence."""

from __future__ import annotations

import os
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import Kernel, Surface
from klineage.workload import Workload

#: More than any hand-written kernel; a file beyond it is refused before it is read into memory.
MAX_BYTES = 1024 * 1024

_SUFFIXES: dict[str, Surface] = {".py": "triton", ".c": "c", ".cu": "cuda"}


def read_kernel(
    path: Path, workload: Workload, *, surface: str | None = None, entry: str | None = None
) -> Kernel:
    """The kernel in ``path``, its bytes unchanged. Raises KlineageError naming the file and the way out."""
    source = read_bytes(path)
    chosen = _surface_of(path, surface)
    if chosen not in workload.element:
        known = ", ".join(sorted(workload.element))
        raise KlineageError(
            f"{workload.name} declares no element type for {chosen} (it has {known}); add it to ELEMENT in its workload.py"
        )
    from klineage.surface.dispatch import entry_of, flags_of

    name = entry_of(chosen, path.name, source, workload, wanted=entry)
    return Kernel(chosen, path.name, name, source, flags=flags_of(chosen, source))


def read_bytes(path: Path) -> bytes:
    """The bytes of a text file. Refuses folders, devices, empty, binary and huge files."""
    try:
        if path.is_dir():
            raise KlineageError(f"{path} is a folder; name the kernel file in it")
        if path.exists() and not path.is_file():
            raise KlineageError(f"{path} is not a regular file; name a kernel file")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise KlineageError(
                f"{path} has {size:,} bytes, more than the {MAX_BYTES:,} of any kernel; extract the kernel into a file of its own"
            )
        source = path.read_bytes()
    except OSError as error:
        raise KlineageError(
            f"cannot read {path}: {os.strerror(error.errno or 0)}; check the path and its permissions"
        ) from error
    if not source.strip():
        raise KlineageError(f"{path} is empty; name a file that holds a kernel")
    if source.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise KlineageError(f"{path} is UTF-16; save it as UTF-8")
    if b"\0" in source:
        raise KlineageError(f"{path} is a binary file; name the kernel's source")
    return source


def _surface_of(path: Path, surface: str | None) -> Surface:
    if surface is not None:
        for known in _SUFFIXES.values():
            if surface == known:
                return known
        raise KlineageError(
            f"unknown surface {surface!r}; this version walks {', '.join(_SUFFIXES.values())}"
        )
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        raise KlineageError(
            f"cannot tell the language of {path.name}; say --surface {', '.join(_SUFFIXES.values())}"
        ) from None
