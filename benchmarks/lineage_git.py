"""How fast the memory is: steps written one by one, and a long history read with its trailers.

python benchmarks/lineage_git.py [--write 1000] [--read 5000]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from klineage.kernel import Feature
from klineage.lineage import Meta, Step, StepRecord, Workspace

META = Meta("bench", "Benchmark", "c", "cpu-x86-64-v3", "gemm", "kernel.c", "gemm")
KERNEL = b"".join(b"    acc%d += a[%d] * b[%d];\n" % (i, i, i) for i in range(300))
REPORT = json.dumps({"samples": [i / 7 for i in range(200)], "environment": {"cpu": "some"}})


def record(number: int) -> StepRecord:
    locus = f"kernel.c::gemm/for[{number}]"
    return StepRecord(
        f"Remove unrolling of loop {number}",
        "The loop is short, and the compiler unrolls it by itself.\n\nA second paragraph, as people write.",
        action="unroll", locus=locus, removes=(Feature(locus, "unroll"),), settings={"factor": "4"},
        proposer="rules:unroll", who="A. Curator", why="not needed", gate="pass", compile="pass, 21 ms",
        correctness="pass, 3 seeds, worst 2.1e-7 of 1e-5", effect="slower", ratio=1.77,
        profile="[1.75, 1.79] 0.342 ms of 0.193 ms (clock_monotonic, bench)", trust="measured-cpu",
        platform="cpu-x86-64-v3", kernel=f"{number:064x}",
    )  # fmt: skip


def write(workspace: Workspace, count: int) -> float:
    """Seconds for ``count`` accepted steps, each with its gate report."""
    head = workspace.new(META, {"kernel.c": KERNEL, "workload.py": b"SIZES = {}\n"}, "A. Curator", REPORT)
    start = time.perf_counter()
    for number in range(1, count + 1):
        source = KERNEL.replace(b"acc7 ", b"acc%d " % (1000 + number))
        head = workspace.accept("bench", record(number), {"kernel.c": source}, REPORT, head.commit)
    return time.perf_counter() - start


def read(path: Path) -> tuple[float, list[Step]]:
    """Seconds for the whole history in a workspace opened afresh."""
    workspace = Workspace.open(path)
    start = time.perf_counter()
    steps = workspace.history("bench")
    seconds = time.perf_counter() - start
    workspace.close()
    return seconds, steps


def lengthen(path: Path, count: int) -> None:
    """Grow the walk to ``count`` steps by one stream of commits like its last one."""
    git = ["git", "-C", str(path)]
    tip = subprocess.run(
        [*git, "log", "-1", "--format=%B", "walk/bench"], capture_output=True, check=True
    ).stdout
    have = int(
        subprocess.run([*git, "rev-list", "--count", "walk/bench"], capture_output=True, check=True).stdout
    )
    stream = []
    for number in range(have, count):
        text = tip.replace(b"Lineage-Step: %d\n" % (have - 1), b"Lineage-Step: %d\n" % number)
        who = b"committer A <a@localhost> %d +0000\n" % (1_700_000_000 + number)
        stream.append(b"commit refs/heads/walk/bench\n%sdata %d\n%s\n" % (who, len(text), text))
    stream.insert(0, b"reset refs/heads/walk/bench\nfrom refs/heads/walk/bench^0\n\n")
    subprocess.run([*git, "fast-import", "--quiet"], input=b"".join(stream), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=int, default=1000)
    parser.add_argument("--read", type=int, default=5000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        workspace = Workspace.create(path)
        seconds = write(workspace, arguments.write)
        each = seconds / arguments.write * 1000
        print(
            f"{arguments.write} steps written in {seconds:.2f} s, {each:.1f} ms each (budget 15 s for 1,000)"
        )
        workspace.close()
        fresh, steps = read(path)
        print(f"{len(steps)} steps, as just written, read with trailers in {fresh:.3f} s")
        lengthen(path, arguments.read)
        best, steps = min((read(path) for _ in range(5)), key=lambda result: result[0])
        print(f"{len(steps)} steps read with trailers in {best:.3f} s (budget 0.1 s for 5,000), best of 5")
        print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
