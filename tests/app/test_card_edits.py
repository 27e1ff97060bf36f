"""Editing one field of a card by the texts that a person types: pure functions on cards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.skill.card import Anchor, Card, ContractFeature, Precondition, Probe, Risk
from klineage.skill.file import render
from klineage.skill.staleness import probe_fingerprint, probe_is_stale

from klineage_tui.card_drafts import CardDrafts
from klineage_tui.card_edits import added, inputs_of, removed, why_not_here, why_not_removed, with_values
from klineage_tui.card_files import file_problem, line_of
from klineage_tui.presentation.card_evidence import precondition_of
from klineage_tui.presentation.card_form import Ref

P1 = Ref("precondition", "p1")
CARD = Card(
    "c.prefetch",
    "Fetch ahead",
    "prefetch",
    "c",
    preconditions=(
        Precondition("p1", "storage", "the array is large", "n > 4096", Probe("size", {"dim": "n", "value": "64"}), "rule",
                     ("e1",), "no report says how large"),
    ),
    risks=(Risk("it evicts what is needed", "observed", "rule", ("e1",)),),
    anchor=Anchor("a loop", "(for_statement)\n @anchor"),
)  # fmt: skip


def typed(card: Card, ref: Ref, **changes: str) -> Card:
    values = {asked.name: asked.value for asked in inputs_of(card, ref)}
    assert set(changes) <= set(values)
    return with_values(card, ref, {**values, **changes})


@pytest.mark.parametrize(
    "ref", [P1, Ref("risk", "0"), Ref("intent"), Ref("action"), Ref("anchor"), Ref("scope"), Ref("provides")]
)
def test_what_is_not_touched_stays_as_it_was(ref: Ref) -> None:
    assert typed(CARD, ref) == CARD


def test_a_persons_sentence_is_a_persons_and_the_doubt_about_the_old_one_goes() -> None:
    found = precondition_of(typed(CARD, P1, text="the array is larger than the last cache"), "p1")
    assert found is not None
    assert (found.origin, found.doubt, found.evidence) == ("person", "", ("e1",))
    risk = typed(CARD, Ref("risk", "0"), text="it evicts lines", doubt="not seen yet").risks[0]
    assert (risk.origin, risk.doubt) == ("person", "not seen yet")


def test_another_check_keeps_the_sentence_and_turns_the_probe_stale() -> None:
    first = CARD.preconditions[0]
    assert first.probe is not None
    probe = replace(first.probe, outcome="confirmed", of=probe_fingerprint(first))
    card = replace(CARD, preconditions=(replace(first, probe=probe),))
    found = precondition_of(typed(card, P1, check="n > 8192"), "p1")
    assert found is not None and found.probe is not None
    assert (found.text, found.origin, found.doubt) == (first.text, "rule", first.doubt)
    assert found.probe.outcome == "confirmed" and probe_is_stale(found)
    assert not probe_is_stale(card.preconditions[0])


def test_a_probe_is_typed_in_one_line() -> None:
    found = precondition_of(typed(CARD, P1, probe="misalign buffer=x bytes=4"), "p1")
    assert found is not None and found.probe is not None
    assert (found.probe.change, dict(found.probe.settings)) == ("misalign", {"buffer": "x", "bytes": "4"})
    none = precondition_of(typed(CARD, P1, probe=""), "p1")
    assert none is not None and none.probe is None


def test_scope_contract_action_and_anchor() -> None:
    assert typed(CARD, Ref("scope"), workloads="gemm, bmm,, gemm").scope.workloads[:2] == ("gemm", "bmm")
    wanted = (ContractFeature("simd"), ContractFeature("restrict", "function"))
    assert typed(CARD, Ref("requires"), requires="simd, restrict@function").contract.requires == wanted
    assert typed(CARD, Ref("action"), action="vectorize").action == "vectorize"
    changed = typed(CARD, Ref("anchor"), text="a loop of loads").anchor
    assert changed == Anchor("a loop of loads", CARD.anchor.query), (
        "a query of several lines is not rewritten"
    )


@pytest.mark.parametrize(
    ("ref", "changes", "words"),
    [
        (P1, {"check": "n >"}, "check"),
        (P1, {"check": "1 < 2"}, "names no fact"),
        (P1, {"check": "__import__('os')"}, "__import__"),
        (P1, {"kind": "colour"}, "data-types"),
        (P1, {"text": " "}, "needs words"),
        (P1, {"probe": "size n"}, "name=value"),
        (P1, {"probe": "explode"}, "misalign"),
        (Ref("risk", "0"), {"text": ""}, "needs words"),
        (Ref("risk", "0"), {"kind": "certain"}, "none-found"),
        (Ref("intent"), {"intent": ""}, "needs words"),
        (Ref("action"), {"action": "two words"}, "one word"),
        (Ref("requires"), {"requires": "simd@moon"}, "anchor"),
        (Ref("requires"), {"requires": "no mechanism!"}, "no mechanism"),
    ],
)
def test_what_cannot_be_so_is_refused_in_a_sentence(ref: Ref, changes: dict[str, str], words: str) -> None:
    with pytest.raises(KlineageError, match=words):
        typed(CARD, ref, **changes)


def test_what_is_measured_is_not_written() -> None:
    for ref in (Ref("effect", "0"), Ref("verification", "v1"), Ref("verified"), Ref("evidence", "e1")):
        assert why_not_here(CARD, ref)
        with pytest.raises(KlineageError):
            inputs_of(CARD, ref)


def test_claims_are_added_and_taken_out() -> None:
    more, ref = added(CARD, Ref("intent"))
    assert ref == Ref("precondition", "p2")
    with pytest.raises(KlineageError, match="needs words"):
        typed(more, ref)
    kept = typed(more, ref, kind="layout", text="rows are contiguous")
    assert [p.key for p in kept.preconditions] == ["p1", "p2"]
    assert removed(kept, ref) == CARD
    again, risk = added(CARD, Ref("risk", "0"))
    assert risk == Ref("risk", "1") and removed(again, risk) == CARD
    assert why_not_removed(CARD, Ref("effect", "0")) and not why_not_removed(CARD, P1)


def test_the_editor_opens_at_the_field() -> None:
    data = render(CARD)
    lines = data.decode().split("\n")
    assert "key: p1" in lines[line_of(data, CARD.id, P1) - 1]
    assert "evicts" in "".join(lines[line_of(data, CARD.id, Ref("risk", "0")) - 1 :][:2])
    assert lines[line_of(data, CARD.id, Ref("anchor")) - 1] == "# Anchor"
    broken = data.replace(b"intent:", b"intend:")
    assert line_of(broken, CARD.id, P1) == 1 + next(
        i for i, line in enumerate(lines) if line.startswith("intent:")
    )
    assert "intend" in file_problem(CARD.id, broken)
    assert file_problem(CARD.id, data) == ""


def test_a_query_that_is_none_of_the_language_is_a_problem_of_the_file() -> None:
    wrong = replace(CARD, anchor=Anchor("a loop", "(for_statment) @anchor"))
    assert "query" in file_problem(CARD.id, render(wrong))


def test_drafts_are_kept_per_card_and_hold_any_bytes(tmp_path: Path) -> None:
    drafts = CardDrafts(tmp_path)
    assert drafts.read("c.one") is None
    drafts.save("c.one", b"\xff\r\n")
    drafts.save("c.one", b"later")
    drafts.save("c.two", b"other")
    assert (drafts.read("c.one"), drafts.read("c.two")) == (b"later", b"other")
    drafts.clear("c.one")
    drafts.clear("c.one")
    assert drafts.read("c.one") is None
    with pytest.raises(KlineageError):
        drafts.save("../c.one", b"")
