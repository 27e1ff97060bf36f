"""The structural lift: every claim with what shows it, and nothing of a person lost when it is done again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Moved, Workspace
from klineage.proposer.rules import RULES, Rule
from klineage.skill.anchors import find_anchor
from klineage.skill.card import Card, Contract, Evidence, Precondition, Risk
from klineage.skill.contract import consistent
from klineage.skill.file import parse, render
from klineage.skill.library import Library
from klineage.skill.lift import Group, groups_of, source_of
from klineage.skill.lift.carrier import gap
from klineage.skill.lift.citing import cited
from klineage.skill.lift.preconditions import preconditions_of
from klineage.skill.lift.shelving import Lift, lift, put
from klineage.skill.lift.structural import in_short

from klineage_tui.cli import main

from .lineages import Lineage, made, seal_again

BOTH = ("softmax-c", "layernorm-c")
LIFTED = (*BOTH, "gemm-triton")


@pytest.fixture(scope="module")
def cards(lineages: Workspace) -> dict[str, Card]:
    return {one.id: one.card for one in lift(source_of(lineages, LIFTED))}


def test_transitions_of_one_action_place_and_change_are_one_card(
    lineages: Workspace, cards: dict[str, Card]
) -> None:
    assert {"c.vector-types", "c.unroll", "c.prefetch", "triton.pipelining"} <= set(cards)
    told = {item.lineage for item in cards["c.vector-types"].evidence}
    assert told == {"softmax-c", "layernorm-c"}
    groups = groups_of(source_of(lineages, LIFTED))
    assert len(groups) == len({group.key for group in groups}) == len(cards)
    assert sum(len(group.transitions) for group in groups) == 5 + 6 + 8


def test_every_claim_names_evidence_that_is_there(lineages: Workspace, cards: dict[str, Card]) -> None:
    for card in cards.values():
        known = {item.key: item for item in card.evidence}
        for effect in card.effects:
            assert effect.evidence and set(effect.evidence) <= set(known)
        claims: tuple[Risk | Precondition, ...] = (*card.risks, *card.preconditions)
        for claim in claims:
            assert claim.evidence and set(claim.evidence) <= set(known), claim.text
        for item in card.evidence:
            assert lineages.step(item.commit).id == item.lineage


def test_a_card_is_a_file_and_comes_back(cards: dict[str, Card]) -> None:
    for card in cards.values():
        assert card.status == "hypothesis" and not card.verification
        assert parse(render(card), f"{card.id}.md") == card


def test_effects_are_what_a_clock_shows_beyond_its_noise(cards: dict[str, Card]) -> None:
    effects = {effect.workload: effect for effect in cards["c.vector-types"].effects}
    assert effects["softmax"].gain == pytest.approx(4.0)
    assert effects["layernorm"].gain == pytest.approx(2.0)
    assert {(e.quantity, e.trust, e.position) for e in effects.values()} == {
        ("time", "measured-cpu", "in-order")
    }
    assert cards["c.restrict"].effects == (), "1.03x with an interval of 5 % shows nothing"


def test_what_was_counted_says_nothing_of_time(cards: dict[str, Card]) -> None:
    (effect,) = cards["triton.tile-size"].effects
    assert (effect.quantity, effect.trust) == ("instructions", "static")
    assert effect.gain == effect.low == effect.high == pytest.approx(8 / 7, rel=1e-5)
    pipelining = cards["triton.pipelining"]
    assert pipelining.effects == ()
    told = [risk.text for risk in pipelining.risks]
    assert "It costs instructions in the code: 700 to 800 on gemm (static)." in told
    assert "It costs bytes of shared memory: 8,192 to 65,536 on gemm (static)." in told
    fits = next(one for one in pipelining.preconditions if "shared memory" in one.text)
    assert fits.check == "shared_bytes <= shared_limit" and fits.evidence


def test_a_transition_that_a_check_fails_on_speaks_against_the_precondition(lineages: Workspace) -> None:
    (group,) = [g for g in groups_of(source_of(lineages, ["gemm-triton"])) if g.rule == "pipelining"]
    older = replace(group, transitions=tuple(replace(t, platform="nvidia-sm75") for t in group.transitions))
    assert _hardware(group).doubt == "" and _hardware(group).evidence
    assert _hardware(older).doubt == "its check fails on gemm-triton K7, where it was put on all the same"
    assert _hardware(older).evidence == ()


def _hardware(group: Group) -> Precondition:
    (found,) = [p for p in preconditions_of(group, Contract(), cited(group)) if "satisfies" in p.check]
    return found


def test_a_rejected_attempt_is_a_risk_that_links_it(lineages: Workspace, cards: dict[str, Card]) -> None:
    card = cards["c.vector-types"]
    (risk,) = [risk for risk in card.risks if "Use four lanes" in risk.text]
    assert risk.kind == "observed" and "12 of 4096 elements differ" in risk.text
    (item,) = [item for item in card.evidence if item.key in risk.evidence]
    assert (item.kind, lineages.step(item.commit).decision) == ("rejected", "rejected")
    (by_person,) = [risk for risk in cards["c.unroll"].risks if "Unroll by 8" in risk.text]
    assert by_person.kind == "expected" and "the tail reads too far" in by_person.text


def test_a_machine_that_could_not_judge_is_no_risk(cards: dict[str, Card]) -> None:
    assert not [risk for card in cards.values() for risk in card.risks if "no compiler" in risk.text]


def test_an_edit_that_was_not_what_it_claimed_is_no_risk(cards: dict[str, Card]) -> None:
    card = cards["c.vector-types"]
    assert "Compute one lane" in " ".join(item.note for item in card.evidence)
    assert not [risk for risk in card.risks if "still there" in risk.text or "Compute one lane" in risk.text]


def test_an_attempt_is_told_as_the_removal_that_it_was(cards: dict[str, Card]) -> None:
    assert [
        r.text
        for r in cards["c.vector-types"].risks
        if "take simd out of softmax-c (Use four lanes)" in r.text
    ]


def test_the_anchor_says_the_place_in_words_of_the_field_and_then_by_structure(
    cards: dict[str, Card],
) -> None:
    for card in cards.values():
        rule = next(r for r in RULES[card.surface] if f"{card.surface}.{r.name}" == card.rule)
        assert rule.at and card.anchor.text.startswith(f"{rule.at}: a "), card.anchor.text


@pytest.mark.parametrize(
    "rule", [rule for rules in RULES.values() for rule in rules], ids=lambda rule: rule.name
)
def test_an_intent_says_more_than_its_title(rule: Rule) -> None:
    """``Keep several items in registers: a thread keeps several items in registers`` says it twice."""
    told = in_short(rule.adds, rule.rationale)
    title, _, reason = told.partition(": ")
    assert title == rule.adds and reason.endswith(".") and len(told) < 250
    had = {word[:4] for word in re.findall(r"\w{4,}", title.lower())}
    assert {word[:4] for word in re.findall(r"\w{4,}", reason.lower())} - had


def test_no_gain_a_loss_and_more_rounding_are_risks(cards: dict[str, Card]) -> None:
    told = [risk.text for risk in cards["c.prefetch"].risks]
    assert told == ["It made the kernel slower: 1.25x [1.24, 1.26] on layernorm (measured-cpu)."]
    (idle,) = cards["c.register-tile"].risks
    assert idle.text.startswith(
        "It gained nothing beyond noise as a step of layernorm-c (1.00x [0.990, 1.01] time)"
    )
    (rounding,) = [r for r in cards["c.vector-types"].risks if "round" in r.text]
    assert "from 0.01 to 0.2 of the tolerance on layernorm" in rounding.text
    assert [r for r in cards["c.alignment-hints"].risks if "softmax" in r.text] == [], (
        "too noisy says nothing"
    )


def test_numbers_of_the_instance_are_settings_and_no_preconditions(cards: dict[str, Card]) -> None:
    tile = cards["triton.tile-size"]
    assert tile.carrier.settings["BLOCK_M"] == "256"
    for card in cards.values():
        numbers = {n for value in card.carrier.settings.values() for n in re.findall(r"\b\d{2,}\b", value)}
        for one in card.preconditions:
            if one.origin in ("features", "compile"):
                assert not numbers & set(re.findall(r"\b\d+\b", one.text)), card.id


def test_the_carrier_shows_the_change_and_where_it_acts(cards: dict[str, Card]) -> None:
    pairs = changes(cards["c.unroll"])
    assert pairs and all("#pragma GCC unroll" in after and before != after for before, after in pairs)
    assert all(set(before.splitlines()) <= set(after.splitlines()) for before, after in pairs)
    *changed, (place, same) = changes(cards["c.register-tile"])
    assert all(before != after and "for (" not in before for before, after in changed)
    assert place == same and "for (int u = 0; u < UNROLL; ++u)" in place, (
        "only macros change: what they act on is shown"
    )


def changes(card: Card) -> list[tuple[str, str]]:
    """(before, after) of each piece of the carrier."""
    mark = f"{gap(card.surface)}\n"
    return list(zip(card.carrier.before.split(mark), card.carrier.after.split(mark), strict=True))


def test_the_contract_and_the_anchor_hold_for_every_transition(
    lineages: Workspace, cards: dict[str, Card]
) -> None:
    for group in groups_of(source_of(lineages, LIFTED)):
        (card,) = [c for c in cards.values() if c.evidence[0].commit == group.transitions[0].commit]
        assert consistent(card.contract, group.transitions) == ()
        assert all(find_anchor(card.anchor.query, t.before) for t in group.transitions), card.id


# -- lifting again --------------------------------------------------------------------------------


def shelved(copied: Workspace, *lineages: str) -> tuple[Lift, ...]:
    library = Library.of(copied)
    found = lift(source_of(copied, lineages or BOTH), library)
    put(library, found, "Ann")
    return found


def states(lifts: tuple[Lift, ...]) -> dict[str, str]:
    return {one.id: one.state for one in lifts}


def test_lifting_twice_changes_nothing(copied: Workspace) -> None:
    assert set(states(shelved(copied)).values()) == {"new"}
    tip = Library.of(copied).history()[0].commit
    assert set(states(shelved(copied)).values()) == {"unchanged"}
    assert Library.of(copied).history()[0].commit == tip


def test_another_lineage_adds_to_a_card_and_keeps_its_keys(copied: Workspace) -> None:
    shelved(copied, "softmax-c")
    library = Library.of(copied)
    before = library.get("c.vector-types")
    found = states(shelved(copied))
    assert found["c.vector-types"] == "updated" and found["c.prefetch"] == "new"
    after = library.get("c.vector-types")
    assert after.evidence[: len(before.evidence)] == before.evidence
    assert set(before.effects) < set(after.effects)
    assert [one.key for one in after.preconditions][: len(before.preconditions)] == [
        one.key for one in before.preconditions
    ]
    assert "layernorm" in after.scope.workloads


def test_what_a_person_wrote_changed_or_took_out_stays(copied: Workspace) -> None:
    shelved(copied, "softmax-c")
    library = Library.of(copied)
    card = library.get("c.vector-types")
    mine = replace(card.preconditions[0], text="Every lane holds an fp32.", origin="person")
    edited = replace(
        card,
        intent="Compute many lanes at once.",
        preconditions=(mine, *card.preconditions[2:], Precondition("p9", "layout", "Rows do not alias.")),
        risks=(Risk("Denormals are slow."),),
        notes="Mine.",
    )
    library.save(edited, "Bea", "I know better")
    found = {one.id: one for one in shelved(copied)}
    after = library.get("c.vector-types")
    assert after.intent == "Compute many lanes at once." and after.notes == "Mine."
    assert found["c.vector-types"].kept == ("intent",)
    texts = [one.text for one in after.preconditions]
    assert texts[: len(edited.preconditions)] == [one.text for one in edited.preconditions]
    assert card.preconditions[1].text not in texts, "it was taken out, and stays out"
    assert card.preconditions[0].text not in texts, "it was said anew, and does not come back beside that"
    assert after.risks[0].text == "Denormals are slow."
    assert not [risk for risk in after.risks if "Use four lanes" in risk.text], (
        "the person took that risk out"
    )
    assert {e.workload for e in after.effects} == {"softmax", "layernorm"}


def test_evidence_that_a_person_took_out_does_not_come_back(copied: Workspace) -> None:
    shelved(copied)
    library = Library.of(copied)
    card = library.get("c.unroll")
    kept = tuple(item for item in card.evidence if item.lineage != "layernorm-c")
    library.save(replace(card, evidence=kept, effects=(), risks=()), "Bea", "layernorm says nothing of this")
    assert states(shelved(copied))["c.unroll"] == "unchanged"
    assert {item.lineage for item in library.get("c.unroll").evidence} == {"softmax-c"}


def test_a_lift_that_was_undone_can_be_done_again(copied: Workspace) -> None:
    shelved(copied, "softmax-c")
    shelved(copied)
    library = Library.of(copied)
    assert library.undo().startswith("Lift ")
    assert {item.lineage for item in library.get("c.unroll").evidence} == {"softmax-c"}
    assert states(shelved(copied))["c.unroll"] == "updated"


def test_what_further_evidence_speaks_against_goes(copied: Workspace) -> None:
    library = Library.of(copied)
    shelved(copied, "gemm-c")
    before = library.get("c.vector-types")
    assert [f.name for f in before.contract.requires] == ["register_tiling"]
    assert [one for one in before.preconditions if "register_tiling" in one.text]
    shelved(copied, "softmax-c")
    after = library.get("c.vector-types")
    assert {item.lineage for item in after.evidence} == {"gemm-c", "softmax-c"}
    assert after.contract.requires == () and not [
        p for p in after.preconditions if "register_tiling" in p.text
    ]
    for lineage in ("gemm-c", "softmax-c"):
        (group,) = [g for g in groups_of(source_of(copied, [lineage])) if g.rule == "vector-types"]
        assert all(find_anchor(after.anchor.query, t.before) for t in group.transitions), (
            "it finds the places of both"
        )
        assert consistent(after.contract, group.transitions) == ()


def test_an_anchor_and_a_contract_that_hold_stay_as_they_are(copied: Workspace) -> None:
    library = Library.of(copied)
    shelved(copied, "softmax-c")
    before = library.get("c.register-tile")
    shelved(copied, "layernorm-c")
    after = library.get("c.register-tile")
    assert len(after.evidence) > len(before.evidence)
    assert (after.anchor, after.contract, after.carrier) == (before.anchor, before.contract, before.carrier)
    mine = replace(after, anchor=replace(after.anchor, query="(while_statement) @anchor"))
    library.save(mine, "Bea", "mine")
    found = {one.id: one for one in shelved(copied, "gemm-c")}["c.register-tile"]
    assert library.get("c.register-tile").anchor == mine.anchor and found.kept == ("anchor",)


def test_a_probe_of_a_transition_is_no_transition(copied: Workspace) -> None:
    library = Library.of(copied)
    shelved(copied, "softmax-c")
    card = library.get("c.unroll")
    commit = card.evidence[0].commit
    probed = Evidence("e9", "probe", "softmax-c", commit, note="nothing broke")
    library.save(replace(card, evidence=(*card.evidence, probed)), "Bea", "probed")
    assert states(shelved(copied, "softmax-c"))["c.unroll"] == "unchanged"
    shelved(copied)
    after = library.get("c.unroll")
    assert [one.evidence[0] for one in after.preconditions] == ["e1"] * len(after.preconditions)
    assert all("e9" not in one.evidence for one in after.preconditions)


def test_a_lineage_that_was_sealed_again_is_cited_where_it_is_now(copied: Workspace) -> None:
    library = Library.of(copied)
    shelved(copied, "softmax-c")
    before = library.get("c.unroll")
    seal_again(copied, "softmax-c")
    assert before.evidence[0].commit not in {step.commit for step in copied.lineage("softmax-c")}
    assert set(states(shelved(copied, "softmax-c")).values()) == {"updated"}
    after = library.get("c.unroll")
    assert [item.key for item in after.evidence] == [item.key for item in before.evidence]
    assert after.evidence[0].commit in {step.commit for step in copied.lineage("softmax-c")}
    assert (after.preconditions, after.risks, after.anchor) == (
        before.preconditions,
        before.risks,
        before.anchor,
    )
    assert set(states(shelved(copied, "softmax-c")).values()) == {"unchanged"}


def test_a_retired_card_is_left_alone_and_a_broken_one_is_named(copied: Workspace) -> None:
    shelved(copied, "softmax-c")
    library = Library.of(copied)
    library.save(
        replace(library.get("c.unroll"), status="retired", retired="the compiler does it"), "Bea", "no gain"
    )
    text = library.source("c.restrict").replace(b"intent:", b"intend:")
    copied.git.run("cat-file", "-e", "refs/heads/library")
    broken = _overwritten(copied, "c.restrict", text)
    found = {one.id: one for one in lift(source_of(copied, BOTH), broken)}
    assert found["c.unroll"].state == "retired" and "the compiler does it" in found["c.unroll"].problem
    assert found["c.restrict"].state == "broken" and re.search(
        r"c\.restrict\.md:\d+:", found["c.restrict"].problem
    )
    assert found["c.vector-types"].state == "updated"
    put(broken, tuple(found.values()))
    assert library.get("c.unroll").status == "retired"


def _overwritten(copied: Workspace, card_id: str, text: bytes) -> Library:
    """The library after somebody has written a card's file with plain git."""
    run = copied.git.run
    blob = run("hash-object", "-w", "--stdin", data=text).decode().strip()
    tree = run("ls-tree", "-r", "refs/heads/library").decode().splitlines()
    rows = [
        f"100644 blob {blob if path.endswith(f'{card_id}.md') else meta.split()[2]}\t{path.rpartition('/')[2]}"
        for meta, path in (row.split("\t") for row in tree)
        if path.startswith("cards/")
    ]
    cards = run("mktree", data="\n".join(rows).encode()).decode().strip()
    root = run("mktree", data=f"040000 tree {cards}\tcards\n".encode()).decode().strip()
    commit = run(
        "-c", "user.name=Eve", "-c", "user.email=e@x", "commit-tree", root, "-p", "refs/heads/library", "-m", "By hand"
    ).decode().strip()  # fmt: skip
    run("update-ref", "refs/heads/library", commit)
    return Library.of(copied)


