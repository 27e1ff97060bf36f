"""Three-way merges of a card, field by field, and what a curator does with whole cards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.skill.card import Card, Contract, ContractFeature, Evidence, Precondition, Probe, Risk, Scope
from klineage.skill.file import kept, parse, render
from klineage.skill.library.curating import parted, retired, twins, united, why_not_united
from klineage.skill.library.fields import changed_fields
from klineage.skill.library.merge import merge_cards
from klineage.skill.library.setting import with_fields

from ..skill.strategies import cards
from .some_cards import PREFETCH, named, trial

held = cards.map(kept)  # as a file holds them


@settings(max_examples=20, deadline=None)
@given(held, held)
def test_what_one_side_left_alone_is_as_the_other_says(base: Card, changed: Card) -> None:
    assert merge_cards(base, base, changed) == (changed, ())
    assert merge_cards(base, changed, base) == (changed, ())
    assert merge_cards(base, changed, changed) == (changed, ())


@settings(max_examples=20, deadline=None)
@given(held, held, held)
def test_edits_of_different_parts_do_not_meet(base: Card, one: Card, two: Card) -> None:
    ours = replace(base, intent=one.intent, anchor=one.anchor, risks=one.risks)
    theirs = replace(base, scope=two.scope, notes=two.notes, preconditions=two.preconditions)
    both = replace(ours, scope=two.scope, notes=two.notes, preconditions=two.preconditions)
    assert merge_cards(base, ours, theirs) == (both, ())
    assert merge_cards(base, theirs, ours) == (both, ())


@settings(max_examples=20, deadline=None)
@given(held, held, held, st.sampled_from(("ours", "theirs")))
def test_every_conflict_can_be_settled(base: Card, ours: Card, theirs: Card, side: str) -> None:
    merged, conflicts = merge_cards(base, ours, theirs)
    settled, left = merge_cards(base, ours, theirs, {conflict.field: side for conflict in conflicts})  # type: ignore[misc]
    assert left == ()
    assert parse(render(settled), "card") == kept(settled)
    if side == "ours":
        assert settled == merged
    for name in ("intent", "locus"):
        both_changed = len({getattr(card, name) for card in (base, ours, theirs)}) == 3
        assert both_changed <= (name in {conflict.field for conflict in conflicts})


@settings(max_examples=20, deadline=None)
@given(held, held)
def test_cards_differ_exactly_where_a_field_does(one: Card, two: Card) -> None:
    assert (changed_fields(one, two) == ()) == (one == two)
    assert changed_fields(one, one) == ()
    named_fields = [change.field for change in changed_fields(one, two)]
    assert len(named_fields) == len(set(named_fields))


def test_a_conflict_names_the_field_and_all_three_values() -> None:
    claim = PREFETCH.preconditions[0]
    ours = replace(PREFETCH, preconditions=(replace(claim, text="it is large"), PREFETCH.preconditions[1]))
    theirs = replace(
        PREFETCH,
        locus="for",
        preconditions=(replace(claim, text="it is cold", check="n > 1"), PREFETCH.preconditions[1]),
    )
    merged, (conflict,) = merge_cards(PREFETCH, ours, theirs)
    assert conflict.field == "preconditions.p1.text"
    assert (conflict.base, conflict.ours, conflict.theirs) == (claim.text, "it is large", "it is cold")
    assert (merged.locus, merged.preconditions[0].check) == ("for", "n > 1")
    taken, left = merge_cards(PREFETCH, ours, theirs, {"preconditions.p1.text": "theirs"})
    assert (taken.preconditions[0].text, left) == ("it is cold", ())


def test_what_one_removed_and_the_other_edited_is_a_conflict() -> None:
    ours = replace(PREFETCH, preconditions=PREFETCH.preconditions[:1])
    edited = replace(PREFETCH.preconditions[1], text="rows are dense")
    theirs = replace(PREFETCH, preconditions=(PREFETCH.preconditions[0], edited))
    _, (conflict,) = merge_cards(PREFETCH, ours, theirs)
    assert (conflict.field, conflict.ours, conflict.theirs) == ("preconditions.p2", "", "rows are dense")
    assert merge_cards(PREFETCH, ours, theirs, {"preconditions.p2": "theirs"})[0].preconditions[1] == edited


def test_what_both_added_is_kept_under_keys_of_its_own() -> None:
    """Both ran a trial, and both called it v1 and its report e3; theirs also added p3, and rests on it."""

    def added(target: str, text: str) -> Card:
        shown = Evidence("e3", "trial", report=f"{target}.json", note=target)
        claim = Precondition("p3", "layout", text, probe=Probe("size", evidence=("e3",)), evidence=("e3",))
        rested = replace(trial("v1", target, "e3"), rested_on={"anchor": "1", "precondition.p3": "2"})
        return replace(
            PREFETCH,
            evidence=(*PREFETCH.evidence, shown),
            preconditions=(*PREFETCH.preconditions, claim),
            verification=(rested,),
            risks=(*PREFETCH.risks, Risk(f"slow on {target}", evidence=("e3",))),
        )

    ours, theirs = added("fmha", "it is aligned"), added("topk", "it is padded")
    merged, conflicts = merge_cards(PREFETCH, ours, theirs)
    assert conflicts == ()
    notes = {item.key: item.note for item in merged.evidence}
    assert notes == {"e1": "the step", "e2": "the attempt", "e3": "fmha", "e4": "topk"}
    assert [item.key for item in merged.verification] == ["v1", "v2"]
    first, second = merged.verification
    assert (notes[first.evidence[0]], notes[second.evidence[0]]) == (first.target, second.target)
    assert second.rested_on == {"anchor": "1", "precondition.p4": "2"}
    claims = {item.key: item for item in merged.preconditions}
    assert (claims["p3"].text, claims["p4"].text) == ("it is aligned", "it is padded")
    assert claims["p4"].evidence == ("e4",)
    assert claims["p4"].probe is not None
    assert claims["p4"].probe.evidence == ("e4",)
    assert [notes[risk.evidence[0]] for risk in merged.risks] == ["the attempt", "fmha", "topk"]


def test_the_same_evidence_under_two_keys_comes_once() -> None:
    shown = Evidence("e3", "probe", report="r.json")
    other = replace(shown, key="e4")
    ours = replace(PREFETCH, evidence=(*PREFETCH.evidence, shown))
    theirs = replace(PREFETCH, evidence=(*PREFETCH.evidence, other), risks=(Risk("slow", evidence=("e4",)),))
    merged, _ = merge_cards(PREFETCH, ours, theirs)
    assert merged.evidence == ours.evidence
    assert merged.risks == (Risk("slow", evidence=("e3",)),)


def test_uniting_keeps_what_both_know_and_retires_the_other() -> None:
    other = named(
        "c.prefetching",
        scope=Scope(workloads=("topk",)),
        contract=Contract(provides=(ContractFeature("prefetch"),), requires=(ContractFeature("simd"),)),
        preconditions=(
            Precondition("p1", "storage", "The array is larger than the cache.", evidence=("e1",)),
            Precondition("p2", "hardware", "the core has a prefetch port", evidence=("e1",)),
        ),
        evidence=(Evidence("e1", "transition", "topk", "c" * 40),),
        effects=(),
        risks=(),
        verification=(trial("v1", "gqa", "e1"),),
    )
    kept_card = replace(PREFETCH, verification=(trial("v1", "fmha", "e1"),), scope=Scope(workloads=("gemm",)))
    one, gone = united(kept_card, other, "the same thing")
    notes = {item.key: item.commit[:1] for item in one.evidence}
    assert notes == {"e1": "a", "e2": "b", "e3": "c"}
    assert [item.evidence for item in one.preconditions] == [("e1", "e3"), ("e1",), ("e3",)]
    assert [item.key for item in one.preconditions] == ["p1", "p2", "p3"]
    assert [(item.key, item.target, item.evidence) for item in one.verification] == [
        ("v1", "fmha", ("e1",)), ("v2", "gqa", ("e3",)),
    ]  # fmt: skip
    assert one.scope.workloads == ("gemm", "topk")
    assert one.contract == PREFETCH.contract
    assert (gone.id, gone.status, gone.retired) == (
        "c.prefetching", "retired", "merged into c.prefetch: the same thing",
    )  # fmt: skip
    assert replace(gone, status=other.status, retired="") == other


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (PREFETCH, "with itself"),
        (named("c.x", action="unroll"), "the action of one is (prefetch|unroll)"),
        (named("c.x", contract=Contract()), "provide different features"),
        (named("c.x", status="retired", retired="wrong"), "c.x is retired already: wrong"),
    ],
)
def test_cards_that_cannot_be_one_are_not_united(other: Card, said: str) -> None:
    for kept_card, merged in ((PREFETCH, other), (other, PREFETCH)):
        with pytest.raises(KlineageError, match=said) as refused:
            united(kept_card, merged, "why")
        assert why_not_united(kept_card, merged) == str(refused.value)
    assert twins([PREFETCH, other]) == ()


def test_splitting_moves_claims_with_what_shows_them() -> None:
    card = replace(PREFETCH, status="admitted", verification=(trial("v1", "fmha", "e1"),))
    rest, new = parted(card, "c.row-prefetch", "Fetch rows", ["preconditions.p2", "risks.1", "evidence.e2"])
    assert [item.key for item in rest.preconditions] == ["p1"]
    assert [item.key for item in rest.evidence] == ["e1"]
    assert rest.verification == card.verification
    assert [item.key for item in new.preconditions] == ["p2"]
    assert [item.key for item in new.evidence] == ["e1", "e2"]
    assert (new.status, new.verification, new.effects, new.risks) == ("hypothesis", (), (), PREFETCH.risks)
    for wrong in ("preconditions.p9", "verification.v1", "effects.2"):
        with pytest.raises(KlineageError):
            parted(card, "c.row-prefetch", "Fetch rows", [wrong])


def test_only_cards_in_use_that_look_alike_are_offered() -> None:
    same_step = named("c.one", intent="Something else")
    other_step = named("c.two", intent="Unlike", evidence=(Evidence("e1", "transition", "topk", "d" * 40),))
    elsewhere = (Evidence("e1", "transition", "bmm", "f" * 40),)
    other_place = named("c.four", contract=Contract(), evidence=elsewhere)
    found = twins([PREFETCH, same_step, other_step, other_place, retired(named("c.three"), "old")])
    assert [(pair.one, pair.two) for pair in found] == [("c.prefetch", "c.one")]
    assert "the step aaaaaaaaaa of gemm" in found[0].why


def test_fields_are_set_by_name() -> None:
    doubted = replace(
        PREFETCH, preconditions=(replace(PREFETCH.preconditions[0], origin="model", doubt="no evidence"),)
    )
    card = with_fields(
        doubted,
        [
            ("intent", "Fetch early"),
            ("scope.workloads", "gemm, topk"),
            ("contract.requires", "simd, restrict@function"),
            ("preconditions.p1.text", "it is large"),
            ("preconditions.p2.text", "it is aligned"),
            ("preconditions.p2.kind", "layout"),
            ("preconditions.p2.probe.change", "misalign"),
            ("preconditions.p2.probe.settings.bytes", "4"),
            ("risks.new.text", "slow"),
            ("risks.1", ""),
            ("carrier.settings.TILE", "8"),
        ],
    )
    assert (card.intent, card.scope.workloads) == ("Fetch early", ("gemm", "topk"))
    assert card.contract.requires == (ContractFeature("simd"), ContractFeature("restrict", "function"))
    first, second = card.preconditions
    assert (first.text, first.origin, first.doubt) == ("it is large", "person", "")
    assert second == Precondition("p2", "layout", "it is aligned", probe=Probe("misalign", {"bytes": "4"}))
    assert card.risks == (Risk("slow"),)
    assert card.carrier.settings == {"TILE": "8"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("id", "c.other", "never changes"),
        ("intnet", "x", "no field 'intnet'"),
        ("status", "good", "write hypothesis, admitted, retired"),
        ("preconditions.p1.kind", "x", "data-types"),
        ("preconditions.p1.probe.outcome", "confirmed", "klineage probe finds it"),
        ("effects.1.gain", "9", "measured"),
        ("verification.v1.accepted", "true", "klineage admit"),
        ("contract.requires", "simd@moon", "at no place"),
        ("risks.7.text", "x", "has 1 risks"),
        ("scope", "x", "scope has platforms"),
    ],
)
def test_what_cannot_be_set_is_said(name: str, text: str, said: str) -> None:
    with pytest.raises(KlineageError, match=said):
        with_fields(PREFETCH, [(name, text)])
