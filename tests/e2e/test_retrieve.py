"""retrieve, export and import-cards as a user types them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skills_ref.validator import validate

from ..engine.interop.test_authors import skill
from ..engine.skill.cards_for_tests import a_card, admitted, write_library
from .commands import git
from .test_command_walk import KERNEL, WORKLOAD

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_from_the_authors_cards_to_an_agents_skill(
    klineage: Command, klineage_json: Callable[..., Any], tmp_path: Path
) -> None:
    place, ours = (
        tmp_path / "ws",
        write_library(tmp_path / "ours", admitted(a_card("c.unroll", action="unroll"), "softmax")),
    )
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(KERNEL)
    skill(tmp_path / "theirs")
    (tmp_path / "theirs" / "broken.json").write_text("{")
    done = klineage("import-cards", tmp_path / "theirs", "-w", place)
    assert "cuda.row-sums  from" in done.stdout
    assert "broken.json:1: not valid JSON" in done.stdout
    assert "1 card imported as hypotheses" in done.stdout
    assert "is in the library already" in klineage("import-cards", tmp_path / "theirs", "-w", place).stdout
    assert git(place, "log", "--format=%s", "library").startswith("Import 1 card of the paper's authors\n")

    found = klineage_json(
        "retrieve",
        kernel,
        "--workload",
        WORKLOAD,
        "--platform",
        "cpu-x86-64-v3",
        "--library",
        ours,
        "--library",
        place,
    )
    assert [hit["id"] for hit in found["hits"]] == ["c.unroll"]
    assert found["hidden_hypotheses"] == 1
    said = klineage(
        "retrieve", "--workload", "softmax", "--surface", "cuda", "--all", "--library", place
    ).stdout
    assert "a hypothesis: no held-out trial has admitted it" in said
    why = klineage(
        "retrieve", kernel, "--workload", WORKLOAD, "--why", "cuda.row-sums", "--library", place
    ).stdout
    assert "not yet: needs c (it is written in cuda: its idea has to be put into c)" in why

    skills = tmp_path / "skills"
    assert klineage("export", "--as", "skills", "--to", skills, "--library", place, ok=False).returncode == 1
    klineage("export", "--as", "skills", "--to", skills, "--library", ours, "--library", place, "--all")
    (made,) = skills.iterdir()
    assert validate(made) == []
    assert (made / "references" / "cuda.row-sums.md").is_file()
    klineage("export", "--as", "jsonl", "--to", tmp_path / "records.jsonl", "--library", ours)
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert kinds == ["card", "trial"]


def test_what_does_not_fit_together_is_refused(klineage: Command, tmp_path: Path) -> None:
    ours = write_library(tmp_path / "ours", a_card())
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes(KERNEL)
    for words, said in (
        (["retrieve", kernel], "say --workload"),
        (["retrieve", "--platform", "tpu"], "unknown platform"),
        (["retrieve", "--action", "prefech"], "did you mean 'prefetch'"),
        (["retrieve", "--why", "c.nothing"], "there is no card 'c.nothing'"),
        (["retrieve", "-k", "0"], "-k must be at least 1"),
        (["export", "c.nothing", "--as", "jsonl", "--to", "-"], "there is no card c.nothing"),
        (
            ["export", "--as", "skills", "--to", tmp_path / "x", "--name", "No Name", "--all"],
            "cannot name an Agent Skill",
        ),
    ):
        refused = klineage(*words, "--library", ours, ok=False)
        assert refused.returncode == 1
        assert said in refused.stderr
