"""How fast the experts in C are: each against torch on one thread, on the same buffers, call beside call.

    python benchmarks/experts_c.py [--only gemm,topk] [--rounds 100] [--compile] [--json FILE]

A round calls every contestant once, and the next round in the other order, so that what the machine does meanwhile
hits all of them. Times are what the thread used. The ratio is the median over the rounds of reference / expert: above 1 the
expert is faster; beside it stands the ratio of the fastest calls. "Floor" is the larger of two times, the best of the same
rounds: a copy, warm, of as many bytes as the workload must move, and its operations at the rate of a loop of multiply-adds.
Needs torch. numpy's product runs on OpenBLAS, where that is what numpy was built with.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from klineage.kernel import Kernel
from klineage.platform import detect
from klineage.resources import shipped
from klineage.surface.c_static import signature
from klineage.surface.dispatch import flags_of
from klineage.worker import buffers, c_build, c_native, compare
from klineage.worker.problem import Problem, load

Call = Callable[[], Any]
Tensors = dict[str, Any]

_WARM = ("copy", "peak")  # bounds, so at their best: called three times before they are timed
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

_CEILINGS = b"""
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif
#include <stdint.h>
typedef float vec __attribute__((vector_size(BYTES)));
/* In four streams, which is faster than one; memcpy would pass the caches by for large copies, which the experts do not. */
void copy(const float *from, float *to, int64_t count)
{
    int64_t part = count / 4 / 1024 * 1024;
    for (int64_t i = 0; i < part; i += BYTES / 4)
#pragma GCC unroll 4
        for (int64_t stream = 0; stream < 4; ++stream)
            *(vec *)(to + stream * part + i) = *(const vec *)(from + stream * part + i);
    for (int64_t i = 4 * part; i + BYTES / 4 <= count; i += BYTES / 4)
        *(vec *)(to + i) = *(const vec *)(from + i);
}
/* Twelve independent sums of 4096 multiply-adds each: out receives lanes, so that nothing is left out. */
void peak(float *out, float factor)
{
    vec sums[12] = {0}, a = factor - (vec){0};
    for (int64_t i = 0; i < 4096; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < 12; ++j)
            sums[j] = sums[j] * a + a;
    for (int j = 0; j < 12; ++j)
        *(vec *)(out + j * (BYTES / 4)) = sums[j];
}
"""


@dataclass(frozen=True)
class Row:
    """One reference beside one expert. Times in milliseconds; ratios are reference / expert."""

    workload: str
    size: str
    dims: dict[str, int]
    reference: str
    expert_ms: float
    expert_least_ms: float
    reference_ms: float
    reference_least_ms: float
    ratio: float
    ratio_of_least: float
    copy_ms: float
    operations_ms: float
    rounds: int

    @property
    def floor_ms(self) -> float:
        return max(self.copy_ms, self.operations_ms)


def references(workload: str, t: Tensors, dims: dict[str, int], scalars: dict[str, float]) -> dict[str, Call]:
    """What the expert is measured against, by name. Outputs go to buffers of their own where torch allows it."""
    import torch
    import torch.nn.functional as functional

    outputs = {name: torch.empty_like(tensor) for name, tensor in t.items()}
    if workload == "gemm":
        arrays = {name: t[name].numpy() for name in ("x", "weight")}
        return {
            "torch.mm": lambda: torch.mm(t["x"], t["weight"].T, out=outputs["y"]),
            "numpy matmul": lambda: np.matmul(arrays["x"], arrays["weight"].T, out=outputs["y"].numpy()),
        }
    if workload == "conv2d":
        taps = t["weight"].view(dims["kernel"], dims["kernel"], dims["channels"], dims["filters"])
        filters = taps.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        images = t["x"].permute(0, 3, 1, 2)
        return {"conv2d": lambda: functional.conv2d(images, filters, padding=dims["kernel"] // 2)}
    if workload == "softmax":
        return {"softmax": lambda: torch.softmax(t["x"], -1, out=outputs["y"])}
    if workload == "layernorm":
        shape = (dims["hidden"],)
        return {
            "layer_norm": lambda: functional.layer_norm(t["x"], shape, t["weight"], t["bias"], scalars["eps"])
        }
    if workload == "add_rmsnorm":
        return {"add, rms_norm": lambda: _add_rmsnorm(t["x"], t["residual"], t["weight"], scalars["eps"])}
    found = (outputs["values"], outputs["indices"])
    return {"topk": lambda: torch.topk(t["x"], dims["k"], sorted=False, out=found)}


def _add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float) -> Any:
    import torch

    total = x + residual
    return torch.nn.functional.rms_norm(total, weight.shape, weight, eps), total


def compiled_references(workload: str, t: Tensors, scalars: dict[str, float]) -> dict[str, Call]:
    """The same through torch.compile, for what it fuses."""
    import torch

    if workload == "add_rmsnorm":
        fused = torch.compile(_add_rmsnorm)
        return {"torch.compile": lambda: fused(t["x"], t["residual"], t["weight"], scalars["eps"])}
    if workload == "softmax":
        fused = torch.compile(lambda x: torch.softmax(x, -1))
        return {"torch.compile": lambda: fused(t["x"])}
    if workload == "layernorm":
        fused = torch.compile(
            lambda x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b, scalars["eps"])
        )
        return {"torch.compile": lambda: fused(t["x"], t["weight"], t["bias"])}
    return {}


def expert_call(path: Path, problem: Problem, dims: dict[str, int], cache: Path) -> tuple[Call, Tensors]:
    """The expert, built as a gate builds it, on page-aligned buffers that torch sees too. It is checked once."""
    import torch

    source, workload = path.read_bytes(), path.parents[1].name
    built = c_build.build(source, path.name, flags_of("c", source), cache)
    parameters = list(signature(Kernel("c", path.name, workload, source)))
    function = c_native.Function(built["library"], workload, c_native.bind(parameters, problem, dims))
    slots, total = buffers.layout(problem.tensors(dims))
    region = np.frombuffer(_pages(total), np.uint8)
    inputs = problem.inputs(0, dims)
    buffers.fill(region, slots, inputs)
    arguments = function.arguments(region, slots, dims, problem.scalars)
    function(*arguments)
    arrays = {slot.name: buffers.stored(region, slot) for slot in slots}
    _check(problem, dims, inputs, arrays)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return lambda: function.pointer(*arguments), tensors


def _pages(total: int) -> Any:
    import mmap

    return mmap.mmap(-1, total)


def _check(problem: Problem, dims: dict[str, int], inputs: Tensors, arrays: Tensors) -> None:
    expected = problem.reference(inputs, dims)
    outputs = {name: arrays[name] for name in problem.outputs}
    if problem.compares:
        complaint = problem.complaint(outputs, expected, inputs, dims)
    else:
        wrong = [
            n
            for n, a in outputs.items()
            if not compare.compare(a, expected[n], "fp32", problem.rtol("fp32", dims)).ok
        ]
        complaint = f"{', '.join(wrong)} outside the tolerance" if wrong else None
    if complaint:
        sys.exit(f"{problem.path}: {complaint}")


def interleaved(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every call, round by round; what takes less than 0.3 ms is called several times in a row."""
    repeat = {}
    for name, call in calls.items():
        call()
        begin = time.thread_time_ns()
        call()
        repeat[name] = max(1, int(3e5 / max(time.thread_time_ns() - begin, 1000)))
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls) if number % 2 else list(calls)[::-1]:
            for _ in range(3 * (name in _WARM)):
                calls[name]()
            begin = time.thread_time_ns()
            for _ in range(repeat[name]):
                calls[name]()
            taken[name].append((time.thread_time_ns() - begin) / 1e6 / repeat[name])
    return taken