def test_a_card_that_was_edited_meanwhile_is_not_overwritten(copied: Workspace) -> None:
    shelved(copied, "softmax-c")
    library = Library.of(copied)
    found = lift(source_of(copied, BOTH), library)
    library.save(replace(library.get("c.unroll"), intent="Mine."), "Bea", "mine")
    with pytest.raises(Moved):
        put(library, found)
    assert library.get("c.unroll").intent == "Mine."


# -- the verb -------------------------------------------------------------------------------------


def test_the_verb_shows_and_writes(
    copied: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(copied.path)
    assert main(["lift", "softmax-c", "-w", folder]) == 0
    shown = capsys.readouterr().out
    assert "nothing was written; klineage lift softmax-c --into library" in shown
    assert "gains 4.00x time on softmax (measured-cpu)" in shown
    assert Library.of(copied).cards() == ()
    assert main(["lift", "softmax-c", "-w", folder, "--into", "library", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["commit"] == Library.of(copied).history()[0].commit
    assert {row["state"] for row in told["cards"]} == {"new"}
    (simd,) = [row for row in told["cards"] if row["id"] == "c.vector-types"]
    assert simd["transitions"] == ["softmax-c K4"] and simd["card"]["effects"][0]["trust"] == "measured-cpu"
    assert main(["lift", *BOTH, "-w", folder, "--into", "library", "--only", "c.prefetch"]) == 0
    assert {entry.id for entry in Library.of(copied).cards()} >= {"c.prefetch", "c.unroll"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing-here"], "there is no lineage 'nothing-here'"),
        (["softmax-c", "--only", "c.no-such"], "no card 'c.no-such' comes of these lineages; they give c."),
        (["--proposer", "model"], "model costs money: say --budget"),
        (["--proposer", "command:x"], "'command:x' cannot lift cards; write rules, model or model:ID"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    copied: Workspace, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert main(["lift", "-w", str(copied.path), *words]) == 1
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


def test_a_workspace_without_a_sealed_lineage_says_so(tmp_path: Path) -> None:
    with (
        made(tmp_path / "empty") as workspace,
        pytest.raises(KlineageError, match="klineage seal ID writes one"),
    ):
        source_of(workspace)


def test_what_no_rule_made_is_lifted_too(tmp_path: Path) -> None:
    with made(tmp_path / "workspace") as workspace:
        Lineage.open(workspace, "softmax").seal(by="model:claude-x; prompt 0123456789ab")
        cards = {one.id: one.card for one in lift(source_of(workspace))}
    simd = cards["c.simd"]
    assert (simd.rule, simd.preconditions) == ("", ())
    assert simd.intent.startswith("Compute with vectors: a vector type computes all lanes")
    assert simd.carrier.settings and simd.anchor.query
    assert "replayed by model:claude-x" in simd.evidence[0].note
    assert "Only replayed" in simd.notes
