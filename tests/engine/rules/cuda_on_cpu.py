"""CUDA kernels run on the CPU by ``cuda_on_cpu.h``: that an edit keeps the results can be seen without a GPU."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from klineage.kernel import Kernel
from klineage.surface.cuda_launch import launch_job
from klineage.surface.tree import parse_kernel
from klineage.worker.cuda_plan import evaluate

HERE = Path(__file__).parent
_NUMBERS = {"int": ctypes.c_int, "float": ctypes.c_float}


def built(kernel: Kernel, folder: Path) -> ctypes.CDLL:
    """A library with a function ``launch_NAME(grid, block, arguments...)`` for every launched kernel."""
    unit = parse_kernel(kernel)
    lines = [f'#include "{HERE / "cuda_on_cpu.h"}"', '#include "kernel.cu"']
    for name in kernel.entry.split("+"):
        function = unit.function(name)
        assert function is not None
        listing = function.definition.child_by_field_name("declarator").child_by_field_name("parameters")
        parameters = unit.text(listing)[1:-1]
        names = ", ".join(p.split("*")[-1].split()[-1] for p in parameters.split(","))
        lines.append(
            f'extern "C" void launch_{name}(const unsigned *grid, const unsigned *block, {parameters}) '
            f"{{ launch(grid, block, [=] {{ {name}({names}); }}); }}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_bytes(kernel.source)
    (folder / "cuda_bf16.h").write_text("")
    (folder / "all.cpp").write_text("\n".join(lines) + "\n")
    command = [
        "g++",
        "-std=c++17",
        "-O1",
        "-w",
        "-ffp-contract=off",
        "-I",
        ".",
        "-fPIC",
        "-shared",
        "all.cpp",
        "-o",
        "all.so",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "all.so"))


def run(library: ctypes.CDLL, kernel: Kernel, name: str, dims: dict[str, int], *arguments: Any) -> None:
    """Launch one kernel as its comment says, with arrays and numbers."""
    job = launch_job(kernel)
    launch = next(found for found in job["launches"] if found["kernel"] == name)
    values = {n: v for n, v in job["constants"].items() if isinstance(v, int)} | dims
    grid, block = ([evaluate(tree, values) for tree in launch[key]] for key in ("grid", "block"))
    given: list[Any] = [
        a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else _NUMBERS[type(a).__name__](a)
        for a in arguments
    ]
    getattr(library, f"launch_{name}")((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), *given)
