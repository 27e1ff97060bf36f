"""What a cubin uses and consists of, by NVIDIA's own tools. Results are kept beside Triton's cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from klineage.worker.faults import WorkerError

_SCHEMA = "2"
_USAGE = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(?:\.([A-Z0-9_.]+))?")


def inspect_cubin(cubin: bytes, ptx: str, fused: bool) -> dict[str, Any]:
    """Registers, spills, stack and the SASS histogram of a cubin that has one kernel.

    Keys: registers, spill_bytes (stores plus loads), stack_bytes, instructions ({"HGMMA": 16, "total": 900}), and
    wide_accesses (of global memory, 8 bytes and more a thread).
    ``ptx`` is what it was assembled from, ``fused`` whether multiply-adds were contracted.
    Raises WorkerError when the tools are missing or answer what cannot be read.
    """
    kept = _cache_folder() / f"{hashlib.sha256(cubin + ptx.encode()).hexdigest()}-{_SCHEMA}.json"
    try:
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    except (OSError, ValueError):
        found = _inspect(cubin, ptx, fused)
    _keep(kept, found)
    return found


def _cache_folder() -> Path:
    import triton

    return Path(triton.knobs.cache.dir) / "klineage-cubin"


def _keep(path: Path, found: dict[str, Any]) -> None:
    """Write atomically. A folder that cannot be written only costs the next caller its time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(found))
        scratch.replace(path)
    except OSError:
        return


def _tool(name: str) -> str:
    import triton.backends.nvidia as backend

    path = Path(str(backend.__path__[0])) / "bin" / name
    if not path.is_file():
        raise WorkerError("missing_tool", f"this Triton has no {name}; install triton again")
    return str(path)


def _assembler(architecture: str) -> str:
    """The ptxas that this Triton uses for ``sm_90a``; it brings several."""
    from triton.backends.nvidia import compiler

    return str(compiler.get_ptxas(int(re.sub(r"\D", "", architecture))).path)


def _assembler_flags() -> list[str]:
    """The register allocator's flags that this Triton gives ptxas: they decide what is spilled."""
    from triton.backends.nvidia import compiler

    return re.findall(r"['\"](--regAllocOptLevel=\d+)['\"]", Path(compiler.__file__).read_text())


def _inspect(cubin: bytes, ptx: str, fused: bool) -> dict[str, Any]:
    arch = re.search(r"^\.target\s+(sm_\w+)", ptx, re.MULTILINE)
    if arch is None:
        raise WorkerError("ptx", "the PTX names no target")
    flags = [*_assembler_flags(), *([] if fused else ["--fmad=false"])]
    with tempfile.TemporaryDirectory(prefix="klineage-") as folder:
        binary, text = Path(folder) / "kernel.cubin", Path(folder) / "kernel.ptx"
        binary.write_bytes(cubin)
        text.write_text(ptx)
        commands = (
            [_tool("cuobjdump"), "-res-usage", str(binary)],
            # cuobjdump -sass would have it look for branches too, which takes half as long again.
            [_tool("nvdisasm"), "-ndf", "-c", str(binary)],
            [
                _assembler(arch[1]),
                "-v",
                *flags,
                f"--gpu-name={arch[1]}",
                str(text),
                "-o",
                str(Path(folder) / "again"),
            ],
        )
        jobs = [
            subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for c in commands
        ]
        usage, sass, verbose = (job.communicate()[0] for job in jobs)
    return {
        **_resources(usage),
        "spill_bytes": _spills(verbose),
        "instructions": histogram(sass),
        "wide_accesses": wide_accesses(sass),
    }


def _resources(usage: str) -> dict[str, int]:
    match = _USAGE.search(usage)
    if match is None:
        raise WorkerError("cuobjdump", f"cuobjdump reports no resources: {usage.strip()[:200]}")
    return {"registers": int(match[2]), "stack_bytes": int(match[3])}


def _spills(verbose: str) -> int:
    found = _SPILL.findall(verbose)
    if not found:
        raise WorkerError("ptxas", f"ptxas reports no spills: {verbose.strip()[:200]}")
    return sum(int(stores) + int(loads) for _, stores, loads in found)


def histogram(sass: str) -> dict[str, int]:
    """Opcode families of a SASS listing and how often each stands there, most frequent first; NOP aside."""
    counts: dict[str, int] = {}
    for line in sass.splitlines():
        match = _INSTRUCTION.match(line)
        if match and match[1] != "NOP":
            counts[match[1]] = counts.get(match[1], 0) + 1
    ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return {**ordered, "total": sum(counts.values())}


def wide_accesses(sass: str) -> int:
    """Loads and stores of global memory that move 8 bytes and more a thread, as they stand in a SASS listing."""
    found = (_INSTRUCTION.match(line) for line in sass.splitlines())
    kinds = [(match[1], (match[2] or "").split(".")) for match in found if match]
    return sum(
        name in ("LDG", "STG", "LD", "ST") and bool({"64", "128", "256"} & set(parts))
        for name, parts in kinds
    )
