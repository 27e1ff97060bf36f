"""A card as a form, and what stands behind its fields: pure functions from a card to rows."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
from klineage.skill.checks import Answer
from klineage.skill.staleness import fingerprints

from klineage_tui.card_queue import Marks
from klineage_tui.card_reading import about, marks_of
from klineage_tui.presentation.card_evidence import behind, cited, claim
from klineage_tui.presentation.card_form import Form, Ref, card_form
from klineage_tui.presentation.card_words import answer_words
from klineage_tui.text.columns import width

CARD = Card(
    "c.vector-types",
    "Compute all lanes of a register in one instruction",
    "simd",
    "c",
    rule="c.vector-types",
    contract=Contract((ContractFeature("register_tiling", "function"),), (ContractFeature("simd"),)),
    preconditions=(
        Precondition("p1", "layout", "The lanes are neighbours in memory.", "n % 16 == 0",
                     Probe("size", {"dim": "n", "value": "33"}, "confirmed", "n = 33: out of bounds", "measured-cpu", "cpu-x86-64-v3"),
                     "rule", ("e1",)),
        Precondition("p2", "hardware", "Sixteen registers are free.", origin="model", doubt="no report names registers"),
    ),
    effects=(
        Effect("time", 9.53, 8.72, 10.4, "measured-cpu", "cpu-x86-64-v3", "gemm", "bench", "thread_cpu_time", evidence=("e1",)),
        Effect("bytes_loaded", 4, 4, 4, "interpreted", "cpu-x86-64-v3", "gemm", "small"),
    ),
    risks=(Risk("spills past four vectors", "observed", evidence=("e2", "e9")),),
    evidence=(
        Evidence("e1", "transition", "gemm-c", "a" * 40, note="K6: Compute with vectors"),
        Evidence("e2", "rejected", "gemm-c", "b" * 40, "0123.json", "it spilled"),
    ),
    anchor=Anchor("the innermost loop over j", "(for_statement) @anchor"),
    carrier=Carrier("for (j)\n", "for (j += 16)\n", {"WIDTH": "16"}),
    notes="Lifted by structure.",
)  # fmt: skip
TRIAL = Verification(
    "v1", "bmm-c:K0", "bmm", "c", "cpu-x86-64-v3", ("restrict",), "rules:vector-types", True, "every gate passed", ("workload",), 2,
    "time", 4.1, 3.9, 4.3, "measured-cpu", "2026-11-29T20:00:00Z", ("e2",), fingerprints(CARD),
)  # fmt: skip


def text(form: Form) -> str:
    return "\n".join(line.text.rstrip() for line in form.lines)


def row(form: Form, ref: Ref) -> str:
    """Everything that is said of one field."""
    return " ".join(
        " ".join(line.text for line, at in zip(form.lines, form.refs, strict=True) if at == ref).split()
    )


@pytest.mark.parametrize("cells", [70, 160])
def test_what_shows_a_claim_stands_beside_it(cells: int) -> None:
    form = card_form(replace(CARD, verification=(TRIAL,)), Marks(), cells)
    assert "CONFIRMED n = 33: out of bounds measured-cpu cpu-x86-64-v3" in row(
        form, Ref("precondition", "p1")
    )
    second = row(form, Ref("precondition", "p2"))
    assert "no probe" in second and "claimed by a model, no evidence" in second
    assert "DOUBT no report names registers" in second
    time, count = row(form, Ref("effect", "0")), row(form, Ref("effect", "1"))
    assert "9.53x [8.72, 10.4] time" in time and "measured-cpu (thread_cpu_time)" in time
    assert "4.00x bytes loaded" in count and "a count, not time" in count
    assert "said by a person e2, e9" in row(form, Ref("risk", "0"))
    tried = row(form, Ref("verification", "v1"))
    assert "v1 ok" in tried and "4.10x [3.90, 4.30] time, by rules:vector-types, attempt 2" in tried
    assert "held out: workload e2" in tried
    assert "bmm c cpu-x86-64-v3" in row(form, Ref("verified"))


def test_an_edit_turns_what_rested_on_it_stale_on_screen() -> None:
    card = replace(CARD, verification=(TRIAL,))
    first = replace(card.preconditions[0], text="The lanes are far apart.")
    card = replace(card, preconditions=(first, *card.preconditions[1:]))
    form = card_form(card, marks_of(card), 120)
    assert "STALE it was confirmed before the edit" in row(form, Ref("precondition", "p1"))
    assert "CONFIRMED" not in text(form)
    assert "v1 STALE" in row(form, Ref("verification", "v1"))
    assert "edited since: precondition.p1" in row(form, Ref("verification", "v1"))
    assert "on no held-out kernel yet" in row(form, Ref("verified"))


def test_the_answers_of_a_kernel_stand_beside_the_checks() -> None:
    answers = {"p1": answer_words(Answer("fails", "n is 100"))}
    form = card_form(CARD, Marks(), 120, answers, "found 2 times there")
    assert "FAILS there: n is 100" in row(form, Ref("precondition", "p1"))
    assert "found by a query; found 2 times there" in row(form, Ref("anchor"))


def test_an_empty_card_says_what_is_missing() -> None:
    form = card_form(Card("c.new", "Something", "simd", "c"), Marks(), 100)
    for words in (
        "nothing is named yet",
        "nothing is measured yet",
        "nothing is known",
        "not tried yet",
        "no code is kept",
    ):
        assert words in text(form)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=120), st.integers(50, 160))
def test_no_row_is_wider_than_the_pane_and_no_text_reaches_the_terminal_raw(words: str, cells: int) -> None:
    foreign = f"{words}\x1b[31m\nlong{'g' * 90}"
    card = replace(
        CARD,
        intent=foreign,
        preconditions=tuple(replace(p, text=foreign, doubt=foreign) for p in CARD.preconditions),
        risks=(Risk(foreign),),
        verification=(replace(TRIAL, target=foreign, why=foreign, accepted=False),),
        carrier=Carrier(settings={foreign: foreign}),
    )
    form = card_form(card, Marks(faults=(foreign,)), cells)
    assert len(form.lines) == len(form.refs)
    for line in form.lines:
        assert width(line.text.rstrip()) <= cells
        assert "\x1b" not in line.text and "\n" not in line.text
    for at in form.selectable:
        assert form.refs[at] is not None and (at == 0 or form.refs[at - 1] != form.refs[at])
    assert {form.refs[at] for at in form.selectable} == set(form.refs) - {None}


def test_the_cursor_finds_its_field_again_on_another_card() -> None:
    form = card_form(CARD, Marks(), 100)
    assert form.refs[form.row_of(Ref("precondition", "p2"))] == Ref("precondition", "p2")
    assert form.row_of(Ref("precondition", "p7")) == 0


def test_what_stands_behind_a_field_can_be_opened() -> None:
    found = behind(CARD, Ref("precondition", "p1"), Marks(), 80)
    assert [e.key for e in found.opens if e is not None] == ["e1"]
    said = "\n".join(line.text for line in found.lines)
    assert "size dim=n value=33" in said and "confirmed on cpu-x86-64-v3, measured-cpu" in said


def test_evidence_that_is_cited_and_not_there_is_named() -> None:
    found = behind(CARD, Ref("risk", "0"), Marks(), 80)
    assert [e.key for e in found.opens if e is not None] == ["e2"]
    assert any("e9" in line.text and "no such evidence" in line.text for line in found.lines)


def test_a_claim_that_nothing_shows_says_so() -> None:
    found = behind(CARD, Ref("effect", "1"), Marks(), 80)
    assert not found.selectable
    assert "this is a claim" in "\n".join(line.text for line in found.lines)


@pytest.mark.parametrize("kind", ["intent", "action", "anchor", "scope", "requires", "carrier"])
def test_a_field_without_evidence_of_its_own_rests_on_the_steps(kind: str) -> None:
    assert cited(CARD, Ref(kind)) == ("e1",)  # type: ignore[arg-type]


def test_every_field_of_a_card_is_on_the_form() -> None:
    card = replace(CARD, verification=(TRIAL,))
    shown = text(card_form(card, Marks(), 140))
    said = {
        "intent": card.intent, "action": "simd at function", "surface": "in c", "rule": "by the rule c.vector-types",
        "scope": "to hold anywhere", "contract": "register_tiling in its function", "notes": card.notes, "anchor": card.anchor.text,
        "carrier": "WIDTH=16", "evidence": "gemm-c bbbbbbbbbb",
        "preconditions": "p2 hardware", "effects": "9.53x", "risks": "spills", "verification": "bmm-c:K0", "locus": "at function",
    }  # fmt: skip
    elsewhere = {"id", "status", "retired"}  # in the heading and the queue
    assert set(said) | elsewhere == {field.name for field in fields(Card)}
    for words in said.values():
        assert words in shown


def test_problems_are_said_at_the_field_that_they_are_of() -> None:
    problems = {
        "preconditions.p1.text": ("a tautology",),
        "contract.requires": ("odd",),
        "effects.0": ("small",),
        "intent": ("long",),
    }
    assert about(problems, "precondition", "p1") == ("a tautology",)
    assert about(problems, "precondition", "p10") == ()
    assert about(problems, "requires", "") == ("odd",)
    assert about(problems, "effect", "0") == ("small",)
    found = behind(CARD, Ref("precondition", "p1"), Marks(), 80, about(problems, "precondition", "p1"))
    assert found.lines[0].text == "LINT a tautology"


def test_the_claim_above_the_evidence_is_that_of_the_field() -> None:
    assert claim(CARD, Ref("precondition", "p2")) == "p2: Sixteen registers are free."
    assert claim(CARD, Ref("risk", "0")).startswith("observed: spills")
    assert claim(CARD, Ref("effect", "0")).startswith("9.53x")
    assert claim(CARD, Ref("carrier")) == CARD.intent
