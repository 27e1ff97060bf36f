"""Somebody else's lineage can be read; its code runs only after a person has agreed, once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.walk import Untrusted, Walk, open_workspace

from .commands import git
from .test_refusals import refusal

Command = Callable[..., subprocess.CompletedProcess[str]]

UNPLEASANT = 'print("this ran")'


@pytest.fixture
def theirs(tmp_path: Path, klineage: Command) -> Path:
    """A workspace of another person, whose workload prints when it is loaded."""
    expert = Path(__file__).parents[2] / "experts" / "gemm"
    folder = tmp_path / "gemm"
    folder.mkdir()
    workload = (expert / "workload.py").read_text(encoding="utf-8")
    (folder / "workload.py").write_text(f"{workload}\n{UNPLEASANT}", encoding="utf-8")
    (tmp_path / "kernel.c").write_bytes((expert / "c" / "kernel.c").read_bytes())
    klineage("new", tmp_path / "kernel.c", "--workload", folder, "-w", tmp_path / "theirs")
    return tmp_path / "theirs"


def arrive(way: str, theirs: Path, ours: Path, klineage: Command) -> None:
    if way == "bundle":
        klineage("bundle", "create", "gemm-c", theirs / "gemm-c.bundle", "-w", theirs)
        klineage("bundle", "open", theirs / "gemm-c.bundle", "-w", ours)
    elif way == "clone":
        git(theirs.parent, "clone", "--quiet", "--mirror", str(theirs), str(ours))
    else:
        subprocess.run(["cp", "-r", theirs, ours], check=True)


@pytest.mark.parametrize("way", ["bundle", "clone", "copy"])
def test_what_came_from_elsewhere_is_asked_for_once(way: str, theirs: Path, klineage: Command) -> None:
    ours = theirs.parent / "ours"
    arrive(way, theirs, ours, klineage)
    before = git(ours, "for-each-ref")
    for words in (("walk", "gemm-c"), ("accept", "gemm-c"), ("seal", "gemm-c")):
        message = refusal(klineage, *words, "-w", ours)
        assert "--trust" in message
        assert "gemm-c" in message
        assert str(ours) in message
    assert git(ours, "for-each-ref") == before
    klineage("show", "gemm-c", "0", "--source", "-w", ours)
    klineage("propose", "gemm-c", "-w", ours)
    klineage("accept", "gemm-c", "--trust", "-w", ours)
    klineage("accept", "gemm-c", "-w", ours)


def test_a_second_arrival_is_asked_for_again(tmp_path: Path, theirs: Path, klineage: Command) -> None:
    ours = tmp_path / "ours"
    klineage("new", tmp_path / "kernel.c", "--workload", "gemm", "--id", "mine", "-w", ours)
    arrive("bundle", theirs, ours, klineage)
    workspace = open_workspace(ours)
    assert Walk(workspace, "mine").trusted()
    foreign = Walk(workspace, "gemm-c")
    assert not foreign.trusted()
    with pytest.raises(Untrusted):
        foreign.gate_commit(workspace.head("gemm-c").commit)
    foreign.trust()
    assert foreign.trusted()
    workspace.close()


def test_trust_that_cannot_be_kept_is_said(
    theirs: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = theirs.parent / "file"
    blocked.write_text("")
    arrive("copy", theirs, theirs.parent / "ours", klineage)
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    message = refusal(klineage, "walk", "gemm-c", "--trust", "-w", theirs.parent / "ours")
    assert "XDG_STATE_HOME" in message