def ceiling_calls(cost: dict[str, float], cache: Path) -> tuple[dict[str, Call], int]:
    """A copy that reads and writes half of the cost's bytes each, a loop of multiply-adds, and its operations."""
    import ctypes

    library = ctypes.CDLL(c_build.build(_CEILINGS, "ceilings.c", (), cache)["library"])
    half = int(cost["bytes"]) // 8
    room = np.frombuffer(_pages(8 * half + 16384), np.float32)
    room[:] = 1.0  # pages that nobody wrote are all one page of zeros
    left, right, out = room[:half], room[half + 1024 :], room[-1024:]
    lanes = 16 if b"avx512f" in _flags() else 8 if b"avx2" in _flags() else 4
    pointer, count, factor = ctypes.c_void_p, ctypes.c_int64(half), ctypes.c_float(0.5)
    calls: dict[str, Call] = {
        "copy": lambda: library.copy(pointer(left.ctypes.data), pointer(right.ctypes.data), count),
        "peak": lambda: library.peak(pointer(out.ctypes.data), factor),
    }
    return calls, 4096 * 12 * 2 * lanes


def _flags() -> bytes:
    text = Path("/proc/cpuinfo").read_bytes() if Path("/proc/cpuinfo").exists() else b""
    return next((line for line in text.splitlines() if line.startswith(b"flags")), b"")


