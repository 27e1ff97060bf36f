"""The contract of a card, and the transitions that it must hold for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from klineage.kernel import Feature
from klineage.skill.anchors import find_anchor
from klineage.skill.anchors.making import common_anchor
from klineage.skill.card import Contract, ContractFeature
from klineage.skill.contract import can_be_made, capable, consistent, derived, is_there, seen_from
from klineage.skill.transitions import Transition


def of(known: tuple[Transition, ...], rule: str, surface: str = "c") -> list[Transition]:
    return [t for t in known if t.rule == rule and t.surface == surface]


def names(features: tuple[ContractFeature, ...]) -> list[str]:
    return [feature.name for feature in features]


def test_it_provides_what_came_and_bars_it_from_coming_twice(known: tuple[Transition, ...]) -> None:
    for transition in known:
        contract = derived([transition], known)
        assert names(contract.provides) == sorted({f.name for f in transition.added})
        assert contract.conflicts == contract.provides
        assert consistent(contract, [transition]) == ()


def test_it_requires_what_the_edit_cannot_be_made_without(known: tuple[Transition, ...]) -> None:
    packing = derived(of(known, "packing"), known)
    assert names(packing.requires) == ["cache_block"]
    (vectors,) = [t for t in of(known, "vector-types") if t.lineage == "gemm-c"]
    assert len(vectors.features_before) > 3
    assert names(derived([vectors], known).requires) == ["register_tiling"]


def test_what_another_lineage_did_without_is_not_required(known: tuple[Transition, ...]) -> None:
    both = of(known, "vector-types")
    assert {t.lineage for t in both} == {"gemm-c", "layernorm-c", "softmax-c"}
    assert derived(both, known).requires == ()


def test_what_no_state_was_ever_without_is_not_required(known: tuple[Transition, ...]) -> None:
    (vectors,) = [t for t in of(known, "vector-types") if t.lineage == "gemm-c"]
    later = [t for t in known if t.lineage != "gemm-c" or t.step.number >= vectors.step.number]
    assert "register_tiling" in {f.name for f in vectors.features_before}
    assert derived([vectors], later).requires == ()


def test_a_step_that_no_rule_made_is_tried_by_the_rules_of_its_action(known: tuple[Transition, ...]) -> None:
    (by_hand,) = [replace(t, step=replace(t.step, proposer="person")) for t in of(known, "packing")]
    assert names(derived([by_hand], known).requires) == ["cache_block"]
    (naive,) = [t.before for t in known if t.name == "gemm-c K1"]
    assert can_be_made(by_hand, by_hand.before) and not can_be_made(by_hand, naive)
    unsaid = replace(by_hand, step=replace(by_hand.step, settings={}))
    assert derived([unsaid], known).requires == (), "nobody can make it, so nothing is known to be needed"


@pytest.mark.parametrize(
    ("contract", "fault"),
    [
        (Contract(), "gemm-c K2 also adds cache_block, which the card does not provide"),
        (
            Contract(provides=(ContractFeature("cache_block", "function"), ContractFeature("simd"))),
            "gemm-c K2 does not add simd at its anchor, which the card provides",
        ),
        (
            Contract((ContractFeature("unroll", "kernel"),), (ContractFeature("cache_block", "function"),)),
            "gemm-c K2 began without unroll, which the card requires",
        ),
        (
            Contract(
                (ContractFeature("x86-64-v4", "hardware"),), (ContractFeature("cache_block", "function"),)
            ),
            "gemm-c K2 began without x86-64-v4 in hardware, which the card requires",
        ),
        (
            Contract(
                (), (ContractFeature("cache_block", "function"),), (ContractFeature("restrict", "kernel"),)
            ),
            "gemm-c K2 began with restrict, which the card conflicts with",
        ),
    ],
)
def test_a_fault_names_the_transition_and_the_mechanism(
    known: tuple[Transition, ...], contract: Contract, fault: str
) -> None:
    (transition,) = of(known, "cache-block")
    assert consistent(contract, [transition]) == (fault,)


@pytest.mark.parametrize(
    ("platform", "capability", "has"),
    [
        ("nvidia-sm90", "nvidia-sm80", True),
        ("nvidia-sm90", "sm80", True),
        ("nvidia-sm80", "sm90", False),
        ("cpu-x86-64-v4", "x86-64-v3", True),
        ("cpu-x86-64-v2", "x86-64-v3", False),
        ("nvidia-sm90", "cpu-x86-64-v2", False),
        ("nvidia-sm90", "tensor cores", False),
    ],
)
def test_a_capability_is_the_name_of_a_platform(platform: str, capability: str, has: bool) -> None:
    assert capable(platform, capability) is has


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_derived_holds_for_every_transition_that_it_was_derived_from(
    known: tuple[Transition, ...], data: st.DataObject
) -> None:
    rule = data.draw(st.sampled_from(sorted({(t.rule, t.surface) for t in known})))
    group = of(known, *rule)
    chosen = data.draw(st.lists(st.sampled_from(group), min_size=1, max_size=len(group), unique_by=id))
    contract = derived(chosen, known)
    assert consistent(contract, chosen) == ()
    extra = data.draw(st.sampled_from(["fusion", "early_exit", "precision"]))
    more = replace(
        chosen[0], step=replace(chosen[0].step, adds=(*chosen[0].step.adds, Feature("a::b", extra)))
    )
    assert any(extra in fault for fault in consistent(contract, [more]))


def test_what_its_rule_asks_of_the_hardware_is_required(known: tuple[Transition, ...]) -> None:
    pipelining = of(known, "pipelining", "triton")
    assert ContractFeature("nvidia-sm80", "hardware") in derived(pipelining, known).requires
    older = [replace(t, platform="nvidia-sm75") for t in pipelining]
    assert "nvidia-sm80" not in names(derived(older, known).requires), (
        "a transition on less hardware speaks against it"
    )


def test_the_contract_of_a_card_can_be_asked_of_the_place_where_it_would_act(
    known: tuple[Transition, ...],
) -> None:
    for transition in known:
        contract = derived([transition], known)
        places = find_anchor(common_anchor([transition]).query, transition.before)
        seen = [seen_from(place.locus, transition.features_before) for place in places]
        assert any(all(is_there(f, at, transition.platform) for f in contract.requires) for at in seen), (
            transition.name
        )
        assert not all(any(is_there(f, at, transition.platform) for f in contract.conflicts) for at in seen)
