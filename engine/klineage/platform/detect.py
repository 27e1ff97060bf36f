"""What this machine has: CPU, GPU, compilers, packages. Asks programs and files; imports nothing heavy."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from klineage.platform.order import CPU_LEVELS

_FLAGS = {  # what each x86-64 level adds, by the names of /proc/cpuinfo
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
_PACKAGES = ("torch", "triton", "numpy")
_GPU_FIELDS = "name,compute_cap,memory.total,driver_version,uuid"


@dataclass(frozen=True)
class Tool:
    """A program and the version that it reports."""

    path: str
    version: str


@dataclass(frozen=True)
class Gpu:
    """One GPU: its name, platform ("nvidia-sm90"), memory in bytes, driver version, and its own number."""

    name: str
    platform: str
    memory_bytes: int
    driver: str
    uuid: str = ""


@dataclass(frozen=True)
class Machine:
    """This machine, as far as gates care. ``cpu_platform`` is like "cpu-x86-64-v3"; ``gpu`` is the first of ``gpus``."""

    system: str
    cpu: str
    cpu_platform: str
    cores: int
    memory_bytes: int
    gpu: Gpu | None
    gcc: Tool | None
    clang: Tool | None
    nvcc: Tool | None
    packages: dict[str, str | None]  # torch, triton, numpy: version, or None
    gpus: tuple[Gpu, ...] = ()


def machine_from(data: Any) -> Machine:
    """The inverse of ``dataclasses.asdict``, for a machine that is somewhere else. Raises ValueError."""
    try:
        fields = dict(data)
        gpus = tuple(Gpu(**gpu) for gpu in fields["gpus"])
        tools = {name: Tool(**fields[name]) if fields[name] else None for name in ("gcc", "clang", "nvcc")}
        return Machine(**{**fields, **tools, "gpus": gpus, "gpu": gpus[0] if gpus else None})
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ValueError(f"not a description of a machine: {error}") from error


_guard = threading.Lock()
_here: list[Machine] = []


def this_machine() -> Machine:
    """What ``detect`` finds, looked for once in this process; whoever asks meanwhile waits for it."""
    with _guard:
        if not _here:
            _here.append(detect())
        return _here[0]


def detect() -> Machine:
    """Look at this machine (some 50 ms: it runs nvidia-smi and the compilers with a version flag, all at once)."""
    model, flags = _cpu_info(Path("/proc/cpuinfo"))
    smi = _begun(["nvidia-smi", f"--query-gpu={_GPU_FIELDS}", "--format=csv,noheader,nounits"])
    tools = {name: _asked(name) for name in ("gcc", "clang", "nvcc")}
    gpus = _gpus(_said(smi) or "")
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        cpu=model or platform.processor() or platform.machine(),
        cpu_platform=cpu_platform(platform.machine(), flags),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=_memory(),
        gpu=gpus[0] if gpus else None,
        gcc=_tool(*tools["gcc"]),
        clang=_tool(*tools["clang"]),
        nvcc=_tool(*tools["nvcc"]),
        packages={name: _version(name) for name in _PACKAGES},
        gpus=gpus,
    )


def cpu_platform(machine: str, flags: set[str]) -> str:
    """ "cpu-x86-64-v3" for such a processor: the highest level of which it has every flag."""
    if machine in ("arm64", "aarch64"):
        return "cpu-aarch64"
    level = CPU_LEVELS[0]
    for name in CPU_LEVELS[1:]:
        if not _FLAGS[name] <= flags:
            break
        level = name
    return f"cpu-{level}"


def _cpu_info(path: Path) -> tuple[str, set[str]]:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return "", set()
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE)
    return (model[1].strip() if model else ""), set(flags[1].split()) if flags else set()


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def _begun(command: list[str]) -> subprocess.Popen[str] | None:
    """A program that has been started; None when it is missing."""
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
        )  # fmt: skip
    except OSError:
        return None


def _said(process: subprocess.Popen[str] | None) -> str | None:
    """What a program printed, or None when it is missing, fails or hangs."""
    if process is None:
        return None
    with process:
        try:
            text = process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return None
    return text if process.returncode == 0 else None


def _gpus(text: str) -> tuple[Gpu, ...]:
    found = [parse_gpu(line) for line in text.splitlines()]
    return tuple(gpu for gpu in found if gpu)


def parse_gpu(text: str) -> Gpu | None:
    """The first GPU in what ``nvidia-smi`` prints for the fields that ``detect`` asks for (the last may be missing)."""
    parts = [part.strip() for part in text.strip().splitlines()[0].split(",")] if text.strip() else []
    if len(parts) not in (4, 5) or not re.fullmatch(r"\d+\.\d", parts[1]):
        return None
    memory = int(parts[2]) << 20 if parts[2].isdigit() else 0
    return Gpu(parts[0], f"nvidia-sm{parts[1].replace('.', '')}", memory, parts[3], *parts[4:])


def _asked(name: str) -> tuple[str | None, subprocess.Popen[str] | None]:
    """Where a compiler is, and the question what version it has."""
    path = shutil.which(name)
    return path, _begun([path, "--version"]) if path else None


def _tool(path: str | None, process: subprocess.Popen[str] | None) -> Tool | None:
    text = _said(process)
    if path is None or text is None:
        return None
    found = re.search(r"release (\d+\.\d+)|(\d+\.\d+\.\d+)", text)
    return Tool(path, (found[1] or found[2]) if found else text.splitlines()[0] if text else "")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
