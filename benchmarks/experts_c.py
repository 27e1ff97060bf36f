"""How fast the experts in C are: each against torch on one thread, on the same buffers, call beside call.

    PYTHONPATH=. python benchmarks/experts_c.py [--only gemm,topk] [--rounds 100] [--compile] [--json FILE]

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

from benchmarks import references_c

Call = Callable[[], Any]
Tensors = dict[str, Any]

_WARM = ("copy", "peak")  # bounds, so at their best: called three times before they are timed
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


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


def expert_call(path: Path, problem: Problem, dims: dict[str, int], cache: Path) -> tuple[Call, Tensors]:
    """The expert, built as a gate builds it, on page-aligned buffers that torch sees too. It is checked once."""
    import torch

    source, workload = path.read_bytes(), path.parents[1].name
    built = c_build.build(source, path.name, flags_of("c", source), cache)
    parameters = list(signature(Kernel("c", path.name, workload, source)))
    function = c_native.Function(built["library"], workload, c_native.bind(parameters, problem, dims))
    slots, total = buffers.layout(problem.tensors(dims))
    region = np.frombuffer(references_c.pages(total), np.uint8)
    inputs = problem.inputs(0, dims)
    buffers.fill(region, slots, inputs)
    arguments = function.arguments(region, slots, dims, problem.scalars)
    function(*arguments)
    arrays = {slot.name: buffers.stored(region, slot) for slot in slots}
    _check(problem, dims, inputs, arrays)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return lambda: function.pointer(*arguments), tensors


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


def measured(path: Path, rounds: int, compiles: bool, cache: Path) -> list[Row]:
    folder = path.parents[1]
    problem = load((folder / "workload.py").read_bytes(), f"{folder.name}/workload.py", "fp32")
    dims = problem.namespace["SIZES"]["bench"]
    expert, tensors = expert_call(path, problem, dims, cache)
    against = references_c.references(folder.name, tensors, dims, problem.scalars)
    if compiles:
        against |= references_c.compiled_references(folder.name, tensors, problem.scalars)
    cost = problem.cost(dims)
    ceilings, operations = references_c.ceiling_calls(cost, cache)
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
