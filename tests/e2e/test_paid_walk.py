"""walk --proposer, ledger and branch, as a person types them; the model is a server on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ..messages_server import MessagesServer, Reply
from ..model_walk import RulesModel, nothing

SERIES = Path(__file__).parents[1] / "series" / "row_norms"
Run = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path, klineage: Run) -> Path:
    """A workspace with one lineage, "norms", that two steps walk to its end."""
    kernel = tmp_path / "kernel.c"
    kernel.write_bytes((SERIES / "v2.c").read_bytes())
    klineage("new", kernel, "--workload", SERIES, "-w", tmp_path / "w", "--id", "norms")
    return tmp_path / "w"


def test_a_model_walks_under_a_budget(
    here: Path, klineage: Run, klineage_json: Json, messages: MessagesServer
) -> None:
    messages.otherwise = RulesModel()
    refused = klineage("walk", "norms", "-w", here, "--proposer", "model", ok=False)
    assert refused.returncode == 1
    assert "model costs money: say --budget DOLLARS" in refused.stderr
    estimate = klineage_json("ledger", "norms", "-w", here, "--estimate")
    assert (estimate["calls"], "guess" in estimate["basis"]) == (2, True)

    messages.say(Reply("{", stop_reason="max_tokens"))
    walked = klineage("walk", "norms", "-w", here, "--proposer", "model", "--budget", "5").stdout
    assert walked.startswith("norms: about $0.")
    assert "\n?     " in walked
    assert "norms: 1 accepted, 0 rejected; stopped at: simplest form" in walked
    assert "norms has cost $0.0" in walked
    assert "of $5 (1 %)" in walked
    ledger = klineage_json("ledger", "norms", "-w", here)
    served = messages.served
    assert ledger["total"]["usage"] == {
        "input": served.input,
        "cached": served.cache_read,
        "cache_write": served.cache_write,
        "output": served.output,
    }
    assert [row["state"] for row in ledger["rows"]] == ["settled"] * 3
    assert sum(Decimal(row["dollars"]) for row in ledger["rows"]) == Decimal(ledger["total"]["dollars"])
    by_step = klineage_json("ledger", "norms", "-w", here, "--by", "step")["rows"]
    assert [row["step"].split("  ")[0] for row in by_step] == ["norms 0", "norms 1"]
    assert "3 calls, $0.0" in klineage("ledger", "-w", here, "--by", "day").stdout
    again = klineage_json("ledger", "norms", "-w", here, "--estimate", "--best-of", "3")
    assert "3 earlier calls of claude-sonnet-5-5" in again["basis"]


def test_a_budget_ends_a_walk_before_the_call_that_might_pass_it(
    here: Path, klineage: Run, klineage_json: Json, messages: MessagesServer
) -> None:
    messages.otherwise = RulesModel()
    words = ("walk", "norms", "-w", here, "--proposer", "model:claude-haiku-4-5")
    told = klineage_json(*words, "--budget", "0.10")
    assert (told["stopped"], told["steps"], messages.served.calls) == ("spending limit", [], 0)
    assert "the next call may cost up to $0.1" in told["note"]
    assert told["spending"] == {"dollars": "0", "at_most": "0", "unpriced": 0}
    unknown = klineage_json("walk", "norms", "-w", here, "--proposer", "model:qwen", "--budget", "9")
    assert unknown["stopped"] == "spending limit"
    assert "qwen has no price" in unknown["note"]
    messages.say(Reply(nothing("It is plain enough.")))
    unlimited = ("walk", "norms", "-w", here, "--proposer", "model:qwen", "--budget", "none")
    early = klineage(*unlimited, "--hint", "is it?").stdout
    assert "model:qwen sees nothing more to take out; the detectors still see restrict" in early
    free = klineage(*unlimited, "--max-steps", 1)
    assert "norms has cost $0.0000 and 2 without a price" in free.stdout
    assert "still see" not in free.stdout
    assert klineage("ledger", "-w", here).stdout.count("unpriced") == 2


def test_a_person_is_asked(here: Path, klineage: Run) -> None:
    words = [*("walk", "norms", "-w", str(here), "--policy", "ask")]
    from .commands import KLINEAGE

    def answer(text: str) -> str:
        return subprocess.run(
            [*KLINEAGE, *words], input=text, capture_output=True, text=True, timeout=600, check=True
        ).stdout

    assert "0 accepted, 0 rejected; stopped at: cancelled" in answer("")
    assert "0 accepted, 1 rejected; stopped at: simplest form" in answer("what?\nreject not like this\n")
    klineage("undo", "norms", "-w", here)
    taken = answer("accept\n")
    assert "the gate says pass" in taken
    assert "1 accepted, 0 rejected; stopped at: simplest form" in taken
    assert "leave --json out" in klineage(*words, "--json", ok=False).stderr


def test_a_branch_goes_on_by_itself(here: Path, klineage: Run, klineage_json: Json) -> None:
    klineage("walk", "norms", "-w", here)
    told = klineage_json("branch", "norms", "0", "--as", "other", "-w", here)
    assert (told["id"], told["of"], told["head"]["number"]) == ("other", "norms", 0)
    assert klineage_json("log", "norms", "-w", here)[-1]["number"] == 1
    klineage("walk", "other", "-w", here)
    assert klineage_json("log", "other", "-w", here)[-1]["number"] == 1
    taken = klineage("branch", "norms", "1", "--as", "other", "-w", here, ok=False)
    assert "there is a lineage 'other' already" in taken.stderr


WRONG_CALLS = [
    (("walk", "norms", "--max-steps", "0"), "--max-steps needs a whole number of at least 1"),
    (("walk", "norms", "--best-of", "0"), "--best-of needs a whole number"),
    (("walk", "norms", "--max-minutes", "nan"), "--max-minutes needs a number of minutes"),
    (("walk", "norms", "--budget", "ten"), "--budget cannot be 'ten'"),
    (("walk", "norms", "--proposer", "oracle"), "there is no proposer 'oracle'"),
    (("ledger", "none"), "there is no lineage 'none'"),
    (("ledger", "--estimate"), "--estimate is for one lineage"),
    (("ledger", "norms", "--estimate", "qwen"), "qwen has no price"),
    (("ledger", "norms", "--best-of", "2"), "belong to --estimate"),
    (("branch", "norms", "7"), "norms has no step '7'"),
    (("branch", "norms", "0", "--as", "Ümläut"), "cannot name a lineage"),
]


def test_a_wrong_call_is_one_clear_line(here: Path, klineage: Run) -> None:
    for words, said in WRONG_CALLS:
        done = klineage(*words, "-w", here, ok=False)
        assert done.returncode == 1, words
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_typo_in_the_prices_is_named_and_nothing_is_spent(
    here: Path, klineage: Run, messages: MessagesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config" / "klineage"
    config.mkdir(parents=True)
    (config / "prices.toml").write_text("[models.claude-sonnet-5-5]\noutptu = 3\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config.parent))
    words = ("walk", "norms", "-w", here, "--proposer", "model", "--budget", "5")
    refused = klineage(*words, ok=False)
    assert f"{config / 'prices.toml'}: unknown key 'outptu' in [models.claude-sonnet-5-5]" in refused.stderr
    assert messages.served.calls == 0
    (config / "prices.toml").write_text("[models.claude-sonnet-5-5]\noutput = 3\n")
    assert "claude-sonnet-5-5" in klineage("ledger", "-w", here, "--prices").stdout
    yours = [
        line for line in klineage("ledger", "-w", here, "--prices").stdout.splitlines() if "yours" in line
    ]
    assert [line.split()[:5] for line in yours] == [["claude-sonnet-5-5", "2", "0.10", "2.50", "3"]]