def measured(path: Path, rounds: int, compiles: bool, cache: Path) -> list[Row]:
    folder = path.parents[1]
    problem = load((folder / "workload.py").read_bytes(), f"{folder.name}/workload.py", "fp32")
    dims = problem.namespace["SIZES"]["bench"]
    expert, tensors = expert_call(path, problem, dims, cache)
    against = references(folder.name, tensors, dims, problem.scalars)
    if compiles:
        against |= compiled_references(folder.name, tensors, problem.scalars)
    cost = problem.cost(dims)
    ceilings, operations = ceiling_calls(cost, cache)
    taken = interleaved({"expert": expert, **ceilings, **against}, rounds)
    rate = operations / min(taken["peak"])
    return [
        Row(
            workload=folder.name,
            size="bench",
            dims=dims,
            reference=name,
            expert_ms=statistics.median(taken["expert"]),
            expert_least_ms=min(taken["expert"]),
            reference_ms=statistics.median(taken[name]),
            reference_least_ms=min(taken[name]),
            ratio=statistics.median(
                theirs / ours for theirs, ours in zip(taken[name], taken["expert"], strict=True)
            ),
            ratio_of_least=min(taken[name]) / min(taken["expert"]),
            copy_ms=min(taken["copy"]),
            operations_ms=cost["operations"] / rate,
            rounds=rounds,
        )
        for name in against
    ]


def machine() -> str:
    import torch

    here = detect()
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {here.cpu}, {here.cpu_platform}, {here.cores} cores, {platform.release()}; "
        f"{c_build.compiler()[1]}; Python {platform.python_version()}, torch {torch.__version__} on one thread, "
        f"numpy {np.__version__} ({blas['name']} {blas['version']}); load {os.getloadavg()[0]:.1f}"
    )


def table(rows: list[Row]) -> str:
    lines = ["workload     against          expert ms   theirs ms   ratio   of least   floor ms   x floor"]
    lines += [
        f"{r.workload:<12} {r.reference:<15} {r.expert_ms:>10.4f} {r.reference_ms:>11.4f} {r.ratio:>6.2f}x {r.ratio_of_least:>9.2f}x"
        f" {r.floor_ms:>10.4f} {r.expert_least_ms / r.floor_ms:>9.2f}"
        for r in rows
    ]
    return "\n".join(lines)


def on_one_thread() -> None:
    """Libraries read these variables when they are loaded, so this script begins anew with them set."""
    if any(os.environ.get(name) != value for name, value in _THREADS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **_THREADS})


def main() -> None:
    on_one_thread()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="W,W", help="these workloads only")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--compile", action="store_true", help="torch.compile too, which takes a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number there as well")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    wanted = set(arguments.only.split(",")) if arguments.only else None
    paths = sorted(shipped("experts").glob("*/c/kernel.c"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as cache:
        for path in paths:
            if wanted is None or path.parents[1].name in wanted:
                rows += measured(path, arguments.rounds, arguments.compile, Path(cache))
    where = machine()
    print(f"experts in C at bench, {arguments.rounds} rounds; {where}\n\n{table(rows)}")
    if arguments.json:
        data = {"machine": where, "rows": [asdict(row) | {"floor_ms": row.floor_ms} for row in rows]}
        arguments.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
