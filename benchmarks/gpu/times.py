"""The profile on a real GPU: which timer, how steady, what was verified; counters and compute-sanitizer.

    PYTHONPATH=.:engine python benchmarks/gpu/times.py --out DIR [--seconds 80]

Prints a table last, and writes every report to DIR. One gate that breaks does not stop the others.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, gate, report_to_json
from klineage.kernel import Kernel
from klineage.platform import detect
from klineage.resources import shipped
from klineage.surface.dispatch import flags_of
from klineage.walk.reading import read_kernel
from klineage.workload import Workload, load, parse

SECONDS = 80.0  # no further gate begins after so many

_ROWS = b'''"""Scaled rows: y[rows, columns] = alpha * x"""
ELEMENT = {"cuda": "fp32", "triton": "fp32"}
SIZES = {"small": {"rows": 64, "columns": 64}, "ragged": {"rows": 33, "columns": 31}, "bench": {"rows": 256, "columns": 1024}}
OUTPUTS = ("y",)
def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "y": (element, (rows, columns))}
def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns)}
def reference(xp, x):
    return {"y": 2.0 * x}
def cost(itemsize, rows, columns):
    return {"bytes": 2 * itemsize * rows * columns, "operations": rows * columns}
'''

_SCALE = """// klineage: launch scale grid=(cdiv(rows * columns, 128)) block=(128)
extern "C" __global__ void scale(const float *x, float *y, int rows, int columns) {
  __shared__ float t[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  BODY
  if (i < rows * columns) y[i] = 2.0f * x[i];
}
"""


def cuda(body: str) -> Kernel:
    source = _SCALE.replace("BODY", body).encode()
    return Kernel("cuda", "kernel.cu", "scale", source, flags=flags_of("cuda", source))


def requests(platform: str) -> Iterator[tuple[str, str, GateRequest]]:
    """Name, what is expected, and the request."""
    rows: Workload = parse(_ROWS, name="rows", path=Path("rows/workload.py"))
    gemm = load("gemm")
    expert = read_kernel(shipped("experts") / "gemm" / "triton" / "kernel.py", gemm)
    plain = cuda("")
    yield "gemm against itself", "neutral by cuda-event", GateRequest(expert, gemm, platform, expert)
    yield (
        "short kernel against itself",
        "neutral by cupti",
        GateRequest(plain, rows, platform, cuda("/* the same */")),
    )
    yield (
        "short kernel, counters", "ncu, or why not",
        GateRequest(plain, rows, platform, counters=True, phase="screening"),
    )  # fmt: skip
    yield "clean, sanitized", "nothing found", GateRequest(plain, rows, platform, sanitize=True)
    reading = cuda("if (x[rows * columns + 200] == 1234.5f) i = 0;")  # nvcc keeps what could matter
    yield "reads past its input", "sanitizer (memcheck)", GateRequest(reading, rows, platform, sanitize=True)
    # Whoever comes first reads 0 or what is there then, and neither changes the answer.
    race = cuda(
        "t[threadIdx.x] = 0; __syncthreads(); t[threadIdx.x] = i; if (t[127 - threadIdx.x] < 0) i = 0;"
    )
    yield "race in shared memory", "sanitizer (racecheck)", GateRequest(race, rows, platform, sanitize=True)
    yield "triton, sanitized", "nothing found", GateRequest(expert, gemm, platform, sanitize=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="no further gate begins after these")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    gpu = detect().gpu
    executor, begin, lines = LocalExecutor(), time.perf_counter(), []
    for name, expected, request in requests(gpu.platform if gpu else "nvidia-sm90"):
        if time.perf_counter() - begin > arguments.seconds:
            lines.append(f"{name}: not run, out of time")
            continue
        start = time.perf_counter()
        try:
            report = gate(request, fresh=True, executor=executor)
            (out / f"{name.replace(' ', '-').replace(',', '')}.json").write_text(
                report_to_json(report), encoding="utf-8"
            )
            profile = report.stage("profile")
            m = profile.measurement if profile else None
            timer = f" [{m.timer}, {m.rounds} rounds]" if m else ""
            told = f"{report.verdict}: {report.why}{timer}"
            if expected != "neutral by cuda-event" and report.stage("correctness") and not m:
                told += f" | correctness: {report.stage('correctness').summary}"  # type: ignore[union-attr]
            seconds = " ".join(f"{s.stage} {s.seconds:.2f}" for s in report.stages)
            lines.append(f"{name} ({expected})\n    {told}\n    {seconds}")
        except Exception:
            lines.append(f"{name}\n    {traceback.format_exc().splitlines()[-1]}")
            traceback.print_exc()
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    executor.close()
    text = "\n".join(lines)
    (out / "times.txt").write_text(text + "\n", encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
