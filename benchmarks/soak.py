"""Many gates with crashes, hangs and kills in between: does every one end in its verdict, and is anything left behind?

``python benchmarks/soak.py [--gates 1000] [--seed 1] [--out FILE]``. Every gate has an expected verdict; now and then
the worker is killed, a gate is cancelled, or an app with a gate of its own is killed. At the end there may be no process,
descriptor or file more than at the start, nor memory that grows with the number of gates.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from klineage.executor import LocalExecutor
from klineage.gate import GateEvent, GateRequest, Policy, Report, Verdict, gate
from klineage.kernel import Kernel
from klineage.workload import Workload, load

WORKLOAD = '''"""Scaled rows: y[rows, columns] = alpha * x + bias"""
ELEMENT = {"c": "fp32"}
SIZES = {"small": {"rows": 8, "columns": 64}, "ragged": {"rows": 5, "columns": 13}}
OUTPUTS = ("y",)
SCALARS = {"alpha": 1.5}
def tensors(element, rows, columns):
    return {"x": (element, (rows, columns)), "bias": (element, (columns,)), "y": (element, (rows, columns))}
def inputs(rng, rows, columns):
    return {"x": rng.normal(rows, columns), "bias": rng.uniform(columns)}
def reference(xp, x, bias, alpha):
    return {"y": alpha * x + bias}
def cost(itemsize, rows, columns):
    return {"bytes": itemsize * (2 * rows * columns + columns), "operations": 2 * rows * columns}
'''
KERNEL = """#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
void rows_kernel(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha) {
  %s
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
}
"""
POLICY = Policy(profile_seconds=0.02, most_profile_seconds=0.05)
IMPATIENT = replace(POLICY, run_seconds=1.0)  # for what hangs; all else may take long on a busy machine


@dataclass(frozen=True)
class Kind:
    """One way in which a gate goes: a statement in the kernel, how often, and which verdicts are right."""

    name: str
    weight: int
    body: str
    verdicts: tuple[Verdict, ...]
    reasons: tuple[str, ...] = ()


PASS, FAIL = (Verdict.PASS,), (Verdict.FAIL,)
KINDS = (
    Kind("good", 40, "", PASS),
    Kind("wrong", 12, "y[0] = 0; return;", FAIL),
    Kind("crash", 8, "*(volatile int *)8 = 1;", FAIL, ("crashed", "sanitizer")),
    Kind("hang", 3, "for (volatile int64_t i = 0; i >= 0; i++) ;", (Verdict.TIMEOUT,)),
    Kind("exit", 6, "exit(0);", FAIL),
    Kind("abort", 4, "abort();", FAIL),
    Kind("flood", 3, "for (int i = 0; i < 100000; i++) puts(\"flood of output from a kernel\"); fflush(stdout);", FAIL),
    Kind("memory", 4, "for (int i = 0; i < 64; i++) { volatile char *p = malloc(1UL << 30); p[0] = 1; }", FAIL),
    Kind("outside", 6, "y[rows * columns] = 1;", FAIL),
    Kind("disk", 4, 'FILE *f = fopen("big", "wb"); static char z[1 << 20]; if (f) for (int i = 0; i < 400; i++) '
                    "fwrite(z, 1, sizeof z, f);", FAIL),
    Kind("no compile", 4, "this is no C;", FAIL),
)  # fmt: skip
DISTURBANCES = (("none", 82), ("cancel", 6), ("kill worker", 6), ("kill child", 4), ("kill app", 2))
UNDISTURBED = {"none", "kill app"}


@dataclass
class Outcome:
    """What a soak found. ``problems`` is empty when all is well."""

    gates: int
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    memory: list[tuple[int, float, float]] = field(default_factory=list)  # gates, app MiB, worker MiB


def soak(gates: int, seed: int, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run ``gates`` gates; the order and the disturbances follow from ``seed``."""
    outcome = Outcome(gates)
    with _private_folders() as folder:
        rows, draw = _workload(folder), random.Random(seed)
        workers = LocalExecutor()
        try:
            gate(_request(KINDS[0], rows, "warm up"), fresh=True, policy=POLICY, executor=workers)
            before = _census(folder)
            begin = time.monotonic()
            for number in range(gates):
                _one(number, draw, rows, workers, folder, outcome)
                if number % max(1, gates // 20) == 0 or number == gates - 1:
                    outcome.memory.append((number + 1, _resident(os.getpid()), _largest(workers)))
                    say(f"{number + 1} of {gates}, {len(outcome.problems)} problems")
            outcome.seconds = time.monotonic() - begin
            _compare(before, workers, folder, outcome)
        finally:
            workers.close()
        _nothing_left(folder, outcome)
    return outcome


def _one(
    number: int, draw: random.Random, rows: Workload, workers: LocalExecutor, folder: Path, outcome: Outcome
) -> None:
    kind = draw.choices(KINDS, [k.weight for k in KINDS])[0]
    disturbance = draw.choices([d[0] for d in DISTURBANCES], [d[1] for d in DISTURBANCES])[0]
    if disturbance == "kill app":
        _killed_app(draw, folder)
    moment = draw.uniform(0.005, 0.25)
    cancel = threading.Event()
    disturber = threading.Timer(moment, _disturb, (disturbance, cancel, workers, draw.random()))
    if disturbance not in UNDISTURBED:
        disturber.start()
    answer: list[Report] = []
    request = _request(kind, rows, f"{number}")
    job = threading.Thread(target=lambda: answer.append(_gated(kind, request, cancel, workers)), daemon=True)
    job.start()
    job.join(120)
    disturber.cancel()
    if disturber.is_alive():
        disturber.join()
    where = f"gate {number} ({kind.name}, {disturbance})"
    if not answer:
        outcome.problems.append(
            f"{where}: no result" if not job.is_alive() else f"{where}: still running after 120 s"
        )
        return
    report = answer[0]
    outcome.counts[f"{kind.name} / {disturbance}: {report.verdict}"] += 1
    if not _right(kind, disturbance, report):
        outcome.problems.append(f"{where}: {report.verdict}, {report.why}")


def _gated(kind: Kind, request: GateRequest, cancel: threading.Event, workers: LocalExecutor) -> Report:
    policy = IMPATIENT if Verdict.TIMEOUT in kind.verdicts else POLICY

    def on_event(event: GateEvent) -> None:
        del event

    return gate(request, on_event, cancel, fresh=True, policy=policy, executor=workers)


def _right(kind: Kind, disturbance: str, report: Report) -> bool:
    """Undisturbed, the verdict is the kind's; disturbed, it may also be the disturbance's, never another."""
    reasons = [s.reason for s in report.stages if s.verdict is not Verdict.PASS]
    if report.verdict in kind.verdicts and (not kind.reasons or (reasons and reasons[0] in kind.reasons)):
        return True
    if disturbance == "cancel":
        return "cancelled" in reasons
    if disturbance == "kill worker":
        return report.verdict is Verdict.ERROR and "worker" in reasons
    return disturbance == "kill child" and report.verdict in (Verdict.FAIL, Verdict.ERROR)


def _disturb(what: str, cancel: threading.Event, workers: LocalExecutor, chance: float) -> None:
    if what == "cancel":
        cancel.set()
        return
    pids = list(workers.pids())
    if what == "kill child":
        pids = [child for pid in pids for child in _children(pid)]
    if pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[int(chance * len(pids))], signal.SIGKILL)


