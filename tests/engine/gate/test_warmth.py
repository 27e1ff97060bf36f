"""What a gate that is about to be asked for starts, and when it starts nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Verdict, gate
from klineage.gate.cache import knows
from klineage.gate.warmth import begin
from klineage.kernel import Kernel
from klineage.workload import Workload

from .conftest import QUICK

STARTED = """
import sys, time
from pathlib import Path
from klineage.executor import current
from klineage.gate import expect
expect(Path(sys.argv[1]), fresh="--fresh" in sys.argv)
patience = time.monotonic() + float(sys.argv[2])
while not current().pids() and time.monotonic() < patience:
    time.sleep(0.01)
print(len(current().pids()))
"""


def started(file: Path, seconds: float, *more: str) -> int:
    """How many workers run after ``seconds``, or as soon as one does."""
    command = [sys.executable, "-c", STARTED, str(file), str(seconds), *more]
    return int(
        subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
    )


def test_workers_start_before_the_gate_unless_a_report_may_be_kept(
    rows: Workload, c: Callable[..., Kernel], executor: LocalExecutor, cache_home: Path, tmp_path: Path
) -> None:
    kernel = c("/* known to no other test */")
    file = tmp_path / "kernel.c"
    file.write_bytes(kernel.source)
    assert not knows(kernel.source)
    assert started(file, 60) == 1
    report = gate(GateRequest(kernel, rows, "cpu-native"), policy=QUICK, executor=executor)
    assert report.verdict is Verdict.PASS, report.why
    assert knows(kernel.source)
    assert not knows(kernel.source + b"\n")
    assert started(file, 1) == 0
    assert started(file, 60, "--fresh") == 1


def test_what_is_no_kernel_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a kernel")
    for name in ("notes.txt", "missing.c", "."):
        assert started(tmp_path / name, 0.2) == 0


def test_what_was_begun_for_an_executor_that_was_closed_meanwhile_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = LocalExecutor()
    asked: list[str] = []
    monkeypatch.setattr(executor, "versions", asked.append)
    monkeypatch.setattr(executor, "sees_gpu", lambda: False)
    look = executor.machine

    def closed_meanwhile() -> object:
        executor.close()
        return look()

    monkeypatch.setattr(executor, "machine", closed_meanwhile)
    begin(executor, "triton", "nvidia-sm90")
    for thread in threading.enumerate():
        if thread.name.startswith("warm"):
            thread.join(60)
    assert sorted(asked) == ["compiler", "native"]
