"""A walk by an agent's command line, from the configuration to the simplest form, and its recording replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
STAND_IN = Path(__file__).parents[1] / "agents" / "stand_in.py"
WORKLOAD = Path(__file__).parents[1] / "series" / "row_norms" / "workload.py"
KERNEL = b"""\
#include <math.h>
#include <stdint.h>

void row_norms(const float * restrict x, float * restrict y, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; ++r) {
        float total = 0.0f;
        for (int64_t i = 0; i < columns; ++i)
            total += x[r * columns + i] * x[r * columns + i];
        y[r] = sqrtf(total);
    }
}
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with one command, and the kernel that it works on."""
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (folder / "klineage").mkdir(parents=True)
    line = json.dumps(f"'{sys.executable}' '{STAND_IN}' walk")
    (folder / "klineage" / "config.toml").write_text(f"[proposer.commands]\nmine = {line}\n")
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(KERNEL)
    return kernel


def test_a_scripted_agent_walks_a_kernel_to_its_simplest_form_and_is_replayed(
    configured: Path, tmp_path: Path, klineage: Command, klineage_json: Callable[..., Any]
) -> None:
    one, two, recording = tmp_path / "one", tmp_path / "two", tmp_path / "walk.jsonl"
    for folder in (one, two):
        klineage("new", configured, "--workload", WORKLOAD, "-w", folder)
    walked = klineage_json(
        "walk", "row_norms-c", "--proposer", "command:mine", "--record", recording, "-w", one
    )
    assert walked["stopped"] == "simplest form"
    assert [(step["subject"], step["action"]) for step in walked["steps"]] == [
        ("Let the pointers overlap", "restrict")
    ]
    assert {step["proposer"] for step in walked["steps"]} == {"command:mine"}
    again = klineage_json("walk", "row_norms-c", "--proposer", f"replay:{recording}", "-w", two)
    assert [step["kernel"] for step in again["steps"]] == [step["kernel"] for step in walked["steps"]]
    (edge,) = klineage_json("derive", "row_norms-c", "--proposer", "command:mine", "-w", one)
    assert (edge["action"], edge["how"], edge["by"]) == ("restrict", "derived", "command:mine")
