"""features and derive, as typed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..messages_server import MessagesServer, Reply

Json = Callable[..., Any]
Command = Callable[..., subprocess.CompletedProcess[str]]
EXPERTS = Path(__file__).parents[2] / "experts"


def test_features_are_shown_settled_and_the_steps_derived(
    tmp_path: Path, klineage_json: Json, klineage: Command
) -> None:
    file = EXPERTS / "add_rmsnorm" / "c" / "kernel.c"
    lineage = klineage_json("new", file, "--workload", "add_rmsnorm", "-w", tmp_path)["id"]
    of_file = klineage_json("features", file)
    shown = klineage_json("features", lineage, "-w", tmp_path)
    assert of_file["kernel"] == shown["kernel"]
    assert of_file["features"] == shown["features"]
    simd = next(row for row in shown["features"] if row["name"] == "simd")
    lines = file.read_text().splitlines()
    assert simd["state"] == "present"
    assert all("vec" in lines[number - 1] for number in simd["lines"])

    settled = klineage_json(
        "features", lineage, "--settle", "fusion=present", "--why", "one sweep", "-w", tmp_path
    )
    fusion = next(row for row in settled["features"] if row["name"] == "fusion")
    assert (fusion["state"], fusion["settled_by"]) == ("present", "A. Curator")
    klineage("undo", lineage, "-w", tmp_path)
    again = klineage_json("features", lineage, "-w", tmp_path)
    assert again == shown

    refused = klineage("features", lineage, "--settle", "fusion", "--why", "no", "-w", tmp_path, ok=False)
    assert refused.returncode == 1
    assert "write NAME=present or NAME=absent" in refused.stderr
    klineage("walk", lineage, "--max-steps", "1", "-w", tmp_path)
    (row,) = klineage_json("derive", lineage, "1", "-w", tmp_path)
    assert (row["state"], row["how"], row["confirmed"]) == (1, "derived", True)
    assert row["by"].startswith("rules:")
    wrong = tmp_path / "mine.c"
    wrong.write_bytes(b"void nothing(void) {}\n")
    replayed = klineage("derive", lineage, "1", "--file", wrong, "-w", tmp_path, ok=False)
    assert replayed.returncode == 1
    assert "replayed" in replayed.stdout
    assert "does not bring" in replayed.stdout


def test_a_model_is_asked_about_what_is_unknown_and_a_person_decides(
    tmp_path: Path, klineage_json: Json, klineage: Command, messages: MessagesServer
) -> None:
    file = EXPERTS / "add_rmsnorm" / "c" / "kernel.c"
    lineage = klineage_json("new", file, "--workload", "add_rmsnorm", "-w", tmp_path)["id"]
    stored = 1 + next(
        n for n, line in enumerate(file.read_text().splitlines()) if "*(vec *)(residual_out" in line
    )
    answer = {
        "mechanism": "fusion", "place": "kernel.c::add_rmsnorm", "state": "present", "why": "Both in one sweep.\x1b[31m",
        "citations": [{"line": 1, "quote": "/"}, {"line": stored, "quote": "*(vec *)(residual_out"}],
    }  # fmt: skip
    messages.say(Reply({"answers": [answer]}))
    ask = ("features", lineage, "--audit", "model", "--budget", "1", "-w", tmp_path)
    shown = klineage(*ask).stdout
    assert "says present: Both in one sweep." in shown
    assert "UNSUPPORTED: what it quotes of line 1 is too short" in shown
    assert "\x1b" not in shown
    fusion = next(row for row in klineage_json(*ask)["features"] if row["name"] == "fusion")
    assert (fusion["state"], fusion["opinion"]["supported"]) == ("unknown", False)
    assert len(messages.requests) == 1, "the answer was paid for"


TILE = """#include <math.h>
#include <stdint.h>
#define SUMS 4
void norms(const float *x, float *y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++) {
    float sums[SUMS] = {0}, rest = 0;
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4)
      for (int s = 0; s < SUMS; s++) sums[s] += x[r * columns + c + s] * x[r * columns + c + s];
    for (; c < columns; c++) rest += x[r * columns + c] * x[r * columns + c];
    for (int s = 0; s < SUMS; s++) rest += sums[s];
    y[r] = sqrtf(rest);
  }
}
"""


def test_a_walk_says_what_rules_see_and_leave_in(tmp_path: Path, klineage: Command) -> None:
    (tmp_path / "tile.c").write_text(TILE)
    workload = Path(__file__).parents[1] / "series" / "row_norms"
    klineage("new", tmp_path / "tile.c", "--workload", workload, "-w", tmp_path, "--id", "tile")
    walked = klineage("walk", "tile", "-w", tmp_path).stdout
    assert "0 accepted, 0 rejected; stopped at: simplest form" in walked
    told = f"klineage propose tile --all -w {tmp_path}"
    assert f"rules see 1 mechanism that they cannot take out ({told} says why)" in walked
