"""Results that need not be found twice. Every file may be deleted at any time; a damaged one is a miss."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import klineage
from klineage.errors import KlineageError
from klineage.files import write_whole
from klineage.gate.record import report_from_json, report_to_json
from klineage.gate.request import GateRequest
from klineage.gate.verdict import Report, Verdict
from klineage.platform import Machine, this_machine


def folder() -> Path:
    """The cache of this user: ``$KLINEAGE_CACHE``, or where the system keeps such things."""
    chosen = os.environ.get("KLINEAGE_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("klineage"))


def package_versions(elsewhere: Machine | None = None) -> dict[str, str]:
    """Versions of the packages that can change a result, here or on another machine; "missing" for what is not there."""
    if elsewhere is None:
        return _versions_here()
    there = {name: version or "missing" for name, version in elsewhere.packages.items()}
    return {"klineage": klineage.__version__, **there}


@functools.lru_cache(maxsize=1)
def _versions_here() -> dict[str, str]:
    from importlib import metadata

    found = {"klineage": klineage.__version__}
    for name in ("numpy", "torch", "triton"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def compiler(surface: str) -> str:
    """Which compiler file would be used, without running it."""
    c_compilers = (os.environ["CC"],) if os.environ.get("CC") else ("gcc", "clang", "cc")
    wanted = os.environ.get("KLINEAGE_CUDA_COMPILER", "nvcc")
    for name in c_compilers if surface == "c" else (wanted,):
        path = shutil.which(name)
        if path:
            real = Path(path).resolve()
            state = real.stat()
            return f"{real} {state.st_size} {state.st_mtime_ns}"
    return "missing"


def _cpu() -> str:
    machine = this_machine()
    return f"{machine.cpu} {machine.cpu_platform} {machine.gpu}"


def key(request: GateRequest, policy: str, elsewhere: Machine | None = None) -> str:
    """64 hex digits over everything that a result depends on. ``elsewhere``: the machine, when it is not this one."""
    surface = request.kernel.surface
    built = repr((elsewhere.gcc, elsewhere.clang, elsewhere.nvcc)) if elsewhere else compiler(surface)
    tools = package_versions(elsewhere) | ({} if surface == "triton" else {"compiler": built})
    parts = (
        request.kernel.hash,
        request.baseline.hash if request.baseline else "",
        request.workload.hash,
        request.workload.name,
        request.platform,
        policy,
        request.seeds,
        request.phase,
        request.counters,
        request.sanitize,
        sorted(tools.items()),
        repr((elsewhere.cpu, elsewhere.cpu_platform, elsewhere.gpus)) if elsewhere else _cpu(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load_report(name: str) -> Report | None:
    """A stored report, or None."""
    data = _read("reports", name)
    if data is None:
        return None
    try:
        report = report_from_json(data)
    except KlineageError:
        return None
    return report if _lasting(report) else None


def _lasting(report: Report) -> bool:
    """Whether another run would say the same. A stale ratio is read off clocks, which may have been disturbed."""
    lasting = (Verdict.PASS, Verdict.FAIL, Verdict.SKIPPED)
    return all(s.verdict in lasting and s.reason not in ("cancelled", "stale") for s in report.stages)


def store_report(name: str, report: Report, source: bytes) -> None:
    """Keep a report that another run would repeat: decided, and not by noise, time or a missing tool.

    source: the kernel's text, of which something is known from now on.
    """
    if _lasting(report):
        _write("reports", name, report_to_json(report).encode())
        _write("sources", hashlib.sha256(source).hexdigest(), b"true")


def knows(source: bytes) -> bool:
    """Whether some report of a kernel with this text may be kept, on whatever workload and platform."""
    return _path("sources", hashlib.sha256(source).hexdigest()).exists()


def load_counts(name: str) -> dict[str, int] | None:
    """Stored counts of a kernel, or None."""
    data = _read("counts", name)
    try:
        found = json.loads(data) if data is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(v, int) for v in found.values()):
        return None
    return found


def store_counts(name: str, counts: dict[str, int]) -> None:
    _write("counts", name, json.dumps(counts, sort_keys=True).encode())


def counts_key(kernel: str, request: GateRequest, elsewhere: Machine | None = None) -> str:
    """Where the counts of a kernel (by hash) for the request's workload and platform are kept."""
    parts = (2, kernel, request.workload.hash, request.platform, sorted(package_versions(elsewhere).items()))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load_error(name: str) -> float | None:
    """The RMS error of a kernel that passed, as part of the tolerance, or None."""
    data = _read("errors", name)
    try:
        found = json.loads(data) if data is not None else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, float) else None


def store_error(name: str, error: float) -> None:
    _write("errors", name, json.dumps(error).encode())


def load_oracle(name: str) -> dict[str, object] | None:
    """What the self-test of a workload found, or None."""
    data = _read("oracles", name)
    try:
        found = json.loads(data) if data is not None else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def store_oracle(name: str, found: dict[str, object]) -> None:
    _write("oracles", name, json.dumps(found, sort_keys=True).encode())


def load_outcome(name: str) -> dict[str, Any] | None:
    """What was found out about a forward edit, or None."""
    data = _read("forward", name)
    try:
        found = json.loads(data) if data is not None else None
    except (ValueError, RecursionError):
        return None
    wanted = {"holds", "why", "fidelity", "confirmed"}
    sound = isinstance(found, dict) and set(found) == wanted and isinstance(found["fidelity"], list)
    return found if sound else None


def store_outcome(name: str, found: Mapping[str, Any]) -> None:
    _write("forward", name, json.dumps(found, sort_keys=True).encode())


def _path(kind: str, name: str) -> Path:
    return folder() / kind / name[:2] / f"{name}.json"


def _read(kind: str, name: str) -> bytes | None:
    try:
        return _path(kind, name).read_bytes()
    except OSError:
        return None


def _write(kind: str, name: str, data: bytes) -> None:
    """Write a file whole or not at all. A cache that cannot be written only costs time."""
    path = _path(kind, name)
    with contextlib.suppress(OSError):
        write_whole(path, data)
