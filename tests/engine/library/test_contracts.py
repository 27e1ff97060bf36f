"""The contracts of cards, held against the lineages that they cite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from klineage.skill.card import Card, ContractFeature, Evidence
from klineage.skill.contract import derived
from klineage.skill.library import Library
from klineage.skill.library.contracts import contract_faults
from klineage.skill.transitions import transitions

from ..skill.lineages import Lineage, made


def test_a_contract_is_held_against_the_steps_that_are_cited(tmp_path: Path) -> None:
    with made(tmp_path / "work") as workspace:
        Lineage.open(workspace, "softmax").seal()
        Lineage.open(workspace, "layernorm")
        library = Library.of(workspace)
        step = transitions(workspace, "softmax-c")[0]
        shown = Evidence("e1", "transition", "softmax-c", step.commit)
        card = Card("c.restrict", "Promise", "restrict", "c", contract=derived([step]), evidence=(shown,))
        unsealed = Evidence("e1", "transition", "layernorm-c", workspace.head("layernorm-c").commit)
        missing = Evidence("e1", "transition", "nowhere", step.commit)
        wrong = replace(
            card.contract, provides=(ContractFeature("prefetch"),), requires=(ContractFeature("simd"),)
        )
        library.save_all(
            [
                card,
                replace(card, id="c.wrong", contract=wrong),
                replace(card, id="c.open", evidence=(unsealed,)),
                replace(card, id="c.lost", evidence=(missing,)),
            ]
        )
        cards = [entry.card for entry in library.cards() if entry.card]
        faults = contract_faults(library, cards)
        assert set(faults) == {"c.wrong", "c.open"}
        assert any("does not add prefetch" in fault for fault in faults["c.wrong"])
        assert any("began without simd" in fault for fault in faults["c.wrong"])
        assert "is not sealed yet" in faults["c.open"][0]
        assert [lost.card for lost in library.dangling(cards)] == ["c.lost"]
