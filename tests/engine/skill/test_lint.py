"""Lint names what a curator should look at, and leaves a good card alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
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
from klineage.skill.lint import Problem, lint
from klineage.skill.staleness import fingerprints, probe_fingerprint

ALIGNED = Precondition(
    "p1",
    "storage",
    "rows begin at a multiple of 32 bytes, or the aligned load faults",
    check="k % 8 == 0",
    origin="rule",
    evidence=("e1",),
)
GOOD = Card(
    id="c.prefetch",
    intent="Ask for the lines of the next panel while this one is multiplied",
    action="prefetch",
    surface="c",
    contract=Contract(provides=(ContractFeature("prefetch"),)),
    preconditions=(ALIGNED,),
    effects=(Effect("time", 1.4, 1.3, 1.5, "measured-cpu", "cpu-x86_64-avx2", "gemm", "m=64 k=256", evidence=("e1",)),),
    risks=(Risk("lines that are asked for too early push out those in use", "observed", evidence=("e2",)),),
    evidence=(
        Evidence("e1", "transition", "gemm-c", "0123abcd"),
        Evidence("e2", "rejected", "gemm-c", "4567abcd"),
        Evidence("e3", "probe", report="12ab.json"),
    ),
    anchor=Anchor("the loop over k", "(for_statement) @anchor"),
    carrier=Carrier("for (;;) a();\n", "for (;;) b();\n", {"k": "256", "AHEAD": "48"}, ("e1",)),
)  # fmt: skip
PROBE = Probe("misalign", {"tensor": "a", "value": "4"}, "confirmed", "case 2 faults", evidence=("e3",))


def rules(card: Card, *others: Card) -> dict[str, str]:
    return {problem.field: problem.rule for problem in lint(card, others)}


def saying(text: str, **parts: object) -> Card:
    return replace(GOOD, preconditions=(replace(ALIGNED, text=text, **parts),))


def probed(**parts: object) -> Card:
    one = replace(ALIGNED, probe=replace(PROBE, **parts))
    assert one.probe is not None
    return replace(GOOD, preconditions=(replace(one, probe=replace(one.probe, of=probe_fingerprint(one))),))


def tried(card: Card) -> Card:
    """The card with a trial that is fresh."""
    trial = Verification(
        "v1", "fmha-c", "fmha", "c", "cpu-x86_64-avx2", ("simd",), "rules:c.prefetch", True, "all gates passed",
        held_out=("workload",), evidence=("e3",), rested_on=fingerprints(card),
    )  # fmt: skip
    return replace(card, verification=(trial,))


def test_nothing_is_said_of_a_good_card() -> None:
    assert lint(GOOD) == ()
    assert lint(replace(tried(GOOD), status="admitted")) == ()
    assert lint(probed()) == ()


@pytest.mark.parametrize(
    ("card", "field", "rule"),
    [
        (replace(GOOD, evidence=()), "evidence", "no-evidence"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], evidence=()),)), "effects.0", "no-evidence"),
        (replace(GOOD, risks=(Risk("nothing broke at any size", "none-found"),)), "risks.0", "no-evidence"),
        (saying(ALIGNED.text, evidence=(), origin="model"), "preconditions.p1", "no-evidence"),
        (saying(ALIGNED.text, evidence=("e1", "e9")), "preconditions.p1.evidence", "dangling-evidence"),
        (replace(GOOD, evidence=(*GOOD.evidence, Evidence("e4", "probe"))), "evidence.e4", "dangling-evidence"),
        (
            replace(GOOD, evidence=(*GOOD.evidence, Evidence("e4", "transition", commit="01ab"))),
            "evidence.e4",
            "dangling-evidence",
        ),
        (saying("The optimization can be applied correctly"), "preconditions.p1.text", "tautology"),
        (saying("prefetch is supported by the hardware", check="k >= k"), "preconditions.p1.check", "tautology"),
        (saying(GOOD.intent), "preconditions.p1.text", "tautology"),
        (saying(ALIGNED.text, check="1 < 2"), "preconditions.p1.check", "empty-check"),
        (saying(ALIGNED.text, check="  "), "preconditions.p1.check", "empty-check"),
        (saying(ALIGNED.text, check="k %% 8"), "preconditions.p1.check", "empty-check"),
        (saying(ALIGNED.text, check=""), "preconditions.p1", "uncheckable"),
        (saying("the tile is large enough", check=""), "preconditions.p1", "uncheckable"),
        (saying("AHEAD is 48", check=""), "preconditions.p1.text", "instance-number"),
        (saying(ALIGNED.text, check="k == 256"), "preconditions.p1.check", "instance-number"),
        (saying(ALIGNED.text, doubt="no run shows it"), "preconditions.p1.doubt", "doubt"),
        (replace(GOOD, risks=(Risk('Traceback (most recent call last):\n  File "x.py"'),)), "risks.0.text", "traceback"),
        (replace(GOOD, risks=(Risk("ModuleNotFoundError: No module named 'triton'"),)), "risks.0.text", "traceback"),
        (replace(GOOD, risks=(Risk("gcc: command not found"),)), "risks.0.text", "environment-error"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], trust="interpreted"),)), "effects.0.quantity", "trust"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], trust="felt"),)), "effects.0.trust", "trust"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], platform="nvidia-sm90"),)), "effects.0.trust", "trust"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], trust="measured-gpu"),)), "effects.0.trust", "trust"),
        (replace(probed(outcome="untested", evidence=()), status="admitted"), "preconditions.p1.probe", "unprobed"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], low=1.45),)), "effects.0.gain", "no-effect"),
        (replace(GOOD, effects=(replace(GOOD.effects[0], low=0.9),)), "effects.0.low", "no-effect"),
        (replace(GOOD, status="admitted"), "status", "not-verified"),
        (replace(GOOD, status="retired"), "status", "not-verified"),
        (replace(tried(GOOD), locus="for"), "verification.v1", "stale"),
        (probed(outcome="refuted"), "preconditions.p1.probe", "refuted"),
        (
            replace(probed(), preconditions=(replace(probed().preconditions[0], text="rows are aligned to 32 bytes"),)),
            "preconditions.p1.probe",
            "stale",
        ),
        (replace(GOOD, action="prefech"), "action", "vocabulary"),
        (replace(GOOD, anchor=Anchor("the loop", "(for_statement)")), "anchor.query", "anchor"),
        (replace(GOOD, anchor=Anchor("the loop", "(for_statement @anchor")), "anchor.query", "anchor"),
        (replace(GOOD, anchor=Anchor("the loop", "(no_such_node) @anchor")), "anchor.query", "anchor"),
        (replace(GOOD, carrier=replace(GOOD.carrier, after=GOOD.carrier.before)), "carrier", "carrier"),
        (
            replace(GOOD, preconditions=(ALIGNED, replace(ALIGNED, key="p2", text=ALIGNED.text.upper()))),
            "preconditions.p2.text",
            "near-duplicate",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_field(card: Card, field: str, rule: str) -> None:
    assert rules(card)[field] == rule


def test_numbers_that_are_no_instance_are_left_alone() -> None:
    for text, check in (
        ("AHEAD is a multiple of 48 bytes", ""),
        ("k is at least 256 / 32 lines", "k % 64 == 0"),
        ("a panel of 48 lines fits the first cache", "ceil_div(k, 8) <= 48"),
    ):
        assert "instance-number" not in rules(saying(text, check=check)).values()
    confirmed = replace(probed().preconditions[0], text="AHEAD is 48")
    assert "instance-number" not in rules(replace(GOOD, preconditions=(confirmed,))).values()


def test_a_probe_that_showed_nothing_is_not_said_to_have_never_run() -> None:
    """It ran, and its sentence says why that decided nothing."""

    def told(found: str) -> str:
        card = replace(probed(outcome="untested", found=found, evidence=()), status="admitted")
        return next(p.text for p in lint(card) if p.rule == "unprobed")

    assert "has never run" in told("")
    assert "has never run" not in told("k = 33: too noisy") and "k = 33: too noisy" in told(
        "k = 33: too noisy"
    )


def test_two_preconditions_with_different_checks_are_not_one() -> None:
    """The mechanisms that a card requires are told in the same words but for the name."""
    said = "The kernel has {} already: the edit could be made on no state without it."
    both = tuple(
        replace(ALIGNED, key=key, text=said.format(name), check=f'has("{name}")')
        for key, name in (("p1", "cache_block"), ("p2", "layout_pack"))
    )
    assert "preconditions.p2.text" not in rules(replace(GOOD, preconditions=both))
    unchecked = tuple(replace(one, check="") for one in both)
    assert rules(replace(GOOD, preconditions=unchecked))["preconditions.p2.text"] == "near-duplicate"


def test_cards_that_may_be_one() -> None:
    twin = replace(GOOD, id="c.prefetch-panel", evidence=(Evidence("e1", "transition", "fmha-c", "99"),))
    assert rules(GOOD, twin)["intent"] == "near-duplicate"
    assert rules(GOOD, replace(twin, status="retired", retired="merged")) == {}
    assert rules(GOOD, GOOD) == {}
    assert rules(GOOD, replace(GOOD, notes="another"))["id"] == "duplicate-id"
    other = replace(twin, action="simd", intent="Compute eight elements at once")
    assert rules(GOOD, other)["carrier"] == "near-duplicate"


def test_errors_come_first_and_each_problem_has_the_line_of_its_field() -> None:
    card = replace(saying("AHEAD is 48", check="", evidence=("e9",)), action="prefech")
    data = render(card)
    found = lint(card, data=data)
    assert [problem.severity for problem in found] == sorted(p.severity for p in found)
    lines = data.decode().splitlines()
    by_rule: dict[str, Problem] = {problem.rule: problem for problem in found}
    assert lines[(by_rule["dangling-evidence"].line or 0) - 1].strip() == "evidence: [e9]"
    assert lines[(by_rule["instance-number"].line or 0) - 1].strip() == "text: AHEAD is 48"
    assert lines[(by_rule["vocabulary"].line or 0) - 1] == "action: prefech"
