"""What an edit overtakes: exactly the trials that rested on the field, and nothing for what only follows a claim around."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from klineage.skill.card import Anchor, Card, ContractFeature, Evidence, Precondition, Risk, Scope
from klineage.skill.file import kept, parse, render
from klineage.skill.staleness import (
    fingerprints,
    probe_fingerprint,
    probe_is_stale,
    stale,
    verified_by,
    verified_scope,
)

from .strategies import cards, tries
from .test_lint import ALIGNED, GOOD, PROBE, tried

TRIED = tried(GOOD)
EFFECT = GOOD.effects[0]


def first(**parts: object) -> Card:
    return replace(TRIED, preconditions=(replace(ALIGNED, **parts),))


@pytest.mark.parametrize(
    ("card", "fields"),
    [
        (
            first(text="rows begin at a multiple of 64 bytes, or the aligned load faults"),
            ("precondition.p1",),
        ),
        (first(check="k % 16 == 0"), ("precondition.p1",)),
        (first(kind="layout"), ("precondition.p1",)),
        (first(key="p2"), ("precondition.p2", "precondition.p1")),
        (replace(TRIED, preconditions=()), ("precondition.p1",)),
        (
            replace(TRIED, preconditions=(ALIGNED, Precondition("p2", "layout", "dense"))),
            ("precondition.p2",),
        ),
        (replace(TRIED, anchor=Anchor("the loop over n", GOOD.anchor.query)), ("anchor",)),
        (replace(TRIED, carrier=replace(GOOD.carrier, settings={"k": "512", "AHEAD": "48"})), ("carrier",)),
        (replace(TRIED, carrier=replace(GOOD.carrier, after="c();\n")), ("carrier",)),
        (
            replace(TRIED, contract=replace(GOOD.contract, requires=(ContractFeature("simd", "function"),))),
            ("contract",),
        ),
        (replace(TRIED, action="simd"), ("action",)),
        (replace(TRIED, locus="for", rule="c.prefetch"), ("action",)),
        (
            replace(TRIED, effects=(replace(EFFECT, gain=1.45),)),
            ("effect.time.cpu-x86_64-avx2.gemm.in-order",),
        ),
        (replace(TRIED, effects=()), ("effect.time.cpu-x86_64-avx2.gemm.in-order",)),
    ],
)
def test_an_edit_overtakes_the_trials_that_rested_on_the_field(card: Card, fields: tuple[str, ...]) -> None:
    assert stale(card) == {"v1": fields}
    assert verified_by(card) == ()
    assert verified_scope(card) == Scope((), (), (), ())


@pytest.mark.parametrize(
    "card",
    [
        first(evidence=("e1", "e2"), doubt="who knows", origin="person"),
        first(text=f"  {ALIGNED.text.replace(' ', '  ')}\n"),
        first(probe=PROBE),
        replace(TRIED, notes="seen again", intent="Ask early", status="admitted"),
        replace(TRIED, evidence=(*TRIED.evidence, Evidence("e9", "import"))),
        replace(TRIED, risks=(Risk("none at all"),)),
        replace(TRIED, effects=(EFFECT, replace(EFFECT, platform="cpu-aarch64-neon", gain=1.2, low=1.1))),
        replace(TRIED, effects=(replace(EFFECT, evidence=("e3",)),)),
        replace(TRIED, contract=replace(GOOD.contract, provides=GOOD.contract.provides[::-1])),
    ],
)
def test_what_follows_a_claim_around_overtakes_nothing(card: Card) -> None:
    assert stale(card) == {}
    assert verified_by(card) == card.verification


@tries(40)
@given(cards)
def test_fingerprints_are_of_the_card_and_not_of_its_file(card: Card) -> None:
    card = kept(card)
    windows = render(card).replace(b"\n", b"\r\n")
    assert fingerprints(parse(windows, "x")) == fingerprints(card)
    fresh = replace(
        card, verification=tuple(replace(v, rested_on=fingerprints(card)) for v in card.verification)
    )
    assert stale(fresh) == {}
    rested_on = {one.key: one.rested_on for one in card.verification}
    for key, fields in stale(card).items():
        assert set(fields) <= {*fingerprints(card), *rested_on[key]}


def test_only_accepted_fresh_and_held_out_trials_count() -> None:
    good = TRIED.verification[0]
    others = (
        replace(good, key="v2", workload="topk", accepted=False),
        replace(good, key="v3", workload="bmm", held_out=()),
        replace(good, key="v4", workload="conv2d", rested_on={}),
        replace(
            good, key="v5", workload="bmm", platform="cpu-aarch64-neon", prior_actions=("unroll", "simd")
        ),
    )
    card = replace(TRIED, verification=(good, *others))
    assert [one.key for one in verified_by(card)] == ["v1", "v5"]
    assert verified_scope(card) == Scope(
        workloads=("bmm", "fmha"),
        surfaces=("c",),
        platforms=("cpu-aarch64-neon", "cpu-x86_64-avx2"),
        prior_actions=("simd", "unroll"),
    )
    assert verified_scope(GOOD) == Scope((), (), (), ())


def test_a_probe_is_stale_once_its_precondition_or_its_change_is_edited() -> None:
    one = replace(ALIGNED, probe=PROBE)
    fresh = replace(one, probe=replace(PROBE, of=probe_fingerprint(one)))
    assert not probe_is_stale(fresh)
    assert not probe_is_stale(ALIGNED)
    assert not probe_is_stale(replace(ALIGNED, probe=replace(PROBE, outcome="untested")))
    assert probe_is_stale(one)
    assert probe_is_stale(replace(fresh, text="rows begin anywhere"))
    assert probe_is_stale(replace(fresh, check=""))
    assert fresh.probe is not None
    assert probe_is_stale(replace(fresh, probe=replace(fresh.probe, settings={"tensor": "b", "value": "4"})))
    assert not probe_is_stale(
        replace(fresh, evidence=(), doubt="no", probe=replace(fresh.probe, found="other words"))
    )
