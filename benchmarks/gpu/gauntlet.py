"""The gauntlet and the jury on a real GPU: every cheat is refused with its reason, every honest kernel passes.

    PYTHONPATH=.:engine python benchmarks/gpu/gauntlet.py --out DIR [--only WORD] [--seconds 80] [--workers 3]

Prints a table last, and writes it with machine, versions and date to DIR/gauntlet.json. Cases that a GPU alone
can judge come first; what the time did not suffice for is listed as "not reached", and --only finds it again.
"""

from __future__ import annotations

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


def run(case: Case, executor: LocalExecutor, kind: str) -> Row:
    begin = time.perf_counter()
    if case.expected.skip:
        return Row(case.id, kind, case.title, str(case.expected), "not run", case.expected.skip, 0.0)
    try:
        report = judge(case, QUICK, executor, detect().gpu.platform)  # type: ignore[union-attr]
        said = complaint(case, report)
        outcome = "wrong" if said else "right"
        got = f"{' '.join(decided(report))}: {report.why}"
    except Exception:
        outcome, got = "broken", traceback.format_exc()[-500:]
    return Row(
        case.id, kind, case.title, str(case.expected), outcome, got, round(time.perf_counter() - begin, 2)
    )


def follow(work: queue.SimpleQueue[tuple[Case, str]], rows: list[Row], end: float) -> None:
    """One line of gates with workers of its own, until there is nothing left or no time."""
    executor = LocalExecutor()
    try:
        while True:
            try:
                case, kind = work.get_nowait()
            except queue.Empty:
                return
            if time.monotonic() > end:
                rows.append(Row(case.id, kind, case.title, str(case.expected), "not reached", "", 0.0))
                continue
            rows.append(run(case, executor, kind))
    finally:
        executor.close()


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
    parser.add_argument("--workers", type=int, default=3)
    arguments = parser.parse_args()
    if detect().gpu is None:
        print("no GPU on this machine; tests/gauntlet and tests/jury run what needs none")
        return 2
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="klineage-gauntlet-")
    listed = [(c, "cheat") for c in cheats()] + [(c, "honest") for c in honest()]
    wanted = [(c, k) for c, k in listed if c.surface in GPU_SURFACES and arguments.only in c.id]
    work: queue.SimpleQueue[tuple[Case, str]] = queue.SimpleQueue()
    for item in sorted(wanted, key=lambda item: urgency(item[0])):
        work.put(item)
    rows: list[Row] = []
    end = time.monotonic() + arguments.seconds
    lines = [threading.Thread(target=follow, args=(work, rows, end)) for _ in range(arguments.workers)]
    for line in lines:
        line.start()
    for line in lines:
        line.join()
    rows.sort(key=lambda row: (row.kind, row.id))
    arguments.out.mkdir(parents=True, exist_ok=True)
    told = {"machine": facts(), "rows": [vars(row) for row in rows]}
    (arguments.out / "gauntlet.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    for row in rows:
        got = f"wanted {row.wanted}; got {row.got}" if row.outcome in ("wrong", "broken") else row.got
        print(f"{row.outcome:11} {row.seconds:6.2f} s  {row.kind:6} {row.id:34} {got[:150]}")
    outcomes = [row.outcome for row in rows]
    print(facts())
    print(", ".join(f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes))))
    return int(any(name in ("wrong", "broken") for name in outcomes))


if __name__ == "__main__":
    sys.exit(main())
