"""check and probe on the command line: what they print, what they return, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from klineage.gate import Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.skill.card import Anchor, Card, Evidence, Precondition, Probe
from klineage.skill.file import render
from klineage.skill.library import Library
from klineage.skill.probe import judging
from klineage.skill.transitions import transitions
from klineage.walk.trust import trust
from klineage.workload import Workload

from klineage_tui.cli import main

Said = Callable[..., str]
ASKED = (
    Precondition("p1", "layout", "Rows are wide.", "columns >= 64"),
    Precondition("p2", "data-types", "Single precision.", "element == 'fp64'"),
    Precondition("p3", "hardware", "A matrix unit.", "capability >= 80"),
    Precondition("p4", "pipeline", "Nobody waits \x1b[31mred\x1b[0m."),
)


def _card(*preconditions: Precondition, evidence: tuple[Evidence, ...] = ()) -> Card:
    return Card("c.tile", "Tile it", "register_tiling", "c", preconditions=preconditions, evidence=evidence)


@pytest.fixture
def klineage(capsys: pytest.CaptureFixture[str], copied: Workspace) -> Said:
    def run(*words: str, code: int = 0) -> str:
        assert main([*words, "-w", str(copied.path)]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


@pytest.fixture
def library(copied: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Library:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    trust(copied, "softmax-c")
    return Library.of(copied)


@pytest.mark.parametrize(
    ("query", "said", "places"),
    [
        ("(goto_statement) @anchor", "its anchor finds no place in this kernel", 0),
        ("(for_statement) @anchor", " more", 4),
        ("(no_such_node) @anchor", "Invalid node type", None),
        ("", "has no query", None),
    ],
)
def test_check_says_where_the_anchor_is_found(
    klineage: Said, tmp_path: Path, query: str, said: str, places: int | None
) -> None:
    file = tmp_path / "c.tile.md"
    file.write_bytes(render(replace(_card(), anchor=Anchor("A loop.", query))))
    words = ("check", str(file), "experts/softmax/c/kernel.c", "--platform", "cpu-x86-64-v3")
    assert said in klineage(*words)
    anchor = json.loads(klineage(*words, "--json"))["anchor"]
    if places is None:
        assert said in anchor["problem"] and anchor["places"] == []
    else:
        assert (
            anchor["problem"] is None
            and (len(anchor["places"]) >= places)
            and (places or not anchor["places"])
        )
        assert all(
            place["line"] > 0 and place["locus"].startswith("kernel.c::") for place in anchor["places"]
        )


def test_check_answers_a_cards_file_precondition_by_precondition(klineage: Said, tmp_path: Path) -> None:
    file = tmp_path / "c.tile.md"
    file.write_bytes(render(_card(*ASKED)))
    words = ("check", str(file), "experts/softmax/c/kernel.c", "--platform", "cpu-x86-64-v3")
    said = klineage(*words, code=1)
    assert "p1   HOLDS    Rows are wide." in said and "at bench, columns is" in said
    assert "p2   FAILS" in said and "element is fp32" in said
    assert "p3   UNKNOWN" in said and "capability (90 for nvidia-sm90) is not known of cpu-x86-64-v3" in said
    assert "p4   -" in said and "only a reader can tell" in said
    assert "\x1b" not in said
    rows: dict[str, Any] = json.loads(klineage(*words, "--json", code=1))
    assert [a["state"] for a in rows["answers"]] == ["holds", "fails", "unknown", "unchecked"]
    assert (rows["card"], rows["target"], rows["workload"]) == (
        "c.tile",
        "experts/softmax/c/kernel.c",
        "softmax",
    )


def test_check_asks_a_state_of_a_lineage_and_expressions_of_ones_own(klineage: Said) -> None:
    said = klineage(
        "check", "softmax-c:K0", "--expression", "has('simd')", "--expression", "columns / 0 > 1", code=1
    )
    assert "FAILS    has('simd')" in said and "the kernel has no simd" in said
    assert "UNKNOWN  columns / 0 > 1" in said and "by zero" in said
    last = klineage("check", "softmax-c:K5", "--expression", "has('simd')", "--json")
    assert json.loads(last)["answers"][0] == {
        "key": "", "kind": "", "text": "", "check": "has('simd')", "state": "holds", "why": "the kernel has simd",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("check", "c.tile"), "name the kernel to ask as well"),
        (("check", "c.none", "experts/softmax/c"), "there is no card 'c.none'"),
        (("check", "--expression", "k > 1", "nowhere.c"), "neither a lineage of"),
        (("probe", "c.none"), "there is no card 'c.none'"),
        (("probe", "c.tile", "-p", "p9"), "has no precondition 'p9'; it has p1"),
        (("probe", "c.tile", "--set", "dim=k"), "say --change too"),
        (("probe", "c.tile", "--change", "size", "--set", "dim=k"), "say which with --precondition"),
        (("probe", "c.tile", "-p", "p1", "--change", "size", "--set", "dim"), "--set dim has no value"),
        (("probe", "c.tile", "--on", "gemm-c"), "cites no transition of gemm-c"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(
    klineage: Said, library: Library, copied: Workspace, words: tuple[str, ...], why: str
) -> None:
    commit = transitions(copied, "softmax-c")[0].commit
    library.save(
        _card(ASKED[0], evidence=(Evidence("e1", "transition", "softmax-c", commit),)), "Ann", "mine"
    )
    said = klineage(*words, code=1)
    assert why in said and said.count("\n") == 1


def test_probe_tells_and_writes_what_it_found_and_a_dry_run_writes_nothing(
    klineage: Said, library: Library, copied: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gate(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, *_: object, **__: object
    ) -> Report:
        wide = workload.sizes["bench"]["columns"] >= 64 or baseline is None
        result = StageResult(
            "correctness", Verdict.PASS if wide else Verdict.FAIL, "mismatch", "y[3] is 0, not 2"
        )
        return Report(
            kernel.hash, workload.hash, platform, "2", Trust.MEASURED_CPU, (result,), finished="2026-11-29"
        )

    monkeypatch.setattr(judging, "judged", gate)
    commit = transitions(copied, "softmax-c")[0].commit
    unsure = Precondition("p2", "layout", "Even.", "", Probe("dtype", {"element": "fp32"}))
    library.save(
        _card(ASKED[0], unsure, evidence=(Evidence("e1", "transition", "softmax-c", commit),)), "Ann", "mine"
    )
    before = library.entry("c.tile").revision
    said = klineage("probe", "c.tile", "--dry-run")
    assert "p1   CONFIRMED  columns = " in said and "y[3] is 0, not 2" in said and "measured-cpu" in said
    assert "p2   UNTESTED   the elements are fp32 already" in said
    assert "nothing was written" in said
    assert library.entry("c.tile").revision == before
    asked = ("-p", "p1", "--change", "size", "--set", "dim=columns", "--set", "value=5", "--search", "--json")
    (row,) = json.loads(klineage("probe", "c.tile", *asked))["probes"]
    assert (row["outcome"], row["change"], row["settings"]) == (
        "confirmed",
        "size",
        {"dim": "columns", "value": "5"},
    )
    assert (
        row["boundary"]["rungs"][-1]["outcome"] == "confirmed"
        and "boundary of columns" in row["boundary"]["text"]
    )
    own = library.get("c.tile").preconditions[0].probe
    assert own is not None and own.settings == {"dim": "columns", "value": "5"} and own.outcome == "confirmed"
