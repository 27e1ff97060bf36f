"""Compile a CUDA kernel file into a cubin, once: the result is content-addressed in a cache folder."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from klineage.worker import cuda_elf, cuda_nvrtc, cuda_tools
from klineage.worker.builds import kept
from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.triton_cubin import histogram, wide_accesses

_SCHEMA = "2"
_DEFAULTS = ("--std=c++17",)
_ALLOWED_FLAG = re.compile(
    r"--?(use_fast_math|extra-device-vectorization|maxrregcount=\d+|(fmad|ftz|prec-div|prec-sqrt)=(true|false)|"
    r"std=c\+\+(14|17|20))|-D\w+(=[\w.+-]*)?"
)
_HARMLESS = re.compile(r"\.nv\.reservedSmem.*|__assertfail")
_ARCHITECTURE_FEATURES = (90, 100, 101, 103, 110, 120, 121)  # those whose full instruction set is "sm_90a"
_PROPERTIES = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def architecture(platform: str) -> str:
    """``sm_90a`` for "nvidia-sm90"."""
    number = int(re.sub(r"\D", "", platform.rpartition("sm")[2]) or 0)
    return f"sm_{number}a" if number in _ARCHITECTURE_FEATURES else f"sm_{number}"


def options(flags: tuple[str, ...], target: str) -> tuple[str, ...]:
    """The compiler's arguments, the same for nvcc and NVRTC. Raises KernelFault("flags") for others."""
    for flag in flags:
        if not _ALLOWED_FLAG.fullmatch(flag):
            raise KernelFault("flags", f"a CUDA kernel may not declare the compiler flag {flag}")
    own = [flag if flag.startswith(("--", "-D")) else f"-{flag}" for flag in flags]
    defaults = [] if any(flag.startswith("--std=") for flag in own) else _DEFAULTS
    return (f"--gpu-architecture={target}", *defaults, *own)


def build(source: bytes, filename: str, flags: tuple[str, ...], platform: str, cache: Path) -> dict[str, Any]:
    """Compile for a platform.

    Returns cubin (a path), sha256, bytes, log, compiler, command, cached, global_bytes, and kernels: name to
    registers, stack_bytes, spill_bytes, shared_bytes (static), instructions (SASS opcode to count, and "total").
    Raises Unsupported("no_cuda_compiler"), KernelFault("compile") with the first error, ("flags"), ("symbols").
    """
    arguments = options(flags, architecture(platform))
    compiler, tool = cuda_tools.compiler(), cuda_tools.disassembler()
    parts = (source, filename, arguments, compiler, tool is not None, _SCHEMA)
    cache = cache.absolute()  # compilers run elsewhere
    record, cubin = kept(
        cache / hashlib.sha256(repr(parts).encode()).hexdigest(),
        "kernel.cubin",
        cache,
        lambda scratch: _compile(compiler, source, filename, arguments, tool, scratch),
    )
    return {**record, "cubin": str(cubin)}


def _compile(
    compiler: cuda_tools.Compiler,
    source: bytes,
    filename: str,
    arguments: tuple[str, ...],
    tool: str | None,
    scratch: Path,
) -> dict[str, Any]:
    name = Path(filename).name
    cubin, said = (_nvcc if compiler.kind == "nvcc" else _nvrtc)(compiler, source, name, arguments, scratch)
    used, log = _resources(said), _without_resources(said)[:65536]
    if cubin is None:
        raise KernelFault("compile", _first_error(log, name), log=log)
    (scratch / "kernel.cubin").write_bytes(cubin)
    read = cuda_elf.read(cubin)
    forbidden = [symbol for symbol in read.undefined if not _HARMLESS.fullmatch(symbol)]
    if forbidden:
        shown = {"vprintf": "printf"}.get(forbidden[0], forbidden[0])
        raise KernelFault("symbols", f"calls {shown}(), which a kernel may not", symbol=forbidden[0])
    counts = _instructions(tool, scratch / "kernel.cubin", scratch) if tool else {}
    kernels = {
        kernel: {**used.get(kernel, {}), **counts.get(kernel, {"instructions": {"total": size // 16}})}
        for kernel, size in read.kernels.items()
    }
    return {
        "sha256": hashlib.sha256(cubin).hexdigest(),
        "bytes": len(cubin),
        "log": log,
        "compiler": compiler.version,
        "command": " ".join(arguments),
        "kernels": kernels,
        "global_bytes": read.global_bytes,
    }


def _nvcc(
    compiler: cuda_tools.Compiler, source: bytes, name: str, arguments: tuple[str, ...], scratch: Path
) -> tuple[bytes | None, str]:
    (scratch / name).write_bytes(source)
    command = [compiler.path, "-cubin", "-Xptxas", "-v", *arguments, "-x", "cu", name, "-o", "out.cubin"]
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(scratch)}
    done = subprocess.run(
        command, cwd=scratch, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    built = done.returncode == 0
    return (scratch / "out.cubin").read_bytes() if built else None, done.stdout + done.stderr


def _nvrtc(
    compiler: cuda_tools.Compiler, source: bytes, name: str, arguments: tuple[str, ...], scratch: Path
) -> tuple[bytes | None, str]:
    return cuda_nvrtc.compile_source(compiler, source, name, (*arguments, "--ptxas-options=-v"))


def _resources(log: str) -> dict[str, dict[str, int]]:
    """What ptxas -v says of every kernel; device functions that were not inlined count with their kernel."""
    found = {}
    for block in log.split("Compiling entry function '")[1:]:
        name = block.split("'", 1)[0]
        registers, shared = re.search(r"Used (\d+) registers", block), re.search(r"(\d+) bytes smem", block)
        frames = [tuple(map(int, groups)) for groups in _PROPERTIES.findall(block)]
        if registers is None:
            raise WorkerError("ptxas", f"ptxas reports no registers of {name}: {block[:200]}")
        found[name] = {
            "registers": int(registers[1]),
            "shared_bytes": int(shared[1]) if shared else 0,
            "stack_bytes": max((frame[0] for frame in frames), default=0),
            "spill_bytes": sum(frame[1] + frame[2] for frame in frames),
        }
    return found


def _without_resources(log: str) -> str:
    kept = [x for x in log.splitlines() if not x.startswith("ptxas info") and not _PROPERTIES.search(x)]
    return "\n".join(kept).strip()


def _instructions(tool: str, cubin: Path, scratch: Path) -> dict[str, dict[str, Any]]:
    """The SASS histogram of every kernel, and its wide accesses. A disassembler that fails is an error: it was there."""
    done = subprocess.run(
        [tool, "-sass", str(cubin)],
        cwd=scratch,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise WorkerError("cuobjdump", f"{tool} cannot read the cubin: {done.stderr.strip()[:200]}")
    blocks = done.stdout.split("Function : ")[1:]
    return {
        block.split("\n", 1)[0].strip(): {
            "instructions": histogram(block),
            "wide_accesses": wide_accesses(block),
        }
        for block in blocks
    }


def _first_error(log: str, name: str) -> str:
    for line in log.splitlines():
        found = re.match(r"(.*?)\((\d+)\): (?:catastrophic |fatal )?error:?\s*(.*)", line)
        if found:
            return f"{Path(found[1]).name}:{found[2]}: {found[3].strip()}"
        if "error" in line.lower() or line.startswith("ptxas fatal"):
            return line.strip()
    return (log.strip().splitlines() or [f"{name} does not compile"])[0]