APP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import soak
print("ready", flush=True)
soak.gate(soak._request(soak.KINDS[3], soak.load(sys.argv[2]), "app"), fresh=True, policy=soak.POLICY)
"""


def _killed_app(draw: random.Random, folder: Path) -> None:
    """Another app gates a kernel that hangs, and is killed in the middle."""
    command = [sys.executable, "-c", APP, str(Path(__file__).parent), str(folder / "rows")]
    app = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert app.stdout is not None
    app.stdout.readline()
    time.sleep(draw.uniform(0.0, 0.6))
    app.kill()
    app.wait()
    app.stdout.close()


def _request(kind: Kind, rows: Workload, mark: str) -> GateRequest:
    source = KERNEL % f"/* {mark} */ {kind.body}"
    return GateRequest(Kernel("c", "kernel.c", "rows_kernel", source.encode()), rows, "cpu-native")


def _workload(folder: Path) -> Workload:
    (folder / "rows").mkdir()
    (folder / "rows" / "workload.py").write_text(WORKLOAD, encoding="utf-8")
    return load(folder / "rows")


@contextlib.contextmanager
def _private_folders() -> Iterator[Path]:
    """A cache and a place for temporary files of our own, so that every file in them is ours."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        kept = {key: os.environ.get(key) for key in ("TMPDIR", "KLINEAGE_CACHE")}
        os.environ.update(TMPDIR=str(folder / "tmp"), KLINEAGE_CACHE=str(folder / "cache"))
        default, tempfile.tempdir = tempfile.tempdir, str(folder / "tmp")
        try:
            yield folder
        finally:
            tempfile.tempdir = default
            for key, value in kept.items():
                os.environ.pop(key) if value is None else os.environ.__setitem__(key, value)


