"""A worker has one thread: what a kernel leaves behind would not be seen among a library's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
@pytest.mark.parametrize("kind", ["native", "interpreter"])
def test_a_preloaded_worker_has_one_thread(kind: str) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "klineage.worker", "--kind", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert worker.stdin and worker.stdout
    assert b'"hello"' in worker.stdout.readline()
    threads = list(Path(f"/proc/{worker.pid}/task").iterdir())
    worker.stdin.close()
    worker.wait(120)
    worker.stdout.close()
    assert len(threads) == 1
