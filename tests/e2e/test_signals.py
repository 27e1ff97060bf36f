"""However the app is ended or stopped, the terminal is usable, nothing is lost, no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .commands import KLINEAGE
from .terminal import Terminal
from .test_refusals import GOOD_C

Command = Callable[..., subprocess.CompletedProcess[str]]
SPIN = b"{\n    for (volatile long i = 0; i < 1000000000000; ++i) {}\n"


@pytest.fixture
def app(tmp_path: Path, klineage: Command) -> list[str]:
    """A kernel with one proposal, whose gate is still running whenever somebody looks."""
    kernel = GOOD_C.replace(b"float *x", b"float *restrict x").replace(b"{", SPIN, 1)
    (tmp_path / "kernel.c").write_bytes(kernel)
    klineage("new", tmp_path / "kernel.c", "--workload", "gemm", "-w", tmp_path / "w")
    return [*KLINEAGE, str(tmp_path / "w"), "--lineage", "gemm-c"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_by_a_signal_in_a_gate(number: signal.Signals, app: list[str]) -> None:
    with Terminal(app, 100, 30) as terminal:
        terminal.wait_for("PROPOSAL 1")
        terminal.press("g")
        terminal.wait_for("cancel")
        os.kill(terminal.pid, number)
        terminal.wait_for(f"ended by {number.name}; everything is saved")
        assert terminal.wait_exit() == 128 + number


def test_the_terminal_is_closed_while_the_app_leaves(app: list[str]) -> None:
    """Closing a terminal sends SIGHUP, then SIGCONT."""
    with Terminal(app, 100, 30) as terminal:
        terminal.wait_for("PROPOSAL 1")
        os.kill(terminal.pid, signal.SIGHUP)
        for _ in range(20):
            time.sleep(0.02)
            try:
                os.kill(terminal.pid, signal.SIGCONT)
            except ProcessLookupError:
                break
        terminal.wait_exit()


def test_stopped_and_continued(app: list[str]) -> None:
    with Terminal(app, 100, 30) as terminal:
        terminal.wait_for("PROPOSAL 1")
        for _ in range(3):
            os.kill(terminal.pid, signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(terminal.pid, signal.SIGCONT)
        terminal.press("?")
        terminal.wait_for("the same in a shell")
        terminal.escape("the same in a shell")
        terminal.press("q")
        assert terminal.wait_exit() == 0
