"""What surrounds klineage is broken: streams, encodings, permissions, disks. One sentence, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .commands import KLINEAGE
from .terminal import Terminal
from .test_refusals import GOOD_C, refusal

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def workspace(tmp_path: Path, klineage: Command) -> Path:
    (tmp_path / "kernel.c").write_bytes(GOOD_C + "// \u2192 \u4f60\u597d\n".encode())
    klineage("new", tmp_path / "kernel.c", "--workload", "gemm", "-w", tmp_path / "w")
    return tmp_path / "w"


def mortal() -> list[str]:
    """A command prefix under which even root is bound by the modes of files."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root without setpriv may read everything")
    powers = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}"]


def test_the_app_without_a_terminal(workspace: Path, klineage: Command) -> None:
    assert "needs a terminal" in refusal(klineage, workspace)


def test_the_app_on_a_dumb_terminal(workspace: Path) -> None:
    with Terminal([*KLINEAGE, str(workspace)], 100, 30, {"TERM": "dumb"}) as terminal:
        terminal.wait_for("TERM=dumb")
        assert terminal.wait_exit() == 1


def test_a_terminal_encoding_that_lacks_the_characters(
    workspace: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert "\\u2192" in klineage("show", "gemm-c", "0", "--source", "-w", workspace).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written(workspace: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*KLINEAGE, "list", "-w", str(workspace)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("klineage: cannot write the output: No space left")
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away(workspace: Path) -> None:
    command = " ".join(map(str, [*KLINEAGE, "show", "gemm-c", "0", "--source", "-w", workspace]))
    done = subprocess.run(["sh", "-c", f"{command} | true"], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""


@pytest.mark.parametrize("part", ["", ".git", ".git/objects", ".git/refs", ".git/HEAD"])
def test_a_repository_that_may_not_be_read(part: str, workspace: Path) -> None:
    closed = workspace / part
    mode = closed.stat().st_mode
    closed.chmod(0)
    try:
        done = subprocess.run(
            [*mortal(), *KLINEAGE, "list", "-w", str(workspace)], capture_output=True, text=True, timeout=300
        )
    finally:
        closed.chmod(mode)
    assert done.returncode == 1
    assert f"{closed} cannot be read" in done.stderr
    assert "git init" not in done.stderr


def test_a_folder_that_nobody_can_name(klineage: Command) -> None:
    assert "File name too long" in refusal(klineage, "list", "-w", "x" * 5000)


def test_a_damaged_repository_is_not_to_be_made_anew(workspace: Path, klineage: Command) -> None:
    (workspace / ".git" / "HEAD").unlink()
    message = refusal(klineage, "list", "-w", workspace)
    assert "damaged" in message
    assert "git init" not in message


def test_a_bundle_that_cannot_be_written(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    target = folder / "gemm.bundle"
    done = subprocess.run(
        [*mortal(), *KLINEAGE, "bundle", "create", "gemm-c", str(target), "-w", str(workspace)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert f"{folder} cannot be written" in done.stderr


def test_half_a_repository_is_cleared_away(
    tmp_path: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up while a workspace is made does not bar the next attempt."""
    real = shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = init ] && {{ mkdir -p .git/objects; echo "fatal: No space left on device" >&2; exit 128; }}\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    path = os.environ["PATH"]
    (tmp_path / "kernel.c").write_bytes(GOOD_C)
    words = ("new", tmp_path / "kernel.c", "--workload", "gemm", "-w", tmp_path / "w")
    monkeypatch.setenv("PATH", f"{fake.parent}:{path}")
    assert "disk is full" in refusal(klineage, *words)
    monkeypatch.setenv("PATH", path)
    klineage(*words)


def test_a_compiler_that_is_none(workspace: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true")
    message = refusal(klineage, "walk", "gemm-c", "-w", workspace)
    assert "true cannot compile a ten-line file" in message
