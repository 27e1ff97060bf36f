"""A kernel: its exact bytes, where to enter it, and the configuration it is pinned to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, get_args

Surface = Literal["triton", "c", "cuda"]
SURFACES: tuple[Surface, ...] = get_args(Surface)
SUFFIXES: dict[str, Surface] = {".py": "triton", ".c": "c", ".cu": "cuda", ".cuh": "cuda"}


@dataclass(frozen=True, order=True)
class Feature:
    """One optimization mechanism at one stable place, e.g. ``kernel.py::gemm_kernel/for[k]`` / ``pipeline``.

    locus: ``<file>::<function>[/<construct>[<name>]]...``; stable under edits elsewhere in the file.
    name:  a word of the action vocabulary (``pipeline``, ``l2_raster``, ``simd`` ...).
    """

    locus: str
    name: str

    def __str__(self) -> str:
        return f"{self.locus} / {self.name}"

    @classmethod
    def parse(cls, text: str) -> Feature:
        """The inverse of ``str``. Raises ValueError when there is no `` / `` separator."""
        locus, separator, name = text.rpartition(" / ")
        if not separator:
            raise ValueError(f"not a feature (expected 'locus / name'): {text!r}")
        return cls(locus, name)


@dataclass(frozen=True)
class Kernel:
    """What a gate judges. Identity is the content hash, so editing a byte makes another kernel.

    config pins one autotune configuration (meta-parameters, num_warps, num_stages); empty when
    the kernel has none to choose from. ``flags`` lists extra compiler flags of C and CUDA, declared,
    because they are part of what is measured. ``entry`` of a CUDA kernel names the ``__global__``
    functions that are launched, ``a+b`` for several.
    """

    surface: Surface
    filename: str
    entry: str
    source: bytes = field(repr=False)
    config: tuple[tuple[str, int], ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """64 hex digits over surface, file name, entry, configuration, flags and source bytes."""
        digest = hashlib.sha256()
        for part in (self.surface, self.filename, self.entry, repr(self.config), repr(self.flags)):
            digest.update(part.encode())
            digest.update(b"\0")
        digest.update(self.source)
        return digest.hexdigest()

    @property
    def text(self) -> str:
        """The source for display: undecodable bytes become U+FFFD, line endings stay as they are."""
        return self.source.decode("utf-8", errors="replace")
