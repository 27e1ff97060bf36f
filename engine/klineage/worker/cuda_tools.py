"""Which CUDA compiler this machine has: nvcc, or NVRTC as a library; and NVIDIA's disassembler."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from klineage.worker.faults import Unsupported

REMEDY = "install the CUDA toolkit (nvcc), or: pip install nvidia-cuda-nvrtc nvidia-cuda-runtime"


@dataclass(frozen=True)
class Compiler:
    """``kind`` is "nvcc" or "nvrtc"; ``path`` the program or the library."""

    kind: str
    path: str
    version: str
    include: tuple[str, ...] = ()  # where NVRTC finds CUDA's headers


def toolkits() -> list[Path]:
    """Where CUDA toolkits may lie: $CUDA_HOME, $CUDA_PATH, the usual place, beside nvcc."""
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return [*named, Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]


@functools.lru_cache(maxsize=1)
def compiler() -> Compiler:
    """nvcc if it is there, else NVRTC; ``KLINEAGE_CUDA_COMPILER`` (nvcc or nvrtc) insists on one.

    Raises Unsupported("no_cuda_compiler") with the way out.
    """
    wanted = os.environ.get("KLINEAGE_CUDA_COMPILER", "")
    found = (_nvcc() if wanted != "nvrtc" else None) or (_nvrtc() if wanted != "nvcc" else None)
    if found is None:
        missing = f"{wanted} was not found" if wanted else "neither nvcc nor NVRTC was found"
        raise Unsupported("no_cuda_compiler", f"{missing}, so CUDA kernels cannot be compiled here; {REMEDY}")
    return found


def _nvcc() -> Compiler | None:
    candidates = [shutil.which("nvcc"), *(shutil.which(str(root / "bin" / "nvcc")) for root in toolkits())]
    for path in filter(None, candidates):
        text = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=30, check=False
        ).stdout
        release = re.search(r"V(\d[\d.]+)", text)
        if release:
            return Compiler("nvcc", path, f"nvcc {release[1]}")
    return None


def _nvrtc() -> Compiler | None:
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue  # another one may load; that none did is said by the caller
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return Compiler("nvrtc", path, f"nvrtc {major.value}.{minor.value}", _headers(Path(path)))
    return None


def _libraries() -> list[str]:
    """NVRTC as the system's loader knows it, in toolkits, and in Python packages."""
    names = [f"libnvrtc.so.{major}" for major in (13, 12)]
    folders = [root / "lib64" for root in toolkits()]
    for entry in map(Path, filter(None, sys.path)):
        folders += [entry / "nvidia/cu13/lib", entry / "nvidia/cuda_nvrtc/lib", entry / "torch/lib"]
    files = [str(folder / name) for folder in folders for name in names if (folder / name).is_file()]
    return [*files, *names]


def _headers(library: Path) -> tuple[str, ...]:
    """Folders with cuda_bf16.h and with CUDA's C++ library, as far as they are there."""
    roots = [
        library.parent.parent / "include",
        library.parents[2] / "cuda_runtime/include" if library.is_absolute() else Path(),
    ]
    roots += [root / "include" for root in toolkits()]
    for entry in map(Path, filter(None, sys.path)):
        roots += [
            entry / "nvidia/cu13/include",
            entry / "nvidia/cuda_runtime/include",
            entry / "triton/backends/nvidia/include",
        ]
    found = next((root for root in roots if (root / "cuda_bf16.h").is_file()), None)
    return (str(found), *([str(found / "cccl")] if (found / "cccl").is_dir() else [])) if found else ()


def folders() -> tuple[str, ...]:
    """What a child that compiles must be able to read."""
    found = compiler()
    own = Path(found.path).resolve().parent
    files = [own if found.kind == "nvrtc" else own.parent, *map(Path, found.include)]
    return tuple(str(folder) for folder in files if folder.is_absolute())


@functools.lru_cache(maxsize=1)
def disassembler() -> str | None:
    """cuobjdump, from PATH, a toolkit, or the one that Triton brings. None when there is none."""
    candidates = [
        shutil.which("cuobjdump"),
        *(shutil.which(str(root / "bin" / "cuobjdump")) for root in toolkits()),
    ]
    for entry in filter(None, sys.path):
        candidates.append(shutil.which(str(Path(entry) / "triton/backends/nvidia/bin/cuobjdump")))
    return next(filter(None, candidates), None)
