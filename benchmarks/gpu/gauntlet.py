"""The gauntlet and the jury on a real GPU: every cheat is refused with its reason, every honest kernel passes.

    PYTHONPATH=.:engine python benchmarks/gpu/gauntlet.py --out DIR [--only WORD] [--seconds 80] [--workers 4]
                                                          [--resume DIR/gauntlet.json]

Prints a line a case and a table last, and writes it with machine, versions and date to DIR/gauntlet.json, after
each case. Cases that a GPU alone can judge come first; what the time did not suffice for is "not reached", and a
later run with --resume does that: first what was wrong, then what was not reached. The rest is taken over.
"""

import argparse
import json
import os
import queue
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from klineage.executor import LocalExecutor
from klineage.gate import Policy
from klineage.platform import detect

from tests.gauntlet.cases import GPU_SURFACES, Case, cheats, honest
from tests.gauntlet.running import complaint, decided, judge

QUICK = Policy(
    seeds=(2, 2, 2),
    compile_seconds=30.0,
    run_seconds=8.0,
    workload_seconds=20.0,
    total_seconds=40.0,
    most_profile_seconds=1.0,
)


@dataclass(frozen=True)
class Row:
    """One case and what became of it. ``outcome``: right, wrong, broken, not run, not reached."""

    id: str
    kind: str
    title: str
    wanted: str
    outcome: str
    got: str
    seconds: float


def urgency(case: Case) -> tuple[int, int, str]:
    """What only a GPU can judge first; what reading alone refuses last, because it costs nothing anywhere."""
    late = {"correctness": 0, "profile": 0, "": 1, "compile": 2, "static": 3}
    return late.get(case.expected.stage, 1), case.surface != "cuda-gpu", case.id


class Results:
    """Rows as they come, and the file that has them all at any time."""

    def __init__(self, out: Path, kept: list[Row]) -> None:
        self.out, self.rows, self._guard = out, list(kept), threading.Lock()
        out.mkdir(parents=True, exist_ok=True)
        self.machine = facts()

    def add(self, row: Row) -> None:
        with self._guard:
            self.rows.append(row)
            self.write()
            if row.outcome != "not reached":
                print(line_of(row), flush=True)

    def write(self) -> None:
        self.rows.sort(key=lambda row: (row.kind, row.id))
        told = {"machine": self.machine, "rows": [vars(row) for row in self.rows]}
        unfinished = self.out / "gauntlet.json.part"
        unfinished.write_text(json.dumps(told, indent=1), encoding="utf-8")
        unfinished.replace(self.out / "gauntlet.json")


def line_of(row: Row) -> str:
    got = f"wanted {row.wanted}; got {row.got}" if row.outcome in ("wrong", "broken") else row.got
    return f"{row.outcome:11} {row.seconds:6.2f} s  {row.kind:6} {row.id:34} {' '.join(got.split())[:150]}"


def run(case: Case, executor: LocalExecutor, kind: str, platform: str) -> Row:
    begin = time.perf_counter()
    if case.expected.skip:
        return Row(case.id, kind, case.title, str(case.expected), "not run", case.expected.skip, 0.0)
    try:
        report = judge(case, QUICK, executor, platform)
        said = complaint(case, report)
        outcome = "wrong" if said else "right"
        got = f"{' '.join(decided(report))}: {report.why}"
    except Exception:
        outcome, got = "broken", traceback.format_exc()[-500:]
    return Row(
        case.id, kind, case.title, str(case.expected), outcome, got, round(time.perf_counter() - begin, 2)
    )


Work = queue.SimpleQueue[tuple[Case, str]]


def follow(work: Work, results: Results, end: float, platform: str) -> None:
    """One line of gates with workers of its own, until there is nothing left or no time."""
    executor = LocalExecutor()
    try:
        while True:
            try:
                case, kind = work.get_nowait()
            except queue.Empty:
                return
            if time.monotonic() > end:
                results.add(Row(case.id, kind, case.title, str(case.expected), "not reached", "", 0.0))
                continue
            results.add(run(case, executor, kind, platform))
    finally:
        executor.close()


def queued(items: list[tuple[Case, str]]) -> Work:
    work: Work = queue.SimpleQueue()
    for item in items:
        work.put(item)
    return work


def earlier(path: Path | None) -> dict[str, Row]:
    """The rows of an earlier run, by id."""
    if path is None:
        return {}
    return {row["id"]: Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}


def facts() -> dict[str, Any]:
    machine = detect()
    gpu = machine.gpu
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": f"{gpu.name}, {gpu.platform}, driver {gpu.driver}" if gpu else "none",
        "cpu": machine.cpu,
        "python": sys.version.split()[0],
        "packages": {name: machine.packages.get(name) for name in ("torch", "triton", "numpy")},
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="cases whose id has this word")
    parser.add_argument("--seconds", type=float, default=80.0, help="no case begins after this")
    parser.add_argument("--workers", type=int, default=4, help="lines of gates that share the GPU")
    parser.add_argument("--resume", type=Path, help="gauntlet.json of an earlier run")
    arguments = parser.parse_args()
    gpu = detect().gpu
    if gpu is None:
        print("no GPU on this machine; tests/gauntlet and tests/jury run what needs none")
        return 2
    before = earlier(arguments.resume)
    known = {case.id for case in [*cheats(), *honest()]}
    settled = [row for row in before.values() if row.outcome in ("right", "not run") and row.id in known]
    done = {row.id for row in settled}
    failed = {row.id for row in before.values() if row.outcome in ("wrong", "broken")}
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="klineage-gauntlet-")
    listed = [(c, "cheat") for c in cheats()] + [(c, "honest") for c in honest()]
    wanted = [
        (c, k) for c, k in listed if c.surface in GPU_SURFACES and arguments.only in c.id and c.id not in done
    ]
    wanted.sort(key=lambda item: (item[0].id not in failed, urgency(item[0])))
    results = Results(arguments.out, settled)
    if arguments.resume:
        text = arguments.resume.read_text(encoding="utf-8")
        results.machine["resumed"] = json.loads(text)["machine"]["date"]
    end = time.monotonic() + arguments.seconds
    # No worker is needed for what reading alone refuses.
    read = queued([item for item in wanted if item[0].expected.stage == "static"])
    gated = queued([item for item in wanted if item[0].expected.stage != "static"])
    lines = [
        threading.Thread(target=follow, args=(work, results, end, gpu.platform))
        for work in (read, *[gated] * arguments.workers)
    ]
    for line in lines:
        line.start()
    for line in lines:
        line.join()
    results.write()
    rows = results.rows
    print()
    for row in rows:
        print(line_of(row))
    outcomes = [row.outcome for row in rows]
    print(results.machine)
    print(", ".join(f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes))))
    return int(any(name in ("wrong", "broken") for name in outcomes))


if __name__ == "__main__":
    sys.exit(main())
