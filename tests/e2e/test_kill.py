"""A walk killed with SIGKILL at random moments resumes each time, with nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from klineage.walk import Walk, new_lineage, open_workspace

from .commands import KLINEAGE, git

KILLS = 100
SEED = int(os.environ.get("KLINEAGE_TEST_SEED", "20261129"))
EXPERT = Path(__file__).parents[2] / "experts" / "add_rmsnorm" / "c" / "kernel.c"


def picture(path: Path, lineage: str) -> tuple[list[str], list[str]]:
    """Accepted and rejected commits, as a fresh reader sees them."""
    workspace = open_workspace(path)
    try:
        state = Walk(workspace, lineage).state()
        return [step.commit for step in state.steps], [step.commit for step in state.rejected]
    finally:
        workspace.close()


def start_walk(path: Path, lineage: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*KLINEAGE, "walk", lineage, "-w", str(path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def fresh_lineage(path: Path) -> str:
    workspace = open_workspace(path, create=True)
    try:
        return new_lineage(workspace, EXPERT, "add_rmsnorm")
    finally:
        workspace.close()


@pytest.mark.timeout(3600)
def test_a_killed_walk_resumes_with_nothing_lost(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    moments = random.Random(SEED)
    path = tmp_path / "workspace"
    assert finish(path, fresh_lineage(path)) == 0  # fills the cache of gate results, and sets the pace
    began, lineage = time.monotonic(), fresh_lineage(path)
    assert finish(path, lineage) == 0
    reach = 1.1 * (time.monotonic() - began)  # seconds until the latest kill
    killed = finished = idle = 0
    interrupted: set[int] = set()  # how many steps a walk had when it was killed
    lineage = fresh_lineage(path)
    before = picture(path, lineage)
    while killed < KILLS or len(interrupted) < 4:
        began, process = time.monotonic(), start_walk(path, lineage)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0.0, reach))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        elif len(before[0]) == 1:  # from the beginning to the end: the machine may have become faster
            reach = min(reach, 1.1 * (time.monotonic() - began))
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        after = picture(path, lineage)
        assert after[0][: len(before[0])] == before[0], f"kill {killed}: an accepted step was lost"
        assert after[1][: len(before[1])] == before[1], f"kill {killed}: a rejected attempt was lost"
        idle = 0 if len(after[0]) > len(before[0]) else idle + 1
        if idle == 20:  # the machine has become too slow for it to get anywhere
            reach, idle = 1.5 * reach, 0
        before = after
        interrupted.add(len(after[0]))
        if process.returncode == 0:
            finished += 1
            git(path, "fsck", "--strict", "--no-dangling")
            lineage = fresh_lineage(path)
            before = picture(path, lineage)
    assert finish(path, lineage) == 0
    git(path, "fsck", "--strict", "--no-dangling")
    leftovers = orphans()
    assert not leftovers, f"killed walks left processes behind: {leftovers}"
    print(f"{killed} kills at {sorted(interrupted)} steps, {finished} walks ran to the end in between")


def finish(path: Path, lineage: str) -> int:
    walk = subprocess.run([*KLINEAGE, "walk", lineage, "-w", str(path)], capture_output=True, timeout=600)
    return walk.returncode


def orphans() -> set[str]:
    """Worker processes that have lost their parent and do not notice it; those of other tests come and go."""
    left: set[str] | None = None
    for _ in range(600):
        listing = subprocess.run(
            ["ps", "-eo", "ppid=,pid=,args="], capture_output=True, text=True, check=True
        ).stdout
        now = {line for line in listing.splitlines() if line.split()[0] == "1" and "klineage.worker" in line}
        left = now if left is None else left & now
        if not left:
            break
        time.sleep(0.1)
    return left or set()
