"""Bad input from the command line: one clear sentence on stderr, no traceback, nothing written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .commands import git

Command = Callable[..., subprocess.CompletedProcess[str]]

GOOD_C = b"""#include <stdint.h>
void gemm(const float *x, const float *weight, float *y, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++) sum += x[i * k + p] * weight[j * k + p];
            y[i * n + j] = sum;
        }
}
"""


def refusal(klineage: Command, *words: object, cwd: Path | None = None) -> str:
    done = klineage(*words, ok=False, cwd=cwd)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("klineage: ")
    return lines[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"\x7fELF\0\0\0", "is a binary file"),
        (b"x" * (5 * 1024 * 1024), "bytes"),
        (b"void gemm(const float *x { \n", "kernel.c:1"),
        (b"int nothing_here;\n", "no function"),
        (GOOD_C.decode().encode("utf-16"), "UTF-16; save it as UTF-8"),
    ],
    ids=["empty", "blank", "binary", "huge", "broken", "no-function", "utf-16"],
)
def test_kernels_that_cannot_be_opened(content: bytes, said: str, tmp_path: Path, klineage: Command) -> None:
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(content)
    message = refusal(klineage, "new", kernel, "--workload", "gemm", "-w", tmp_path / "w")
    assert "kernel.c" in message
    assert said in message


@pytest.mark.parametrize(
    "content",
    [
        GOOD_C.replace(b"\n", b"\r\n"),
        GOOD_C.replace(b";\n", b";\r\n", 2),
        b"\xef\xbb\xbf" + GOOD_C,
        b"// caf\xe9\n" + GOOD_C,
        GOOD_C + b"// " + b"x" * 10_000 + b"\n",
        GOOD_C + b"// a line\n" * 5_000,
        GOOD_C.rstrip(),
    ],
    ids=["crlf", "mixed", "bom", "latin1", "wide", "long", "no-final-newline"],
)
def test_odd_bytes_open_and_are_kept(content: bytes, tmp_path: Path, klineage: Command) -> None:
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(content)
    klineage("new", kernel, "--workload", "gemm", "-w", tmp_path / "w")
    kept = subprocess.run(
        ["git", "-C", tmp_path / "w", "cat-file", "blob", "walk/gemm-c:kernel.c"],
        capture_output=True,
        check=True,
    ).stdout
    assert kept == content
    klineage("propose", "gemm-c", "-w", tmp_path / "w")


def test_missing_things_are_named(tmp_path: Path, klineage: Command) -> None:
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(GOOD_C)
    assert "nowhere.c" in refusal(
        klineage, "new", tmp_path / "nowhere.c", "--workload", "gemm", "-w", tmp_path / "w"
    )
    assert "nosuch" in refusal(klineage, "new", kernel, "--workload", "nosuch", "-w", tmp_path / "w")
    assert "fortran" in refusal(
        klineage, "new", kernel, "--workload", "gemm", "--surface", "fortran", "-w", tmp_path / "w"
    )
    assert "riscv" in refusal(
        klineage, "new", kernel, "--workload", "gemm", "--platform", "riscv", "-w", tmp_path / "w"
    )
    klineage("new", kernel, "--workload", "gemm", "-w", tmp_path / "w")
    assert "nosuch" in refusal(klineage, "log", "nosuch", "-w", tmp_path / "w")
    assert "no step" in refusal(klineage, "show", "gemm-c", "7", "-w", tmp_path / "w")
    assert "nosuch" in refusal(klineage, "nosuch")


def test_a_folder_that_is_no_repository(tmp_path: Path, klineage: Command) -> None:
    message = refusal(klineage, "list", "-w", tmp_path)
    assert str(tmp_path) in message


def test_users_repositories_are_not_disturbed(tmp_path: Path, klineage: Command) -> None:
    """A dirty repository with a detached head and other history keeps its index, files and head."""
    repository = tmp_path / "theirs"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "a.txt").write_text("one\n")
    git(repository, "add", "a.txt")
    git(repository, "commit", "-qm", "theirs")
    git(repository, "checkout", "-q", "--detach")
    (repository / "a.txt").write_text("two\n")
    (repository / "b.txt").write_text("new\n")
    git(repository, "add", "b.txt")
    before = (
        git(repository, "status", "--porcelain=v2"),
        git(repository, "rev-parse", "HEAD"),
        git(repository, "ls-files", "-s"),
    )

    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(GOOD_C)
    klineage("new", kernel, "--workload", "gemm", "-w", repository)
    klineage("log", "gemm-c", "-w", repository)
    after = (
        git(repository, "status", "--porcelain=v2"),
        git(repository, "rev-parse", "HEAD"),
        git(repository, "ls-files", "-s"),
    )
    assert before == after


def test_a_bare_repository_is_a_workspace(tmp_path: Path, klineage: Command) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(GOOD_C)
    klineage("new", kernel, "--workload", "gemm", "-w", tmp_path / "bare")
    assert "gemm-c" in klineage("list", "-w", tmp_path / "bare").stdout


def test_no_git_is_said(tmp_path: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git" in refusal(klineage, "list", "-w", tmp_path)


def test_an_old_git_is_said(tmp_path: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "git version 2.25.1"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    assert "2.34" in refusal(klineage, "list", "-w", tmp_path)


def test_output_is_clean_of_terminal_controls(tmp_path: Path, klineage: Command) -> None:
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(GOOD_C + b"// \x1b]0;owned\x07 \x1b[31m\n")
    klineage("new", kernel, "--workload", "gemm", "-w", tmp_path / "w")
    shown = klineage("show", "gemm-c", "0", "--source", "-w", tmp_path / "w").stdout
    assert "\x1b" not in shown
    assert "owned" in shown