# -- what is there -----------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _descendants(pid: int) -> list[int]:
    found = _children(pid)
    for child in found:
        found += _children(child)
    return found


def _ours(folder: Path) -> list[int]:
    """Every process of this machine that was started with our folder for temporary files."""
    mark = f"TMPDIR={folder / 'tmp'}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def _census(folder: Path) -> dict[str, int]:
    gc.collect()
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "files": sum(1 for _ in (folder / "tmp").rglob("*")),
        "semaphores": sum(1 for _ in Path("/dev/shm").iterdir()) if Path("/dev/shm").is_dir() else 0,
    }


def _resident(pid: int) -> float:
    """MiB that a process holds by itself."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0.0
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _largest(workers: LocalExecutor) -> float:
    return max((_resident(pid) for pid in workers.pids()), default=0.0)


def _settled(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _compare(before: dict[str, int], workers: LocalExecutor, folder: Path, outcome: Outcome) -> None:
    """With the workers still warm: nothing but them is there."""
    _settled(lambda: not any(_children(pid) for pid in workers.pids()), 5)
    now = _census(folder)
    for name in ("descriptors", "threads", "semaphores"):
        if now[name] > before[name]:
            outcome.problems.append(f"{name}: {before[name]} before, {now[name]} after")
    extra = set(_ours(folder)) - set(workers.pids())
    if extra:
        outcome.problems.append(f"processes beside the workers: {sorted(extra)}")
    outcome.notes.append(", ".join(f"{name} {before[name]} -> {now[name]}" for name in now))
    # Until then caches of a fixed size fill up: 256 parsed kernels.
    settled = [sample for sample in outcome.memory if sample[0] > 300] or outcome.memory[
        len(outcome.memory) // 4 :
    ]
    first, last = settled[0], settled[-1]
    grown = last[1] - first[1]
    if grown > max(8.0, 0.01 * (last[0] - first[0])):
        outcome.problems.append(f"the app grew by {grown:.1f} MiB between gate {first[0]} and {last[0]}")
    outcome.notes.append(
        f"app {first[1]:.1f} -> {last[1]:.1f} MiB, worker {first[2]:.1f} -> {last[2]:.1f} MiB"
    )


def _nothing_left(folder: Path, outcome: Outcome) -> None:
    """With the workers closed: no process, and no temporary file but those of killed apps, which the next start sweeps."""
    if not _settled(lambda: not _ours(folder)):
        outcome.problems.append(f"processes left: {_ours(folder)}")
    sweeper = LocalExecutor()
    sweeper.versions("native")
    sweeper.close()
    left = sorted(str(path.relative_to(folder)) for path in (folder / "tmp").rglob("*"))
    if left:
        outcome.problems.append(f"{len(left)} files left: {', '.join(left[:5])}")
    unfinished = len(list((folder / "cache" / "c").glob("job-*")))
    if unfinished:
        outcome.notes.append(
            f"{unfinished} unfinished builds of killed workers in the cache, to be swept after an hour"
        )


def text(outcome: Outcome, seed: int) -> str:
    """The report that is kept in benchmarks/results."""
    rate = outcome.gates / outcome.seconds if outcome.seconds else 0.0
    lines = [
        f"soak: {outcome.gates} gates, seed {seed}, {outcome.seconds:.0f} s, {rate:.2f} gates a second",
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        *outcome.notes,
        "",
        *(f"{count:>5}  {name}" for name, count in sorted(outcome.counts.items())),
        "",
        *(
            f"memory after {n:>5} gates: app {app:6.1f} MiB, worker {worker:6.1f} MiB"
            for n, app, worker in outcome.memory
        ),
        "",
        f"{len(outcome.problems)} problems",
        *outcome.problems,
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    outcome = soak(arguments.gates, arguments.seed, lambda line: print(line, file=sys.stderr, flush=True))
    report = text(outcome, arguments.seed)
    print(report)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(report, encoding="utf-8")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
