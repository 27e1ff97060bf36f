"""The main job from the command line: every shipped expert, from demo to a sealed lineage in plain git."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.platform import detect

from .commands import git

#: Accepted steps at least. These are quick ones; that rules take every shipped expert to its simplest form and
#: back is tested without gates in tests/engine/rules.
EXPERTS = {"add_rmsnorm-triton": 4, "topk-c": 4}
TRAILERS = {
    "Lineage-Id", "Lineage-Step", "Lineage-Direction", "Lineage-Action", "Lineage-Locus", "Lineage-Removes", "Lineage-Proposer",
    "Lineage-Decision", "Lineage-Gate", "Lineage-Compile", "Lineage-Correctness", "Lineage-Profile", "Lineage-Trust",
    "Lineage-Platform", "Lineage-Kernel", "Lineage-Schema",
}  # fmt: skip

Json = Callable[..., Any]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "workspace"


@pytest.mark.parametrize("lineage", EXPERTS)
def test_an_expert_walks_to_a_sealed_lineage(
    lineage: str, workspace: Path, klineage_json: Json, klineage: Command
) -> None:
    assert lineage in {row["id"] for row in klineage_json("demo", workspace, "--no-app")}
    walked = klineage_json("walk", lineage, "-w", workspace)
    accepted = [step for step in walked["steps"] if step["decision"] == "accepted"]
    assert walked["stopped"] == "simplest form"
    assert len(accepted) >= EXPERTS[lineage], [step["subject"] for step in accepted]
    assert klineage_json("propose", lineage, "-w", workspace) == []

    sealed = klineage_json("seal", lineage, "-w", workspace)
    log = klineage_json("log", lineage, "-w", workspace)
    assert [step["commit"] for step in log] == [step["commit"] for step in sealed]
    assert len(sealed) == len(accepted) + 1
    assert [step["number"] for step in sealed] == list(range(len(sealed)))
    for step in accepted:
        assert step["removes"], f"{step['subject']} claims to remove nothing"
        assert step["gate"].startswith("pass")
    wanted = "measured-cpu" if lineage.endswith("-c") else "interpreted"
    assert {step["trust"] for step in accepted} <= {wanted, "measured-gpu"}

    check_trailers(workspace, f"walk/{lineage}", len(accepted), TRAILERS)
    forward = (TRAILERS - {"Lineage-Removes"}) | {"Lineage-Adds", "Lineage-Forward", "Lineage-Reverses"}
    check_trailers(workspace, f"lineage/{lineage}", len(accepted), forward)
    expert = Path(__file__).parents[2] / "experts" / lineage.rpartition("-")[0] / lineage.rpartition("-")[2]
    filename = "kernel.c" if lineage.endswith("-c") else "kernel.py"
    last = subprocess.run(
        ["git", "-C", workspace, "show", f"lineage/{lineage}:{filename}"], capture_output=True, check=True
    ).stdout
    assert last == (expert / filename).read_bytes(), "the sealed lineage ends in other bytes than the expert"
    assert klineage("blame", lineage, "-w", workspace).stdout.count("\n") == last.count(b"\n")


def check_trailers(workspace: Path, branch: str, steps: int, wanted: set[str]) -> None:
    commits = git(workspace, "rev-list", "--reverse", branch).split()
    assert len(commits) == steps + 1
    for number, commit in enumerate(commits):
        message = git(workspace, "show", "-s", "--format=%B", commit)
        parsed = subprocess.run(
            ["git", "-C", workspace, "interpret-trailers", "--parse"],
            input=message,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        keys = {line.partition(":")[0] for line in parsed.splitlines()}
        values = dict(line.partition(": ")[::2] for line in parsed.splitlines())
        assert values["Lineage-Step"] == str(number)
        if number:
            assert keys >= wanted, wanted - keys


def test_a_bundle_carries_a_lineage(
    workspace: Path, tmp_path: Path, klineage_json: Json, klineage: Command
) -> None:
    klineage("demo", workspace, "--no-app")
    klineage("walk", "add_rmsnorm-c", "-w", workspace, "--max-steps", "1")
    klineage("bundle", "create", "add_rmsnorm-c", tmp_path / "one.bundle", "-w", workspace)
    klineage("bundle", "open", tmp_path / "one.bundle", "-w", tmp_path / "elsewhere")
    there = klineage_json("log", "add_rmsnorm-c", "--backward", "-w", tmp_path / "elsewhere")
    assert there == klineage_json("log", "add_rmsnorm-c", "--backward", "-w", workspace)


def test_decisions_by_hand(tmp_path: Path, klineage_json: Json, klineage: Command) -> None:
    klineage("demo", tmp_path, "--no-app")
    proposals = klineage_json("propose", "add_rmsnorm-c", "-w", tmp_path)
    rejected = klineage_json("reject", "add_rmsnorm-c", "1", "--why", "later", "-w", tmp_path)
    assert rejected["decision"] == "rejected"
    assert rejected["why"] == "later"
    after = klineage_json("propose", "add_rmsnorm-c", "-w", tmp_path)
    assert after[-1]["title"] == proposals[0]["title"], "a rejected proposal comes last"
    assert after[-1]["rejected"] == "later"

    mine = tmp_path / "mine.c"
    mine.write_bytes(git(tmp_path, "show", "walk/add_rmsnorm-c:kernel.c").replace("\n\n", "\n", 1).encode())
    own = ("--file", mine, "--title", "Drop a blank line", "--why", "no gain", "-w", tmp_path)
    assert klineage_json("reject", "add_rmsnorm-c", *own)["subject"] == "Drop a blank line"

    step = klineage_json("accept", "add_rmsnorm-c", "1", "-w", tmp_path)
    assert step["decision"] == "accepted"
    assert step["who"].startswith("A. Curator")
    assert len(klineage_json("log", "add_rmsnorm-c", "-w", tmp_path)) == 2
    klineage("undo", "add_rmsnorm-c", "-w", tmp_path)
    assert len(klineage_json("log", "add_rmsnorm-c", "-w", tmp_path)) == 1
    klineage("redo", "add_rmsnorm-c", "-w", tmp_path)
    log = klineage_json("log", "add_rmsnorm-c", "-w", tmp_path)
    assert [row["commit"] for row in log][-1] == step["commit"]

    shown = klineage_json("show", "add_rmsnorm-c", "1", "-w", tmp_path)
    assert shown["reports"][0]["kernel"] == step["kernel"]
    assert klineage_json("diff", "add_rmsnorm-c", "0", "1", "-w", tmp_path)["diff"].startswith(
        "--- a/kernel.c"
    )


def test_a_cuda_lineage_opens_and_takes_no_step_that_nobody_judged(
    workspace: Path, tmp_path: Path, klineage_json: Json, klineage: Command
) -> None:
    expert = Path(__file__).parents[2] / "experts" / "add_rmsnorm" / "cuda" / "kernel.cu"
    lineage = klineage_json("new", expert, "--workload", "add_rmsnorm", "-w", workspace)["id"]
    proposed = klineage_json("propose", lineage, "-w", workspace)
    assert len(proposed) >= 4
    everything = klineage_json("propose", lineage, "--all", "-w", workspace)
    hindered = [row for row in everything if row["number"] is None]
    assert everything == proposed + hindered
    assert "after unroll, which stands on it" in {row["why_not"] for row in hindered}
    if detect().gpu is not None:
        pytest.skip("there is a GPU: benchmarks/gpu/cuda_surface.py judges there")
    mine = tmp_path / "kernel.cu"
    mine.write_bytes(expert.read_bytes().replace(b"VECTORS = 2", b"VECTORS = 1"))
    for words in (
        ["walk", lineage],
        ["accept", lineage],
        ["accept", lineage, "--file", mine],
        ["seal", lineage],
    ):
        refused = klineage(*words, "-w", workspace, ok=False)
        assert refused.returncode == 1
        assert refused.stderr.startswith("klineage: ")
        if words[0] != "seal" and shutil.which("nvcc"):
            assert "compiled and checked statically, not run; gate it on a GPU host" in refused.stderr
    assert len(klineage_json("log", lineage, "-w", workspace)) == 1
    shown = klineage("gate", mine, "--workload", "add_rmsnorm", ok=False)
    assert shown.returncode == 1
    assert "UNSUPPORTED" in shown.stdout
