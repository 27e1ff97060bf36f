"""Cards that tests begin from."""

from __future__ import annotations

from dataclasses import replace

from klineage.skill.card import (
    Card,
    Contract,
    ContractFeature,
    Effect,
    Evidence,
    Precondition,
    Risk,
    Verification,
)

PREFETCH = Card(
    "c.prefetch",
    "Fetch the next lines while these are used",
    "prefetch",
    "c",
    contract=Contract(provides=(ContractFeature("prefetch"),)),
    preconditions=(
        Precondition("p1", "storage", "the array is larger than the cache", evidence=("e1",)),
        Precondition("p2", "layout", "rows are contiguous", evidence=("e1",)),
    ),
    effects=(Effect("time", 1.3, 1.2, 1.4, "measured-cpu", "cpu-x86-64-v3", "gemm", evidence=("e1",)),),
    risks=(Risk("it evicts lines that are still needed", evidence=("e2",)),),
    evidence=(
        Evidence("e1", "transition", "gemm", "a" * 40, note="the step"),
        Evidence("e2", "rejected", "gemm", "b" * 40, note="the attempt"),
    ),
)


def named(card_id: str, **changes: object) -> Card:
    """The card under another id."""
    return replace(PREFETCH, id=card_id, **changes)  # type: ignore[arg-type]


def trial(key: str, target: str, evidence: str) -> Verification:
    return Verification(
        key, target, "fmha", "c", "cpu-x86-64-v3", (), "rules:c.prefetch", True, "every gate passed",
        held_out=("workload",), evidence=(evidence,),
    )  # fmt: skip
