"""ablate and admit on the command line; gates are not run here, a test says what they show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.gate import Report
from klineage.kernel import Kernel
from klineage.proposer import rules
from klineage.skill.ablation import measuring
from klineage.skill.admission import trying
from klineage.skill.library import Library
from klineage.skill.lift import source_of
from klineage.skill.lift.shelving import lift
from klineage.walk import trust
from klineage.workload import Workload

from klineage_tui.cli import main

from ..engine.skill.lineages import Lineage, Showed, made, report

Said = Callable[..., str]
TARGET = "experts/rmsnorm/c/reference.c"


@pytest.fixture(scope="module")
def lineage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace with softmax sealed and lifted, whose tile of sums gained 1.5x."""
    folder = tmp_path_factory.mktemp("trials")
    with pytest.MonkeyPatch.context() as patch, made(folder / "work") as workspace:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        Lineage.open(workspace, "softmax").seal({"register-tile": Showed(1 / 1.5)})
        trust.trust_repository(workspace)
        Library.of(workspace).save_all([one.card for one in lift(source_of(workspace))], "Ann", "lifted")
        yield folder / "work"


@pytest.fixture(autouse=True)
def gates(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(
        kernel: Kernel, baseline: Kernel | None, workload: Workload, platform: str, *_: object, **__: object
    ) -> Report:
        def cost(of: Kernel) -> float:
            return 1.0 / (2 if "register_tiling" in {f.name for f in rules.features(of)} else 1)

        ratio = cost(kernel) / cost(baseline) if baseline is not None else 1.0
        return report(kernel, baseline or kernel, workload, platform, Showed(ratio))

    monkeypatch.setattr(measuring, "judged", judged)
    monkeypatch.setattr(trying, "judged", judged)


@pytest.fixture
def klineage(lineage: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    monkeypatch.setenv("XDG_STATE_HOME", str(lineage.parent / "state"))

    def run(*words: str, code: int = 0) -> str:
        assert main([*words, "-w", str(lineage)]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_an_ablation_is_a_matrix_and_goes_into_the_cards(klineage: Said) -> None:
    said = klineage("ablate", "softmax-c", "--record")
    line = next(line for line in said.splitlines() if line.startswith("K2 register_tiling  "))
    assert line.count("2.00x ±1.0%") == 3
    assert "measured-cpu, thread_cpu_time" in said
    assert "written into c.register-tile" in said
    shown = klineage("card", "show", "c.register-tile")
    assert "position: first" in shown
    assert "position: last" in shown
    row = json.loads(klineage("ablate", "softmax-c", "--json"))
    assert {"lineage", "workload", "platform", "optimizations", "offers", "recorded"} == set(row)
    assert row["optimizations"][1]["last"]["shown"]["gain"] == pytest.approx(2.0)


def test_the_last_ablation_is_shown_again_without_a_gate(
    klineage: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = klineage("ablate", "softmax-c", "--json")

    def gated(*_: object, **__: object) -> Report:
        raise AssertionError("nothing is to be gated")

    monkeypatch.setattr(measuring, "judged", gated)
    assert json.loads(klineage("ablate", "softmax-c", "--kept", "--json")) == json.loads(measured)


def test_a_trial_says_where_how_and_what_it_comes_to(klineage: Said) -> None:
    name = f"{TARGET} less prefetch, unroll, simd, alignment, register_tiling"
    dry = klineage("admit", "c.register-tile", "--on", TARGET, "--less", "register_tiling", "--dry-run")
    assert "attempt 1 by rules:register-tile: accepted, measured-cpu" in dry
    assert "not recorded" in dry
    assert "status: hypothesis" in klineage("card", "show", "c.register-tile")
    row = json.loads(klineage("admit", "c.register-tile", "--on", name, "--json"))
    assert (row["accepted"], row["admits"], row["status"]) == (True, True, "admitted")
    assert row["attempts"][0]["gain"]["trust"] == "measured-cpu"
    shown = klineage("card", "show", "c.register-tile")
    assert "status: admitted" in shown
    assert name in shown


def test_what_cannot_be_tried_is_refused_in_a_sentence(klineage: Said, tmp_path: Path) -> None:
    assert "declares no effect beyond noise" in klineage("admit", "c.restrict", "--on", TARGET, code=1)
    assert "has register_tiling already" in klineage("admit", "c.register-tile", "--on", TARGET, code=1)
    assert "neither a lineage of" in klineage("admit", "c.register-tile", "--on", "nowhere.c", code=1)
    assert "costs money" in klineage(
        "admit", "c.register-tile", "--on", f"{TARGET} less register_tiling", "--with", "model", code=1
    )
    mine = tmp_path / "mine.c"
    mine.write_bytes(b"#include <stdint.h>\nvoid rmsnorm(void) {}\n")
    said = klineage(
        "admit", "c.register-tile", "--on", f"{TARGET} less register_tiling", "--with", "person", "--file", str(mine), code=1,
    )  # fmt: skip
    assert "attempt 1 by person: refused" in said
    assert "does not bring in register_tiling" in said
