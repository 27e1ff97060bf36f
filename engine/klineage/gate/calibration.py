"""How often the profile is wrong on this machine, and how small an effect it finds.

Equal kernels are timed against each other (A/A), and kernels into which a known amount of real work was planted:
the same inner loop runs for 0.5, 1, 2 and 5 % more rows. Candidates take turns in a random order, so
that whatever else the machine does meets all of them alike. The profile is the gate's own, under its own policy.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.executor import Executor, current
from klineage.gate.cache import folder
from klineage.gate.policy import POLICY, Policy
from klineage.gate.request import fresh_seeds, kernel_job, workload_job
from klineage.kernel import Kernel
from klineage.workload import Workload, parse

ROWS = 1000  # so that a plant of 0.5 % is five of them
PLANTS = (0, 5, 10, 20, 50)
MOST_FALSE = 0.005  # of A/A runs that are called slower or faster
LEAST_FOUND = 0.95  # of plants of 2 %
GOAL_PLANT = 20

_WORKLOAD = b'''"""Rows of a polynomial, to calibrate the gate with."""
ELEMENT = {"c": "fp32"}
SIZES = {"small": {"rows": 1000, "columns": 64}, "ragged": {"rows": 31, "columns": 17}}
OUTPUTS = ("y",)


def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "start": (element, (columns,)), "y": (element, (rows, columns))}


def inputs(rng, rows, columns):
    return {"x": rng.uniform(rows, columns), "start": rng.uniform(columns)}


def reference(xp, x, start):
    y = start + 0 * x
    for _ in range(12):
        y = y * x * 0.5 + 0.5
    return {"y": y}


def cost(itemsize, rows, columns):
    return {"bytes": itemsize * 2 * rows * columns, "operations": 36 * rows * columns}
'''

# The planted rows are computed again, by the same loop; their number is volatile, so that no compiler
# can make other code of another plant.
_KERNEL = """#include <stdint.h>

