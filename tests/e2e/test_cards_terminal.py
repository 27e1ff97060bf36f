"""Cards as a person uses them in a real terminal: sealed, lifted, edited, retired, taken back; a power cut loses nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.lineage import Workspace

from ..engine.skill.lineages import Lineage, Showed
from .commands import KLINEAGE, git
from .terminal import Terminal

Command = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]
LINEAGE = "softmax-c"


@pytest.fixture
def workspace(tmp_path: Path, klineage: Command) -> Path:
    """A workspace with a sealed lineage and no card."""
    folder = tmp_path / "workspace"
    made = Workspace.create(folder)
    Lineage.open(made, "softmax").seal({"vector-types": Showed(0.5)})
    made.close()
    return folder


def test_from_a_sealed_lineage_to_an_edited_card(workspace: Path, klineage_json: Json) -> None:
    with Terminal([*KLINEAGE, str(workspace), "--lineage", LINEAGE], 80, 24) as terminal:
        terminal.wait_for("This walk is sealed")
        terminal.press("L")
        terminal.wait_for("c.vector-types", 60)
        terminal.press("enter")
        terminal.wait_for("need you", 60)
        terminal.wait_for("on no held-out kernel yet")
        terminal.press("enter", "e")
        terminal.wait_for("rests on the old words")
        terminal.press(*"\x15By hand", "\t", *"said shorter", "enter")
        terminal.wait_gone("rests on the old words")
        terminal.wait_for("intent       By hand")  # written: the form shows it
        terminal.press("x")
        terminal.wait_for("why?")
        terminal.press(*"no use", "enter")
        terminal.wait_for("x retired")
        terminal.press("4")
        terminal.wait_for(" hidden")
        terminal.kill()  # a power cut: everything decided so far is on disk

    log = git(workspace, "log", "--format=%s|%b", "library")
    assert "Edit" in log and "said shorter" in log and "no use" in log
    (retired,) = [
        row for row in klineage_json("card", "list", "--json", "-w", workspace) if row["status"] == "retired"
    ]

    with Terminal([*KLINEAGE, str(workspace)], 160, 48) as terminal:
        terminal.wait_for("Library")  # where the person was
        terminal.press("3")
        terminal.wait_for("need you")
        terminal.press("u")
        terminal.wait_for("Taken back")
        terminal.wait_gone("x retired")
        terminal.press("A")
        terminal.wait_for("from steps and cards")
        terminal.wait_for("2.00x ±1.0%")  # what the step was worth when it was sealed
        terminal.press("escape")
        terminal.wait_for("need you")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    shown = klineage_json("card", "show", retired["id"], "--json", "-w", workspace)
    assert "hypothesis" in str(shown) and "By hand" in str(shown)
