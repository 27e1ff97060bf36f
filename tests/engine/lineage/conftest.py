"""Real repositories, a fixed user, and a clock that the tests turn."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.kernel import Feature
from klineage.lineage import Meta, StepRecord, Workspace

Plain = Callable[..., str]


@pytest.fixture(autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only configuration that git sees: a user with a name. Returns its file."""
    config = tmp_path_factory.mktemp("home") / "gitconfig"
    config.write_text("[user]\n\tname = Ann Curator\n\temail = ann@example.org\n")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return config


@pytest.fixture
def plain() -> Plain:
    """Plain git: ``plain(folder, "log", ...)`` returns what it prints."""

    def run(folder: Path, *args: str, data: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *args],
            input=data,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def meta() -> Meta:
    return Meta(
        "gemm", "GEMM in C", "c", "cpu-x86-64-v3", "gemm", "kernel.c", "gemm", (("TILE", 4),), ("-g",)
    )


@pytest.fixture
def record() -> Callable[..., StepRecord]:
    """``record(3)``: what a caller says of step 3."""

    def make(number: int, **changes: object) -> StepRecord:
        said: dict[str, object] = {
            "subject": f"Remove mechanism {number}",
            "body": "It is here for a reason.\n\nWhich is this one.",
            "action": "unroll",
            "locus": "kernel.c::gemm/for[k]",
            "removes": (Feature("kernel.c::gemm/for[k]", "unroll"),),
            "settings": {"factor": "4"},
            "proposer": "rules:unroll",
            "who": "Bo Reviewer",
            "why": "it helps nobody",
            "gate": "pass",
            "effect": "slower",
            "ratio": 1.5,
            "profile": "[1.4, 1.6] 3 ms of 2 ms",
            "trust": "measured-cpu",
            "platform": "cpu-x86-64-v3",
            "kernel": f"{number:064x}",
        }
        return StepRecord(**{**said, **changes})  # type: ignore[arg-type]

    return make


def source(number: int) -> bytes:
    """A kernel whose bytes say which step it is of, with every kind of line ending."""
    return b"/* %d */\r\nfor (;;)\n\tx++;\ry\xff\n// no newline" % number


@pytest.fixture
def kernel() -> Callable[[int], bytes]:
    return source


@pytest.fixture
def report() -> Callable[[int], str]:
    return lambda number: json.dumps({"step": number, "samples": [1.5, 2.5]}, indent=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    opened = Workspace.create(tmp_path / "work")
    yield opened
    opened.close()


@pytest.fixture
def walk(
    workspace: Workspace, meta: Meta, record: Callable[..., StepRecord], report: Callable[[int], str]
) -> Workspace:
    """A workspace with a lineage "gemm" of an expert and three accepted steps."""
    workspace.new(meta, {"kernel.c": source(0), "workload.py": b"SIZES = {}\r\n"}, "Ann", report(0))
    for number in range(1, 4):
        workspace.accept("gemm", record(number), {"kernel.c": source(number)}, report(number))
    return workspace
