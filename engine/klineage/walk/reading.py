"""Reading a kernel that a user brings: any text opens, what cannot be walked is refused with a sentence."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import SUFFIXES as SUFFIXES
from klineage.kernel import Kernel, Surface
from klineage.workload import Workload

#: More than any hand-written kernel; a file beyond it is refused before it is read into memory.
MAX_BYTES = 1024 * 1024

_SURFACES = tuple(dict.fromkeys(SUFFIXES.values()))


def read_kernel(
    path: Path, workload: Workload, *, surface: str | None = None, entry: str | None = None
) -> Kernel:
    """The kernel in ``path``, its bytes unchanged. Raises KlineageError naming the file and the way out."""
    return kernel_of(path.name, read_bytes(path), workload, surface=surface, entry=entry)


def kernel_of(
    name: str, source: bytes, workload: Workload, *, surface: str | None = None, entry: str | None = None
) -> Kernel:
    """The kernel in the bytes of a file called ``name``. Raises KlineageError naming what is missing."""
    chosen = surface_of(name, surface)
    if chosen not in workload.element:
        known = ", ".join(sorted(workload.element))
        raise KlineageError(
            f"{workload.name} declares no element type for {chosen} (it has {known}); add it to ELEMENT in its workload.py"
        )
    from klineage.surface.dispatch import entry_of, flags_of

    function = entry_of(chosen, name, source, workload, wanted=entry)
    return Kernel(chosen, name, function, source, flags=flags_of(chosen, source))


def loose_kernel(path: Path, surface: str | None = None) -> Kernel:
    """The kernel in ``path`` when there is no workload that says what to enter: the last function that can be.

    ``surface`` is its language where the file's name does not tell.

    Raises KlineageError for a file that is no text, or of no language that is walked.
    """
    from klineage.surface.dispatch import autotune_configs, entries, flags_of
    from klineage.surface.tree import parse

    source, language = read_bytes(path), surface_of(path.name, surface)
    unit = parse(language, path.name, source)
    kernels = "+".join(f.name for f in unit.functions if f.jit)
    entry = kernels if language == "cuda" else (entries(unit) or [""])[-1]
    kernel = Kernel(language, path.name, entry, source, flags=flags_of(language, source))
    configs = autotune_configs(kernel)
    return replace(kernel, config=configs[0]) if configs else kernel


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
    refuse_no_text(source, str(path))
    return source


def refuse_no_text(source: bytes, what: str) -> None:
    """Raises KlineageError for bytes that are empty, binary, or text of another kind; ``what`` names them."""
    if len(source) > MAX_BYTES:
        raise KlineageError(f"{what} has {len(source):,} bytes, more than the {MAX_BYTES:,} of any kernel")
    if not source.strip():
        raise KlineageError(f"{what} is empty; name a file that holds a kernel")
    if source.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise KlineageError(f"{what} is UTF-16; save it as UTF-8")
    if b"\0" in source:
        raise KlineageError(f"{what} is a binary file; name the kernel's source")


def surface_of(name: str, surface: str | None = None) -> Surface:
    """The language of a file by its name, unless it is said. Raises KlineageError for one that is not walked."""
    if surface is not None:
        for known in _SURFACES:
            if surface == known:
                return known
        raise KlineageError(f"unknown surface {surface!r}; this version walks {', '.join(_SURFACES)}")
    try:
        return SUFFIXES[Path(name).suffix.lower()]
    except KeyError:
        raise KlineageError(
            f"cannot tell the language of {Path(name).name}; say --surface {', '.join(_SURFACES)}"
        ) from None
