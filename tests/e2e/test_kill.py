"""A walk killed with SIGKILL at random moments resumes each time, with nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from klineage.walk import Walk, new_lineage, open_workspace

from .commands import git
from .forked import fork_server, start

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


@pytest.fixture(scope="module")
def forks() -> ForkServerContext:
    return fork_server()


def kill(process: BaseProcess) -> None:
    """End a walk and whatever it has started, all at once."""
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):  # it is so young that it leads no group
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def fresh_lineage(path: Path) -> str:
    workspace = open_workspace(path, create=True)
    try:
        return new_lineage(workspace, EXPERT, "add_rmsnorm")
    finally:
        workspace.close()


@pytest.mark.timeout(3600)
def test_a_killed_walk_resumes_with_nothing_lost(tmp_path: Path, forks: ForkServerContext) -> None:
    print(f"seed {SEED}")
    moments = random.Random(SEED)
    path = tmp_path / "workspace"
    assert finish(forks, path, fresh_lineage(path)) == 0  # fills the cache of gate results
    began, lineage = time.monotonic(), fresh_lineage(path)
    assert finish(forks, path, lineage) == 0
    # Seconds until the latest kill. A killed walk goes on from where it was: half the time leads to every step.
    reach = 0.5 * (time.monotonic() - began)
    killed = finished = idle = 0
    interrupted: set[int] = set()  # how many steps a walk had when it was killed
    lineage = fresh_lineage(path)
    before = picture(path, lineage)
    while killed < KILLS or len(interrupted) < 4:
        began, process = time.monotonic(), start(forks, path, "walk", lineage)
        process.join(moments.uniform(0.0, reach))
        if process.is_alive():
            kill(process)
            killed += 1
        elif len(before[0]) == 1:  # from the beginning to the end: the machine has become faster
            reach = min(reach, 0.5 * (time.monotonic() - began))
        process.join(300)
        assert process.exitcode in (0, -signal.SIGKILL), (path / "errors").read_text()
        after = picture(path, lineage)
        assert after[0][: len(before[0])] == before[0], f"kill {killed}: an accepted step was lost"
        assert after[1][: len(before[1])] == before[1], f"kill {killed}: a rejected attempt was lost"
        idle = 0 if len(after[0]) > len(before[0]) else idle + 1
        if idle == 20:  # the machine has become too slow for it to get anywhere
            reach, idle = 1.5 * reach, 0
        before = after
        interrupted.add(len(after[0]))
        if process.exitcode == 0:
            finished += 1
            git(path, "fsck", "--strict", "--no-dangling")
            lineage = fresh_lineage(path)
            before = picture(path, lineage)
    assert finish(forks, path, lineage) == 0
    git(path, "fsck", "--strict", "--no-dangling")
    leftovers = orphans()
    assert not leftovers, f"killed walks left processes behind: {leftovers}"
    print(f"{killed} kills at {sorted(interrupted)} steps, {finished} walks ran to the end in between")


def finish(forks: ForkServerContext, path: Path, lineage: str) -> int | None:
    walk = start(forks, path, "walk", lineage)
    walk.join(600)
    return walk.exitcode


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
