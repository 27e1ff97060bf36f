"""A GPU kernel once under NVIDIA's tools: compute-sanitizer for faults, ncu for counters.

Both follow a program of its own (gpu_program.py), which loads the kernel and runs it once.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import site
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from klineage.worker import gpu_program, landlock, limits
from klineage.worker.check import confinement
from klineage.worker.faults import KernelFault, Unsupported
from klineage.worker.jobs import Context, Result, single
from klineage.worker.process import Channel

# Buffers may lie side by side: only what is between them shows a read beyond one.
TOOLS = {"memcheck": ["--padding", "4096"], "racecheck": []}
METRICS = {
    "gpu__time_duration.sum": "ncu_ns",
    "dram__bytes_read.sum": "dram_bytes_read",
    "dram__bytes_write.sum": "dram_bytes_written",
    "smsp__inst_executed.sum": "warp_instructions",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_percent",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_percent",
}
_FOUND = 86
_KEPT = 16000
# What "localhost" is, and whether the driver keeps its counters to the administrator.
_HOSTS = ("/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/protocols", "/etc/services")
_PARAMETERS = Path("/proc/driver/nvidia/params")
_PROGRAM = "from klineage.worker.gpu_program import run; run({path!r})"


def _under(
    request: dict[str, Any],
    channel: Channel,
    commands: list[tuple[str, list[str]]],
    counters: bool = False,
) -> list[tuple[str, Any]]:
    """Run the program under each command, in the walls that the tools leave standing.

    A tool and its program speak through sockets, of this process's own network, which has nothing else in it; both want
    a home and a place for temporary files. The program sees no others once the device is open. counters: the tool reads the GPU's.
    """
    walls = confinement(request, "gpu")
    walls = replace(walls, sockets=True, files=False, counters=counters, file_bytes=walls.folder_bytes)
    held = limits.apply(walls, "tools")
    held["files"] = held["no_new_privileges"] and landlock.version() > 0  # else the program ends
    channel.send(progress={"detail": "under NVIDIA's tools"})
    writes = [str(Path.cwd()), *walls.writes, *landlock.written(processes=True)]
    seen = {"reads": [*walls.reads, *_HOSTS], "writes": writes, "closed": held["files"]}
    Path("request.json").write_text(json.dumps({**request, "files": seen}), encoding="utf-8")
    program = [sys.executable, "-c", _PROGRAM.format(path=str(Path.cwd() / "request.json"))]
    environment = _environment(gpu_program.package())
    done: list[tuple[str, Any]] = [("layers", held)]
    for name, command in commands:
        try:
            found = subprocess.run(
                [*command, *program], env=environment, capture_output=True, text=True, errors="replace",
                timeout=request["limits"]["run_seconds"], check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Unsupported("slow", f"it takes too long under {name}") from None
        done.append((name, found))
    return done


def _environment(packages: Path) -> dict[str, str]:
    """What a tool and the program under it are told. What they would keep at home goes to this process's own folder."""
    home = os.environ.get("HOME", "")
    told = {
        **os.environ, "HOME": str(Path.cwd()), "PYTHONPATH": str(packages), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "LC_ALL": "C",
    }  # fmt: skip
    told.setdefault("TRITON_HOME", home)  # where what was compiled already is
    told.setdefault("PYTHONUSERBASE", site.getuserbase())
    return told


def sanitize_gpu(request: dict[str, Any], context: Context) -> Result:
    """Run the kernel once under compute-sanitizer's memcheck and racecheck. Fails with "sanitizer"."""

    def body(channel: Channel) -> None:
        tool = _found("compute-sanitizer")
        start = [tool, "--error-exitcode", str(_FOUND), "--target-processes", "all", "--print-limit", "10"]
        held, *done = _under(
            request, channel, [(name, [*start, "--tool", name, *more]) for name, more in TOOLS.items()]
        )
        for name, found in done:
            report = found.stdout + found.stderr
            if found.returncode == _FOUND or _ERROR.search(report):
                raise finding(name, report, request["size"])
            if found.returncode or "SUMMARY: 0 " not in report:
                text = f"{name} does not run here{_because(report)}"
                raise Unsupported("no_sanitizer", text, log=report[-_KEPT:])
        channel.send(result={"verdict": "pass", "reason": "ok", "summary": "", "layers": held[1]})

    return single(context, body, request["limits"]["total_seconds"], "under compute-sanitizer")