void polynomial(const float *restrict x, const float *restrict start, float *restrict y, int64_t rows, int64_t columns) {
  volatile int64_t planted = %d; /* %s */
  const int64_t all = rows + planted;
  for (int64_t i = 0, row = 0; i < all; i++, row++) {
    if (row == rows) row = 0;
    for (int64_t j = 0; j < columns; j++) {
      const float v = x[row * columns + j] * 0.5f;
      float p = start[j];
      for (int t = 0; t < 12; t++) p = p * v + 0.5f;
      y[row * columns + j] = p;
    }
  }
}
"""


@dataclass(frozen=True)
class Line:
    """What was said of one plant (a part, 0 for equal kernels). ``expected`` is the ratio that is true."""

    plant: float
    runs: int
    slower: int
    faster: int
    neutral: int
    noisy: int
    ratio: float  # median of the measured ratios
    width: float  # median of the intervals' half-widths
    seconds: float  # median of one profile
    groups: float  # mean number of timing processes
    instructions: int | None = None  # of one call, where callgrind could count them


@dataclass(frozen=True)
class Calibration:
    """A calibration of this machine. ``met`` says whether both goals are."""

    policy: str
    lines: tuple[Line, ...]
    seconds: float
    load: tuple[float, float]  # runnable processes of the machine, at the beginning and at the end
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def false_rate(self) -> float:
        """Part of the A/A runs that were called slower or faster."""
        line = self.lines[0]
        return (line.slower + line.faster) / line.runs

    @property
    def found_rate(self) -> float:
        """Part of the plants of 2 % that were called slower."""
        line = next(line for line in self.lines if round(line.plant * ROWS) == GOAL_PLANT)
        return line.slower / line.runs

    @property
    def met(self) -> bool:
        return self.false_rate <= MOST_FALSE and self.found_rate >= LEAST_FOUND


Told = Callable[[int, int], None]  # runs done, runs in all


def workload() -> Workload:
    """The workload of a calibration."""
    return parse(_WORKLOAD, name="calibration", path=Path("calibration/workload.py"))


def kernel(planted: int, note: str) -> Kernel:
    """The kernel that computes ``planted`` of its 1000 rows twice. ``note`` only changes a comment."""
    return Kernel("c", "polynomial.c", "polynomial", (_KERNEL % (planted, note)).encode())


def calibrate(
    equal: int = 200,
    each: int = 100,
    on_run: Told | None = None,
    *,
    policy: Policy = POLICY,
    executor: Executor | None = None,
) -> Calibration:
    """``equal`` A/A runs and ``each`` of every plant, in a random order. Raises KlineageError without a compiler."""
    worker = executor or current()
    jobs = {planted: _built(worker, planted, f"candidate {planted}") for planted in PLANTS}
    baseline = _built(worker, 0, "baseline")
    todo = [planted for planted in PLANTS for _ in range(each if planted else equal)]
    random.Random().shuffle(todo)
    answers: dict[int, list[dict[str, Any]]] = {planted: [] for planted in PLANTS}
    begin, load = time.monotonic(), _load()
    for number, planted in enumerate(todo):
        if on_run:
            on_run(number, len(todo))
        answers[planted].append(_profiled(worker, jobs[planted], baseline, policy))
    counts = {planted: _instructions(worker, jobs[planted], policy) for planted in PLANTS}
    return Calibration(
        policy.name,
        tuple(_line(planted, answers[planted], counts[planted]) for planted in PLANTS),
        time.monotonic() - begin,
        (load, _load()),
        _environment(worker, baseline["compiler"]),
    )


def _load() -> float:
    return os.getloadavg()[0]


def _environment(worker: Executor, compiler: str) -> dict[str, str]:
    found = worker.machine()
    versions = {f"worker {name}": version for name, version in worker.versions("native").items()}
    return {
        "system": found.system,
        "cpu": found.cpu,
        "cores": str(found.cores),
        "compiler": compiler,
        **versions,
    }


def _built(worker: Executor, planted: int, note: str) -> dict[str, Any]:
    job = kernel_job(kernel(planted, note))
    answer = worker.submit(
        "native",
        {
            "op": "compile_c",
            "kernel": job,
            "dims": workload().sizes["small"],
            "workload": workload_job(workload(), "c"),
            "cache": str(folder() / "c"),
            "limits": POLICY.limits,
        },
    )
    if answer["verdict"] != "pass":
        raise KlineageError(f"the calibration kernel does not build: {answer['summary']}")
    return {**job, **{name: answer[name] for name in ("library", "sha256", "compiler")}}


def _profiled(
    worker: Executor,
    candidate: dict[str, Any],
    baseline: dict[str, Any],
    policy: Policy,
) -> dict[str, Any]:
    from klineage.gate.native import time_job

    begin = time.monotonic()
    job = time_job(candidate, baseline, workload(), "small", fresh_seeds(policy)[0], policy)
    answer = worker.submit("native", job, timeout=policy.total_seconds + 30)
    if answer["verdict"] not in ("pass", "noisy"):
        raise KlineageError(f"a calibration run failed: {answer['summary']}")
    return {**answer, "seconds": time.monotonic() - begin}


def _instructions(worker: Executor, job: dict[str, Any], policy: Policy) -> int | None:
    from klineage.gate.evidence import count_job

    answer = worker.submit("native", count_job(job, workload(), "small", policy))
    return int(answer["counts"]["instructions"]) if answer["verdict"] == "pass" else None


def _line(planted: int, answers: list[dict[str, Any]], instructions: int | None) -> Line:
    effects = [str(answer.get("effect", "noisy")) for answer in answers]
    measured = [answer for answer in answers if "ratio" in answer]
    return Line(
        plant=planted / ROWS,
        runs=len(answers),
        slower=effects.count("slower"),
        faster=effects.count("faster"),
        neutral=effects.count("neutral"),
        noisy=effects.count("noisy"),
        ratio=statistics.median(a["ratio"] for a in measured) if measured else 1.0,
        width=statistics.median(a["high"] / a["ratio"] - 1 for a in measured) if measured else 0.0,
        seconds=statistics.median(answer["seconds"] for answer in answers),
        groups=statistics.fmean(answer["groups"] for answer in answers),
        instructions=instructions,
    )
