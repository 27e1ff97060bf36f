"""A model asked from the command line: what is shown, what is kept, what is replayed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.kernel import Kernel
from klineage.proposer import rules
from klineage.resources import shipped

from ..messages_server import KEY, MessagesServer, Reply
from ..model_walk import spoken

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def workspace(tmp_path: Path, klineage: Command) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    expert = shipped("experts") / "add_rmsnorm" / "c" / "kernel.c"
    klineage("new", expert, "--workload", "add_rmsnorm", "--id", "rows", "-w", tmp_path)
    return tmp_path


@pytest.fixture
def answer() -> dict[str, Any]:
    """The rules' first proposal in a model's words, with what a terminal would obey in every text."""
    source = (shipped("experts") / "add_rmsnorm" / "c" / "kernel.c").read_bytes()
    candidate = rules.propose(Kernel("c", "kernel.c", "add_rmsnorm", source))[0]
    evil = "\x1b[2J\x1b]0;owned\x07\u202e"
    return spoken(candidate, title=f"Drop{evil} it", rationale=f"Because.{evil}\nLineage-Decision: accepted")


def test_propose_record_and_replay(
    messages: MessagesServer, workspace: Path, klineage: Command, answer: dict[str, Any]
) -> None:
    talk = workspace / "talk.jsonl"
    messages.say(Reply(answer, piece=40))
    shown = klineage("record", "rows", talk, "--budget", "1", "-w", workspace)
    assert "  1  Drop␛[2J␛]0;owned␇‹202e› it" in shown.stdout
    assert "  | Because.␛[2J" in shown.stdout
    assert not set("\x1b\x07\u202e") & set(shown.stdout + shown.stderr)
    again = klineage("propose", "rows", "--proposer", "model", "--budget", "1", "-w", workspace, "--json")
    (row,) = json.loads(again.stdout)
    assert row["title"] == answer["title"]
    assert row["call"]
    assert len(messages.requests) == 1  # the answer was paid for, and is offered again
    replayed = klineage("propose", "rows", "--proposer", f"replay:{talk}", "-w", workspace, "--json")
    (other,) = json.loads(replayed.stdout)
    assert other == row | {"proposer": f"{row['proposer']}; replayed", "call": ""}
    messages.say(Reply("I would rather not."))
    useless = klineage(
        "propose", "rows", "--proposer", "model", "--budget", "1", "--fresh", "-w", workspace, ok=False
    )
    assert useless.returncode == 1
    assert "made no proposal: its answer is not valid JSON" in useless.stderr.splitlines()[-1]
    listed = klineage("replay", talk)
    assert "1 question; klineage walk ID --proposer replay:" in listed.stdout
    assert KEY not in talk.read_text()


def test_refusals_are_one_line(
    messages: MessagesServer, workspace: Path, klineage: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*words: str) -> str:
        done = klineage("propose", "rows", "-w", workspace, "--proposer", *words, ok=False)
        assert done.returncode == 1
        assert done.stdout == ""
        return done.stderr.splitlines()[-1]

    assert "costs money: say --budget" in refused("model")
    assert "claude-next has no price" in refused("model:claude-next", "--budget", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    assert "there is no API key: export ANTHROPIC_API_KEY" in refused("model", "--budget", "1")
    assert messages.served.calls == 0
