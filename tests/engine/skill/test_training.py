"""Training records: every line is one JSON object that says where it is from and how its numbers are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from klineage.interop.training import Shelved, lines, records
from klineage.lineage import Workspace, bundle_create
from klineage.skill.card import Card, Evidence
from klineage.skill.library import Library
from klineage.skill.retrieval.paths import order_of
from klineage.skill.transitions import Transition

from .cards_for_tests import a_card, admitted, write_library
from .strategies import cards


def exported(
    made: list[Card], libraries: list[Library], missing: list[str] | None = None
) -> list[dict[str, Any]]:
    shelved = [Shelved(card, "ours", "f" * 40) for card in made]
    data = b"".join(lines(records(shelved, libraries, missing)))
    return [json.loads(line) for line in data.decode().split("\n")[:-1]]


def of_softmax(known: tuple[Transition, ...]) -> tuple[Transition, ...]:
    return tuple(transition for transition in known if transition.lineage == "softmax-c")


def test_a_card_its_trials_and_the_lineage_that_it_cites(
    lineages: Workspace, known: tuple[Transition, ...]
) -> None:
    steps = of_softmax(known)
    card = admitted(a_card(commit=steps[0].commit), "gemm")
    found = exported([card], [Library.of(lineages)])
    kinds = [record["kind"] for record in found]
    assert kinds == ["card", "trial", *["transition"] * len(steps), *["rejected"] * 4]
    assert all(record["schema"] == 1 and record["provenance"]["exported_by"] for record in found)
    first, trial, step = found[:3]
    assert first["card"]["preconditions"][0]["probe"]["outcome"] == "confirmed"
    assert first["provenance"] == {
        **first["provenance"], "library": "ours", "revision": "f" * 40, "status": "admitted",
    }  # fmt: skip
    assert (trial["label"], trial["of_present_card"], trial["trial"]["trust"]) == (
        "accepted",
        True,
        "measured-cpu",
    )
    assert step["before"]["source"] == steps[0].before.text
    assert step["after"]["hash"] == steps[0].after.hash
    assert step["workload"]["source"] == steps[0].workload.source.decode()
    assert (step["cards"], step["provenance"]["commit"]) == (["c.prefetch"], steps[0].commit)
    assert step["result"]["trust"] == "measured-cpu"
    assert [r["result"] and r["result"]["verdict"] for r in found if r["kind"] == "rejected"] == [
        "fail",
        "error",
        None,
        None,
    ]
    assert found[-1]["why"] == "the tail reads too far"


def test_each_step_is_told_once_whatever_cites_it(lineages: Workspace, known: tuple[Transition, ...]) -> None:
    steps = of_softmax(known)
    made = [a_card(commit=steps[0].commit), a_card("c.other", commit=steps[0].commit)]
    commits = [
        r["provenance"]["commit"] for r in exported(made, [Library.of(lineages)]) if r["kind"] == "transition"
    ]
    assert commits == [step.commit for step in steps]


def test_a_lineage_that_is_nowhere_is_named(lineages: Workspace, tmp_path: Path) -> None:
    missing: list[str] = []
    card = replace(a_card(), evidence=(Evidence("e1", "transition", "lost-c", "a" * 40),))
    found = exported([card], [Library.of(lineages)], missing)
    assert [record["kind"] for record in found] == ["card"]
    assert len(missing) == 1
    assert missing[0].startswith("lost-c: ")


def test_bundles_of_a_folder_are_read(
    lineages: Workspace, known: tuple[Transition, ...], tmp_path: Path
) -> None:
    steps = of_softmax(known)
    write_library(tmp_path, a_card(commit=steps[0].commit))
    (tmp_path / "bundles").mkdir()
    bundle_create(lineages, "softmax-c", tmp_path / "bundles" / "softmax-c.bundle")
    library = Library.open(tmp_path)
    found = exported([library.get("c.prefetch")], [library])
    assert [r["provenance"]["commit"] for r in found if r["kind"] == "transition"] == [
        step.commit for step in steps
    ]
    order = order_of(library)
    assert list(order("softmax-c"))[1:] == [step.commit for step in steps]
    assert list(order("nothing-c")) == []


@settings(max_examples=25, deadline=None)
@given(cards)
def test_any_card_is_one_line(card: Card) -> None:
    found = exported([card], [])
    assert [record["kind"] for record in found] == ["card", *["trial"] * len(card.verification)]
    assert found[0]["card"]["intent"] == card.intent.encode("utf-8", "replace").decode()
