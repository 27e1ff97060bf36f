"""Taking a part of a proposal, and naming a step of one's own, on the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.resources import shipped

from klineage_tui.cli import main

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, klineage: Command) -> Path:
    expert = shipped("experts") / "add_rmsnorm" / "c" / "kernel.c"
    klineage("new", expert, "--workload", "add_rmsnorm", "-w", tmp_path / "w")
    return tmp_path / "w"


def test_some_changes_of_a_proposal_are_gated_and_accepted(
    folder: Path, klineage: Command, klineage_json: Callable[..., Any]
) -> None:
    rows = klineage_json("propose", "add_rmsnorm-c", "-w", folder)
    row = next(row for row in rows if row["proposer"] == "rules:unroll")
    shown = klineage("propose", "add_rmsnorm-c", "--diff", "-w", folder).stdout
    count = row["diff"].count("\n-#pragma")
    assert count > 1 and f"change 1 of {count}" in shown and f"change {count} of {count}" in shown
    words = (
        "accept",
        "add_rmsnorm-c",
        row["number"],
        "--hunks",
        "1",
        "--title",
        "Unroll one loop less",
        "-w",
        folder,
    )
    step = klineage_json(*words)
    assert (step["subject"], step["action"], step["decision"]) == ("Unroll one loop less", "unroll", "edited")
    assert step["proposer"] == "person, from rules:unroll"
    diff = klineage("diff", "add_rmsnorm-c", 0, 1, "-w", folder).stdout
    assert sum(line.startswith(("+", "-")) for line in diff.splitlines()[2:]) == 1


def test_what_cannot_be_meant_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = str(shipped("experts") / "add_rmsnorm" / "c" / "kernel.c")
    cases = [
        (["--hunks", "99"], "there is no change number 99"),
        (["--hunks", "0"], "there is no change number 0"),
        (["--hunks", "one"], "write numbers like 1,3 or 2-4"),
        (["--hunks", "1-"], "write numbers like 1,3 or 2-4"),
        (["--hunks", "1", "--file", kernel], "--hunks are those of a proposal"),
        (["--action", "unroll"], "a proposal has its own"),
        (["--file", kernel, "--action", "unrol"], "did you mean 'unroll'? (--new-word takes it as it is)"),
        (["--file", kernel, "--removes", "unroll"], "the edited kernel is the same as the current one"),
    ]
    for words, problem in cases:
        assert main(["accept", "add_rmsnorm-c", *words, "-w", str(folder)]) == 1
        said = capsys.readouterr().err
        assert problem in said and said.count("\n") == 1
    assert main(["log", "add_rmsnorm-c", "-w", str(folder)]) == 0
    assert capsys.readouterr().out.count("\n") == 1  # nothing was taken
