"""The app as a person uses it: a real pseudo-terminal, a real workspace, real gates."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .commands import KLINEAGE, git
from .terminal import Terminal

Command = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]
LINEAGE = "add_rmsnorm-c"


@pytest.fixture
def workspace(tmp_path: Path, klineage: Command) -> Path:
    klineage("demo", tmp_path / "workspace", "--no-app")
    return tmp_path / "workspace"


def app(workspace: Path, columns: int = 160, rows: int = 48, *more: str) -> Terminal:
    return Terminal([*KLINEAGE, str(workspace), "--lineage", LINEAGE, *more], columns, rows)


def test_from_first_paint_to_a_sealed_lineage(workspace: Path, klineage_json: Json) -> None:
    with app(workspace) as terminal:
        terminal.wait_for("PROPOSAL 1 of")
        terminal.press("g")
        terminal.wait_for("a accepts it", 60)
        terminal.press("a")
        terminal.wait_for("● 1 here")
        terminal.press("x")
        terminal.wait_for("why?")
        terminal.press(*"not this one", "enter")
        terminal.wait_for("1 rejected")
        terminal.kill()  # a power cut: everything decided so far is on disk

    log = klineage_json("log", LINEAGE, "--rejected", "-w", workspace)
    assert [row["decision"] for row in log] == ["opened", "accepted", "rejected"]
    assert log[2]["why"] == "not this one"

    with app(workspace) as terminal:
        terminal.wait_for("1 rejected")
        terminal.press("u")
        terminal.wait_gone("1 rejected")
        terminal.press("S")
        terminal.wait_for("enter seals it")
        terminal.press("enter")
        terminal.wait_for("Sealed: 2 states", 90)
        terminal.escape("Sealed: 2 states")
        terminal.press("2")
        terminal.wait_for(f"History  {LINEAGE.partition('-')[0]}")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    assert len(git(workspace, "rev-list", f"lineage/{LINEAGE}").split()) == 2
    assert "Lineage-Adds" in git(workspace, "log", "-1", "--format=%B", f"lineage/{LINEAGE}")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 36), (200, 50)])
def test_sizes(columns: int, rows: int, workspace: Path) -> None:
    with app(workspace, columns, rows) as terminal:
        terminal.wait_for("PROPOSAL")
        terminal.press("2")
        terminal.wait_for("History")
        terminal.press("1")
        terminal.wait_for("PROPOSAL")
        terminal.press("?")
        terminal.wait_for("Commit this gated proposal")
        terminal.escape("Commit this gated proposal")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_a_terminal_that_shrinks_and_grows(workspace: Path) -> None:
    with app(workspace) as terminal:
        terminal.wait_for("PROPOSAL")
        terminal.resize(20, 5)
        terminal.wait_gone("PROPOSAL")
        terminal.resize(100, 30)
        terminal.wait_for("PROPOSAL")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_no_colour_is_honoured(workspace: Path) -> None:
    terminal = Terminal([*KLINEAGE, str(workspace), "--lineage", LINEAGE], 100, 30, {"NO_COLOR": "1"})
    with terminal:
        terminal.wait_for("PROPOSAL")
        colours = {cell.fg for row in terminal.screen.buffer.values() for cell in row.values()}
        assert colours == {"default"}, colours
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_two_apps_on_one_workspace(workspace: Path, klineage: Command) -> None:
    """A decision taken elsewhere is noticed, not overwritten."""
    with app(workspace) as terminal:
        terminal.wait_for("PROPOSAL 1 of")
        terminal.press("g")
        terminal.wait_for("a accepts it", 60)
        klineage("accept", LINEAGE, "1", "-w", workspace)
        terminal.press("a")
        terminal.wait_for("● 1 here")
        terminal.press("q")
        terminal.wait_exit()
    assert len(git(workspace, "rev-list", f"walk/{LINEAGE}").split()) == 2
