"""CUDA kernels on a real GPU: right ones pass and are timed, each wrong one is refused with its reason.

    PYTHONPATH=.:engine python benchmarks/gpu/cuda_surface.py --out DIR

Prints a table last, and writes every report and the table to DIR. One gate that breaks does not stop the others.
"""

from __future__ import annotations

import argparse
import os
import queue
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Policy, Report, gate, report_to_json
from klineage.kernel import Kernel
from klineage.platform import detect
from klineage.resources import shipped
from klineage.walk.reading import read_kernel
from klineage.workload import load

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "engine" / "cuda"
QUICK = Policy(seeds=(2, 2, 2), run_seconds=10.0, total_seconds=60.0, share_device=True)
SECONDS = 45.0  # no further gate begins after this
LINES = 3  # gates at a time; the device is timed on alone all the same

SCALE = """// klineage: launch scale grid=(cdiv(rows * columns, 128)) block=(128)
{head}
extern "C" __global__ void scale(const float *x, const float *bias, float *y, int rows, int columns, float alpha) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
  if (i < rows * columns) y[i] = alpha * x[i] + bias[i % columns];
}}
"""
HOLD = "// klineage: scratch held fp32 (rows)\n// klineage: launch fill grid=(1) block=(64)\n"
FILL = 'extern "C" __global__ void fill(float *held, int rows) {{ if (threadIdx.x < rows + {} ) held[threadIdx.x] = 1; }}'

#: name -> (body, head, reason of the correctness stage; "" when it must pass)
SMALL: dict[str, tuple[str, str, str]] = {
    "right": ("", "", ""),
    "right, inline PTX": ('asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(alpha) : "f"(1.0f), "f"(0.0f));', "", ""),
    "wrong value": ("if (columns == 13) alpha = 1.25f;", "", "mismatch"),
    "unwritten tail": ("if (i >= rows * columns - 3) return;", "", "unwritten"),
    "nothing": ("return;", "", "unwritten"),
    "past the end": ("if (i == 0) y[rows * columns + 5] = 1;", "", "out_of_bounds"),
    "before the start": ("if (i == 0) y[-3] = 1;", "", "out_of_bounds"),
    "changes its input": ("if (i == 0) const_cast<float *>(x)[1] = 0;", "", "input_changed"),
    "illegal address": ("if (i == 0) *(float *)(size_t)16 = 1;", "", "illegal_access"),
    "misaligned": ("if (i == 0) *(float4 *)(y + 1) = make_float4(1, 1, 1, 1);", "", "illegal_access"),
    "trap": ('if (i == 0) asm volatile("trap;");', "", "crashed"),
    "failed assert": ("assert(columns != 13);", "#include <assert.h>", "assert"),
    "race": (
        "__shared__ float t[128]; t[threadIdx.x] = i; if (threadIdx.x < 32) __nanosleep(clock() % 2000);"
        " y[i % (rows * columns)] = t[(threadIdx.x + 64) % 128] + clock() % 3; return;", "", "*"),
    "state between runs": ("if (kept++ > 0) alpha = 0;", "__device__ unsigned kept;", "*"),
    "scratch, right": ("", HOLD + FILL.format(0), ""),
    "scratch overflow": ("", HOLD + FILL.format(1), "out_of_bounds"),
}  # fmt: skip


@dataclass
class Row:
    """One line of the table."""

    name: str
    wanted: str
    found: str
    time: str
    seconds: float
    why: str

    @property
    def good(self) -> bool:
        refused = self.found not in ("pass", "no_gpu", "not run", "raised")
        return self.found == self.wanted or (self.wanted == "*" and refused)


def small(name: str) -> Kernel:
    body, head, _ = SMALL[name]
    text = SCALE.format(head=head.replace("{{", "{").replace("}}", "}"), body=body)
    entry = "fill+scale" if "scratch" in name else "scale"
    return Kernel("cuda", "kernel.cu", entry, text.encode())


