"""The model lift: over the real SDK, with every claim held against the evidence that it cites."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from klineage.errors import KlineageError
from klineage.ledger import Ledger, Limit, OverBudget
from klineage.lineage import Workspace
from klineage.proposer.answer import Unusable
from klineage.proposer.question import Outcome
from klineage.proposer.registry import Context
from klineage.proposer.settings import Settings
from klineage.skill.card import Card
from klineage.skill.library import Library
from klineage.skill.lift import Group, groups_of, lifted, source_of
from klineage.skill.lift.model import LEDGER, ModelLifter, lifter_named
from klineage.skill.lift.model.reading import Told, read_told

from klineage_tui.cli import main

from ...messages_server import MessagesServer, Reply

Cite = tuple[str, str]


@pytest.fixture(scope="module")
def simd(lineages: Workspace) -> tuple[Card, Group]:
    """The card of vectors and what it was lifted from: e1 is of softmax, e2 of layernorm, e3 and e4 were rejected."""
    source = source_of(lineages, ("softmax-c", "layernorm-c"))
    (group,) = [group for group in groups_of(source) if group.rule == "vector-types"]
    return lifted(group, source, "c.vector-types"), group


def precondition(text: str, *cites: Cite, needs: tuple[str, ...] = (), check: str = "") -> dict[str, Any]:
    citations = [{"evidence": key, "quote": quote} for key, quote in cites]
    return {"citations": citations, "kind": "layout", "text": text, "needs": list(needs), "check": check}


def risk(text: str, *cites: Cite, seen: bool = False) -> dict[str, Any]:
    return {"citations": [{"evidence": k, "quote": q} for k, q in cites], "text": text, "seen": seen}


def answer(**fields: Any) -> dict[str, Any]:
    return {"preconditions": [], "risks": [], "intent": "", "anchor": "", "notes": "", **fields}


def lifter(git_dir: Path, dollars: str = "1", retries: int = 0) -> ModelLifter:
    limits = (Limit(Decimal(dollars), LEDGER),)
    return lifter_named(
        "model", Context(git_dir, LEDGER, Settings(timeout=600, retries=retries), limits=limits)
    )


@pytest.fixture
def told(tmp_path: Path, simd: tuple[Card, Group]) -> Callable[..., Card]:
    """What becomes of the card when a model says this of it."""

    def tell(**fields: Any) -> Card:
        text = json.dumps(answer(**fields))
        return lifter(tmp_path).with_told(*simd, read_told(Outcome("answered", text, "end_turn")))

    return tell


def test_what_evidence_shows_is_taken_and_cited(
    messages: MessagesServer, tmp_path: Path, simd: tuple[Card, Group]
) -> None:
    said = answer(
        intent="Compute a register of lanes at once.",
        anchor="Innermost loops that run over neighbouring elements.",
        preconditions=[
            precondition("Rows are read from left to right.", ("e1", "most[u] = larger(*(const vec *)(x + c"), check="k > 1"),
            precondition("The tail is finished one lane at a time.", ("e1", ""), ("e2", "")),
        ],
        risks=[risk("Fewer lanes gave wrong sums.", ("e3", ""), seen=True)],
    )  # fmt: skip
    messages.say(Reply(said))
    card = lifter(tmp_path)(*simd)
    before = simd[0]
    assert card.intent == "Compute a register of lanes at once."
    assert card.anchor.text.startswith("Innermost loops") and card.anchor.query == before.anchor.query
    first, second = card.preconditions[len(before.preconditions) :]
    assert (first.origin, first.evidence, first.doubt, first.check) == ("model", ("e1",), "", "k > 1")
    assert second.evidence == ("e1", "e2") and first.key != second.key
    (seen,) = card.risks[len(before.risks) :]
    assert (seen.kind, seen.origin, seen.evidence, seen.doubt) == ("observed", "model", ("e3",), "")
    assert card.effects == before.effects, "numbers are the gates' alone"
    assert "added 2 preconditions and 1 risks, of which 0 are doubted" in card.notes
    sent = str(messages.requests[0].body["messages"])
    assert "no compiler" not in sent and "12 of 4096 elements differ" in sent


@pytest.mark.parametrize(
    ("claim", "doubt"),
    [
        (precondition("Rows are aligned."), "it cites no evidence"),
        (precondition("Rows are aligned.", ("e9", "")), "it cites e9, which is no evidence of this card"),
        (precondition("Rows are aligned.", ("e1", "cp.async.cg")), "e1 does not read 'cp.async.cg'"),
        (precondition("Rows are aligned.", ("e1", "x")), "too short to be looked up"),
        (precondition("It gains 7.5x.", ("e1", "")), "its number 7.5 is in nothing that it cites"),
        (precondition("Vectors have 64 bytes.", ("e1", "")), "64 is the instance's own branch.1"),
        (precondition("Threads share it.", ("e1", ""), needs=("warp specialize",)), "and softmax-c K4 was made without it"),
        (precondition("It is hinted.", ("e1", ""), needs=("restrict",)), "and the edit can be made without it"),
        (precondition("It is so.", ("e1", ""), needs=("magic",)), "it needs 'magic', which no detector knows"),
        (precondition("It is checked.", ("e1", ""), check="__import__('os')"), "its check \"__import__('os')\" was left out"),
    ],
)  # fmt: skip
def test_an_unsupported_precondition_stays_with_its_doubt(
    told: Callable[..., Card], claim: dict[str, Any], doubt: str
) -> None:
    card = told(preconditions=[claim])
    (found,) = [one for one in card.preconditions if one.origin == "model"]
    assert found.text == claim["text"] and doubt in found.doubt
    assert not found.check
    assert "of which 1 are doubted" in card.notes


@pytest.mark.parametrize(
    ("claim", "doubt"),
    [
        (risk("It is slower on long rows.", ("e1", ""), seen=True), "it says that this was seen, and nothing that it cites shows it"),
        (risk("It fell over.", seen=True), "it cites no evidence"),
        (risk('Traceback: File "x.py", line 3', ("e3", "")), "it speaks of one machine's error"),
    ],
)  # fmt: skip
def test_an_unsupported_risk_is_only_expected(
    told: Callable[..., Card], claim: dict[str, Any], doubt: str
) -> None:
    (found,) = [one for one in told(risks=[claim]).risks if one.origin == "model"]
    assert found.kind == "expected" and doubt in found.doubt


def test_what_the_card_has_already_is_not_said_twice(
    told: Callable[..., Card], simd: tuple[Card, Group]
) -> None:
    mine = simd[0].preconditions[0].text
    card = told(preconditions=[precondition(mine.upper(), ("e1", ""))])
    assert card.preconditions == simd[0].preconditions


def test_a_sentence_with_a_number_of_its_own_is_said_in_the_notes(
    told: Callable[..., Card], simd: tuple[Card, Group]
) -> None:
    card = told(intent="Make it 31.7 times faster.")
    assert card.intent == simd[0].intent
    assert "would say 'Make it 31.7 times faster.', which was not taken: its number 31.7" in card.notes


def test_a_persons_words_stay(tmp_path: Path, simd: tuple[Card, Group]) -> None:
    card, group = simd
    mine = replace(card, intent="Mine.", anchor=replace(card.anchor, text="Here."), notes="Mine too.")
    found = lifter(tmp_path).with_told(mine, group, Told("Theirs.", "There.", notes="More."))
    assert (found.intent, found.anchor.text) == ("Mine.", "Here.")
    assert found.notes.splitlines()[0] == "Mine too." and found.notes.endswith("More.")
    again = lifter(tmp_path).with_told(found, group, Told(notes="Still more."))
    assert again.notes.endswith("Still more.") and "More." not in again.notes, "one line of each model"


def test_an_answer_is_paid_once(messages: MessagesServer, tmp_path: Path, simd: tuple[Card, Group]) -> None:
    messages.say(Reply(answer(notes="Once.")))
    first = lifter(tmp_path)(*simd)
    assert lifter(tmp_path)(*simd) == first
    assert lifter(tmp_path)(first, simd[1]).notes.count("Once.") == 1
    assert len(messages.requests) == 1
    total = Ledger.of(tmp_path).read().total()
    assert (total.calls, total.open) == (1, 0)


def test_nothing_is_asked_beyond_the_budget(
    messages: MessagesServer, tmp_path: Path, simd: tuple[Card, Group]
) -> None:
    with pytest.raises(OverBudget):
        lifter(tmp_path, "0.0001")(*simd)
    assert messages.requests == []


def test_an_answer_of_no_use_is_said_and_leaves_the_card(
    messages: MessagesServer, tmp_path: Path, simd: tuple[Card, Group]
) -> None:
    messages.say(Reply("I would rather not."))
    card = lifter(tmp_path)(*simd)
    assert "said nothing of use: its answer is not valid JSON" in card.notes
    assert replace(card, notes=simd[0].notes) == simd[0]


@pytest.mark.parametrize(
    ("text", "stop", "said"),
    [
        ("[]", "end_turn", "not a JSON object"),
        ("{}", "end_turn", "are no list of objects|no text"),
        ('{"preconditions": [{"kind": "mood"}], "risks": [], "intent": "", "anchor": "", "notes": ""}', "end_turn", "no kind among"),
        ("{}", "max_tokens", "ends with max_tokens"),
        ('{"a":' * 100_000, "end_turn", "not valid JSON"),
    ],
)  # fmt: skip
def test_an_answer_without_the_form_is_one_sentence(text: str, stop: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        read_told(Outcome("answered", text, stop))


def test_only_a_model_can_be_asked(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match="write rules, model or model:ID"):
        lifter_named("command:claude", Context(tmp_path, LEDGER))


def test_the_verb_asks_about_one_card_and_writes_what_it_says(
    messages: MessagesServer, copied: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    messages.say(
        Reply(answer(preconditions=[precondition("Rows are long.", ("e7", "")), precondition("Sums reorder.", ("e1", ""))]))
    )  # fmt: skip
    words = ["lift", "softmax-c", "layernorm-c", "-w", str(copied.path), "--into", "library"]
    assert main([*words, "--proposer", "model", "--budget", "1", "--only", "c.unroll"]) == 0
    out = capsys.readouterr().out
    assert "asking model:claude-sonnet-5-5 about c.unroll" in out
    assert "UNSUPPORTED: it cites e7, which is no evidence of this card" in out
    assert len(messages.requests) == 1
    card = Library.of(copied).get("c.unroll")
    doubts = {one.text: bool(one.doubt) for one in card.preconditions if one.origin == "model"}
    assert doubts == {"Rows are long.": True, "Sums reorder.": False}
    assert Ledger.of(copied.git.place).read().total().calls == 1
