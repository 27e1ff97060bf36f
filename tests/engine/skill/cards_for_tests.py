"""Cards with a story, for tests of what is done with cards: lifted from one lineage, tried on kernels that it never saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from klineage.skill.card import (
    Anchor,
    Card,
    Carrier,
    Contract,
    ContractFeature,
    Effect,
    Evidence,
    Precondition,
    Probe,
    Risk,
    Verification,
)
from klineage.skill.file import render
from klineage.skill.staleness import fingerprints, probe_fingerprint

PLATFORM = "cpu-x86-64-v3"


def a_card(
    name: str = "c.prefetch",
    *,
    action: str = "prefetch",
    requires: Sequence[str] = (),
    check: str = "",
    lifted: str = "softmax",
    commit: str = "a" * 40,
) -> Card:
    """A hypothesis with an effect, a risk and evidence of a transition of the lineage ``<lifted>-c``."""
    there = ContractFeature(action, "kernel")
    probe = Probe(
        "size", {"dim": "rows", "value": "3"}, "confirmed", "it fails at rows=3", "measured-cpu", PLATFORM
    )
    condition = Precondition("p1", "layout", "Rows are contiguous.", check, probe, "rule", ("e1",))
    condition = replace(condition, probe=replace(probe, of=probe_fingerprint(condition)))
    return Card(
        name,
        f"Put {action} on the loop that needs it.",
        action,
        "c",
        locus="for",
        rule=f"c.{action}",
        contract=Contract(tuple(ContractFeature(r, "kernel") for r in requires), (there,), (there,)),
        preconditions=(condition,),
        effects=(Effect("time", 1.3, 1.2, 1.4, "measured-cpu", PLATFORM, lifted, "bench", evidence=("e1",)),),
        risks=(Risk("It slows small problems.", "observed", "rule", ("e1",)),),
        evidence=(Evidence("e1", "transition", f"{lifted}-c", commit),),
        anchor=Anchor("the loop over rows", "(for_statement) @anchor"),
        carrier=Carrier("before();\n", "after();\n", {"distance": "8"}, ("e1",)),
    )


def admitted(card: Card, *workloads: str, prior: Sequence[str] = (), platform: str = PLATFORM) -> Card:
    """The card with one accepted, held-out trial for each workload."""
    marks = fingerprints(card)
    trials = tuple(
        Verification(
            f"v{number}", f"{workload}-c K1", workload, "c", platform, tuple(prior), f"rules:{card.rule}", True,
            "every gate passed", ("workload",), 1, "time", 1.25, 1.2, 1.3, "measured-cpu", "2026-11-29T20:00:00Z", ("e1",), marks,
        )
        for number, workload in enumerate(workloads, start=1)
    )  # fmt: skip
    return replace(card, status="admitted", verification=trials)


def write_library(folder: Path, *cards: Card) -> Path:
    """A library as a folder."""
    (folder / "cards").mkdir(parents=True, exist_ok=True)
    for card in cards:
        (folder / "cards" / f"{card.id}.md").write_bytes(render(card))
    return folder