def requests(platform: str) -> list[tuple[str, str, GateRequest]]:
    """(name, reason wanted, what is asked)."""
    rows, norm, gemm = load(TESTS / "workload.py"), load("add_rmsnorm"), load("gemm")
    expert = read_kernel(shipped("experts") / "add_rmsnorm" / "cuda" / "kernel.cu", norm)
    plain, tiled, split = (
        read_kernel(TESTS / "kernels" / f"{name}.cu", workload)
        for name, workload in (("rmsnorm_ptx", norm), ("gemm_tiled", gemm), ("gemm_split", gemm))
    )
    real = {
        "add_rmsnorm expert": GateRequest(expert, norm, platform, baseline=expert),
        "rmsnorm, plain": GateRequest(plain, norm, platform, baseline=expert),
        "gemm, tiled": GateRequest(tiled, gemm, platform),
        "gemm, split k": GateRequest(split, gemm, platform, baseline=tiled),
    }
    made = {name: GateRequest(small(name), rows, platform) for name in SMALL}
    wanted = {name: SMALL[name][2] or "pass" for name in SMALL}
    return [(name, wanted.get(name, "pass"), asked) for name, asked in (real | made).items()]


def row_of(name: str, wanted: str, report: Report, seconds: float) -> Row:
    decided = next((s for s in report.stages if s.stage != "profile" and s.verdict != "pass"), None)
    found = "pass" if decided is None else decided.reason
    profile = report.stage("profile")
    time_ = profile.summary if decided is None and profile is not None else ""
    return Row(name, wanted, found, time_, seconds, "" if decided is None else decided.summary)


def table(rows: list[Row]) -> str:
    lines = [f"{'kernel':<22}{'wanted':<16}{'found':<16}{'':<5}{'gate s':>7}  what it says"]
    for row in rows:
        mark = "ok" if row.good else "BAD"
        lines.append(
            f"{row.name:<22}{row.wanted:<16}{row.found:<16}{mark:<5}{row.seconds:>7.2f}  {row.time or row.why}"
        )
    good = sum(row.good for row in rows)
    return "\n".join([*lines, f"{good} of {len(rows)} as wanted"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="a folder for the reports and the table")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="klineage-cache-")
    machine = detect()
    platform = machine.gpu.platform if machine.gpu else "nvidia-sm90"
    asked = requests(platform)
    work: queue.SimpleQueue[tuple[str, str, GateRequest]] = queue.SimpleQueue()
    for item in asked:
        work.put(item)
    found: dict[str, Row] = {}
    end = time.monotonic() + SECONDS
    lines = [threading.Thread(target=follow, args=(work, found, end, out)) for _ in range(LINES)]
    for line in lines:
        line.start()
    for line in lines:
        line.join()
    rows = [found[name] for name, _, _ in asked]
    gpu = f"{machine.gpu.name}, driver {machine.gpu.driver}" if machine.gpu else "no GPU"
    text = f"{gpu}; nvcc {machine.nvcc.version if machine.nvcc else 'missing'}; {machine.packages}\n{table(rows)}\n"
    (out / "cuda_surface.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0 if all(row.good for row in rows) else 1


def follow(
    work: queue.SimpleQueue[tuple[str, str, GateRequest]], found: dict[str, Row], end: float, out: Path
) -> None:
    """One line of gates with workers of its own, until there is nothing left or no time."""
    executor = LocalExecutor()
    try:
        while True:
            try:
                name, wanted, request = work.get_nowait()
            except queue.Empty:
                return
            if time.monotonic() > end:
                found[name] = Row(name, wanted, "not run", "", 0.0, "no time left")
                continue
            row = found[name] = gated(name, wanted, request, executor, out)
            print(
                f"{row.seconds:6.2f} s  {name}: {row.found}{'' if row.good else ', wanted ' + wanted}",
                flush=True,
            )
    finally:
        executor.close()


def gated(name: str, wanted: str, request: GateRequest, executor: LocalExecutor, out: Path) -> Row:
    start = time.monotonic()
    try:
        report = gate(request, fresh=True, policy=QUICK, executor=executor)
    except Exception as error:  # the others are still worth their time
        traceback.print_exc()
        return Row(name, wanted, "raised", "", time.monotonic() - start, f"{type(error).__name__}: {error}")
    file = out / f"{name.replace(' ', '-').replace(',', '')}.json"
    file.write_text(report_to_json(report), encoding="utf-8")
    return row_of(name, wanted, report, time.monotonic() - start)


if __name__ == "__main__":
    raise SystemExit(main())
