"""What this machine can gate, and how to get what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from klineage.executor import Died, Executor, current
from klineage.platform import Tool
from klineage.worker import cuda_tools
from klineage.worker.faults import Unsupported

TRITON_REMEDY = "pip install 'klineage-tui[triton]'"

_LAYERS = {
    "no_processes": "kernels cannot start processes",
    "files": "kernels read only Python, libraries and their own folder",
    "small_folder": "kernels write only to a small empty folder",
    "no_privileges": "kernels have no privileges",
    "no_network": "kernels have no network",
    "no_signals_or_sockets": "kernels cannot signal or connect",
    "memory": "memory is limited",
    "cpu_time": "processor time is limited",
    "file_size": "files are limited",
    "open_files": "open files are limited",
    "no_core_dump": "no core dumps",
    "no_new_privileges": "no new privileges",
    "parent_death": "workers end with the app",
}


@dataclass(frozen=True)
class Capability:
    """One thing that a gate can use. ``remedy`` says how to get it where it is missing."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def capabilities(executor: Executor | None = None) -> list[Capability]:
    """Compilers, packages, GPU, and the safety layers that a confined child really met, where the gates run."""
    workers = executor or current()
    try:
        machine = workers.machine()
    except Died as died:
        return [Capability("host", False, str(died), "until then, gate without --host")]
    rows = [] if workers.here else [_host(workers)]
    compiler = machine.gcc or machine.clang
    rows += [
        Capability(
            "C compiler",
            compiler is not None,
            f"{compiler.path} {compiler.version}" if compiler else "neither gcc nor clang",
            ""
            if compiler
            else "apt install gcc (or your system's way); C kernels cannot be gated without it",
        )
    ]
    rows.append(_cuda_compiler(machine.nvcc, workers.here))
    remedy = (
        TRITON_REMEDY
        if workers.here
        else "pip install torch triton there, or --host-python FILE, a Python that has them"
    )
    for name in ("torch", "triton"):
        version = machine.packages.get(name)
        rows.append(
            Capability(name, version is not None, version or "not installed", "" if version else remedy)
        )
    gpu = machine.gpu
    rows.append(
        Capability(
            "GPU",
            gpu is not None,
            f"{gpu.name}, {gpu.platform}"
            if gpu
            else "none: Triton kernels are checked in the interpreter, CUDA kernels only compiled",
            ""
            if gpu
            else "an NVIDIA GPU with its driver, to measure Triton kernels and judge CUDA ones; everything else works without",
        )
    )
    return rows + _safety(workers.submit("native", {"op": "layers"}))


def _cuda_compiler(nvcc: Tool | None, here: bool) -> Capability:
    """nvcc, or on this machine NVRTC, which does as well."""
    if nvcc is not None:
        return Capability("CUDA compiler", True, f"{nvcc.path} {nvcc.version}")
    missing = Capability("CUDA compiler", False, "neither nvcc nor NVRTC", cuda_tools.REMEDY)
    try:
        found = cuda_tools.compiler() if here else None
    except Unsupported:
        return missing
    return Capability("CUDA compiler", True, f"{found.path} {found.version}") if found else missing


def _host(workers: Executor) -> Capability:
    versions = workers.versions("native")
    return Capability("host", True, f"{workers.place}, Python {versions.get('python', 'unknown')}")


def _safety(answer: dict[str, Any]) -> list[Capability]:
    if answer["verdict"] != "pass":
        return [
            Capability("safety", False, answer["summary"], "run klineage doctor again; report it if it stays")
        ]
    held = answer["layers"]
    return [
        Capability(
            f"safety: {text}",
            bool(held.get(name)),
            "holds" if held.get(name) else "does not hold here",
            ""
            if held.get(name)
            else "gate only kernels that you would run yourself, or gate in a container on Linux",
        )
        for name, text in _LAYERS.items()
    ]
