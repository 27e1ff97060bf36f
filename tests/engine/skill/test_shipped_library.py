"""What ships in library/: every card reads, every claim leads to its evidence, and a sample holds when it is tried again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from klineage.gate import report_from_json
from klineage.numbers import three
from klineage.resources import shipped
from klineage.skill.admission import admit, materializer_named, named
from klineage.skill.card import Card, Evidence
from klineage.skill.library import Library
from klineage.skill.lint import lint
from klineage.skill.probe.weighing import BLIND
from klineage.skill.staleness import stale, verified_by
from klineage.skill.trial import COMPILED, gains_of

#: One card that is measured on a CPU, and one whose effect is an exact count of the interpreter.
MEASURED, COUNTED = "c.vector-types", "triton.tile-size"

#: No probe could be chosen for these: no change of the kernel, its sizes or the platform makes the check fail alone.
OUT_OF_REACH = {
    ("c.loop-order", "p2"), ("c.simd-pragma", "p3"), ("triton.tensor-core-dot", "p5"), ("triton.tile-size", "p5"),
    ("triton.tile-size", "p6"), ("triton.warps", "p3"),
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Library:
    return Library.open("shipped")


@pytest.fixture(scope="module")
def cards(library: Library) -> dict[str, Card]:
    entries = library.cards()
    assert [entry.problem for entry in entries if entry.problem] == []
    return {entry.card.id: entry.card for entry in entries if entry.card is not None}


def test_at_least_twenty_five_cards_are_admitted_by_a_trial_that_still_holds(cards: dict[str, Card]) -> None:
    held = {id for id, card in cards.items() if verified_by(card)}
    assert len(held) >= 25, sorted(held)
    assert {id for id, card in cards.items() if card.status == "admitted"} == cards.keys()


def test_every_claim_leads_to_evidence_that_is_there(library: Library, cards: dict[str, Card]) -> None:
    assert library.dangling(cards.values()) == ()


def test_every_number_is_the_one_that_its_evidence_shows(library: Library, cards: dict[str, Card]) -> None:
    """Of trials and ablations in the cited report itself; of steps in the note, which the lift reads off the gate."""
    for card in cards.values():
        cited = {item.key: item for item in card.evidence}

        def shown(
            keys: Iterable[str], quantity: str, gain: float, cited: Mapping[str, Evidence] = cited
        ) -> bool:
            reports = [
                report_from_json(library.report(cited[k].report).decode()) for k in keys if cited[k].report
            ]
            found = [g.gain for report in reports for g in gains_of(report) if g.quantity == quantity]
            return any(gain == pytest.approx(one, rel=1e-3) for one in found)

        for effect in card.effects:
            steps = [key for key in effect.evidence if cited[key].kind == "transition"]
            assert all(f"{three(effect.gain)}x" in cited[key].note for key in steps), (card.id, effect)
            assert steps or shown(effect.evidence, effect.quantity, effect.gain), (card.id, effect)
        for trial in card.verification:
            assert trial.gain is None or shown(trial.evidence, trial.quantity, trial.gain), (
                card.id,
                trial.key,
            )


def test_every_card_gains_something_and_names_what_can_go_wrong(cards: dict[str, Card]) -> None:
    for card in cards.values():
        assert any(effect.low > 1 for effect in card.effects), card.id
        assert all(effect.evidence for effect in card.effects), card.id
        assert card.risks, card.id
        assert [p.text for p in lint(card) if p.severity == "error"] == [], card.id


def test_every_precondition_that_can_be_checked_was_probed(cards: dict[str, Card]) -> None:
    silent = {
        (card.id, precondition.key)
        for card in cards.values()
        for precondition in card.preconditions
        if precondition.check and (precondition.probe is None or not precondition.probe.found)
    }
    assert silent == OUT_OF_REACH


def test_nothing_is_said_by_counts_that_they_cannot_see(cards: dict[str, Card]) -> None:
    for card in cards.values():
        assert all(effect.trust != "interpreted" for effect in card.effects if effect.quantity in COMPILED), (
            card.id
        )
        for precondition in card.preconditions:
            probe = precondition.probe
            if probe is not None and probe.outcome != "untested" and precondition.kind in BLIND:
                assert probe.trust != "interpreted", (card.id, precondition.key)


def test_what_is_stale_is_still_verified_elsewhere(cards: dict[str, Card]) -> None:
    for card in cards.values():
        assert len(stale(card)) < len(card.verification), card.id


@pytest.mark.parametrize("card_id", [MEASURED, pytest.param(COUNTED, marks=pytest.mark.triton)])
def test_a_sample_holds_again(cards: dict[str, Card], card_id: str) -> None:
    card = cards[card_id]
    fresh = [entry for entry in verified_by(card) if entry.trust in ("measured-cpu", "interpreted")]
    entry = fresh[-1]
    target = named(entry.target, platform=entry.platform)
    trial = admit(card, target, materializer_named(entry.materializer.partition(":")[0]), anyway=True)
    assert trial.accepted, trial.why


def test_the_folder_says_how_it_was_made() -> None:
    told = (shipped("library") / "README.md").read_text(encoding="utf-8")
    for part in ("cpu-x86_64", "interpreter", "nvidia-sm90"):
        assert part in told
        assert (shipped("library") / part / "cards").is_dir()