_ERROR = re.compile(
    r"^=+ (Invalid __\w+__ \w+ of size \d+ bytes|Error: Race reported.*|Misaligned .*)$", re.M
)


def finding(tool: str, report: str, size: str) -> KernelFault:
    """What compute-sanitizer reports first, with the place in the source where it is known."""
    first = _ERROR.search(report)
    what = first[1].strip() if first else "an error"
    place = re.search(r"^=+ +at .*? in (\S+?):(\d+)", report, re.M) or re.search(
        r"(\S+\.(?:cu|py)):(\d+)", report
    )
    where = f"{Path(place[1]).name}:{place[2]}: " if place else ""
    kernel = re.search(r"^=+ +at (?:0x\w+ in )?([\w:]+)", report, re.M)
    inside = f" in {kernel[1]}" if kernel else ""
    return KernelFault("sanitizer", f"{where}{what}{inside} ({tool}, size {size})", log=report[:_KEPT])


def _found(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if path is None:
        raise Unsupported("no_tools", f"{name} is not installed; it comes with the CUDA toolkit")
    return path


def count_gpu(request: dict[str, Any], context: Context) -> Result:
    """Counters of ncu for the kernels of one run. Unsupported where the driver does not let it read them."""

    def body(channel: Channel) -> None:
        command = [_found("ncu"), "--csv", "--clock-control", "none", "--metrics", ",".join(METRICS)]
        if request["kernel"].get("names"):
            command += ["--kernel-name", "regex:^(" + "|".join(request["kernel"]["names"]) + ")$"]
        held, (_, found) = _under(request, channel, [("ncu", command)], counters=_guarded())
        if "ERR_NVGPUCTRPERM" in found.stdout + found.stderr:
            raise Unsupported("no_counters", "the driver lets only an administrator read the GPU's counters")
        counts = counters(found.stdout)
        if not counts:
            report = found.stdout + found.stderr
            raise Unsupported("no_counters", f"ncu counted nothing{_because(report)}", log=report[-_KEPT:])
        channel.send(
            result={"verdict": "pass", "reason": "ok", "summary": "", "counts": counts, "layers": held[1]}
        )

    return single(context, body, request["limits"]["total_seconds"], "under ncu")


def _guarded() -> bool:
    """Whether the driver keeps its counters to the administrator, as far as it says."""
    try:
        return "RmProfilingAdminOnly: 0" not in _PARAMETERS.read_text(encoding="ascii")
    except OSError:
        return True


def _because(report: str) -> str:
    """What a tool, or the program under it, said that tells most; begins with a colon."""
    lines = [line.strip("= ") for line in report.splitlines() if line.strip("= ")]
    told = [line for line in lines if re.match(r"(ERROR|Error|\w*(Error|Exception)\b)", line)]
    return f": {(told or lines)[-1][:200]}" if lines else ""


def counters(text: str) -> dict[str, float]:
    """ncu's CSV to sums over the launches, or for percentages to the largest, by our names."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return {}
    told: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[first:]))):
        name = METRICS.get(row.get("Metric Name") or "")
        try:
            value = float((row.get("Metric Value") or "").replace(",", ""))
        except ValueError:
            continue
        if name and "percent" in name:
            told[name] = max(told.get(name, 0.0), value)
        elif name:
            told[name] = told.get(name, 0.0) + value * _SCALES.get(row.get("Metric Unit") or "", 1.0)
    return told


_SCALES = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6,
}  # fmt: skip
