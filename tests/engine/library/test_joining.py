"""Cards of one id that were begun apart: what adds up, whose words go first, and what a person has to decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.lineage import Workspace
from klineage.skill.card import Anchor, Card, Carrier, Evidence, Precondition, Probe, Risk, Scope
from klineage.skill.file import kept, parse, render
from klineage.skill.library import Library
from klineage.skill.library.git import GitShelf
from klineage.skill.library.joining import Hands, join_cards
from klineage.skill.library.merge import Side
from klineage.skill.library.pull import Choice, Conflicts, Pulled, pull
from klineage.skill.staleness import fingerprints, stale, verified_by

from ..skill.strategies import cards
from .some_cards import PREFETCH, trial

held = cards.map(kept)  # as a file holds them


def lifted(name: str, **changes: object) -> Card:
    """The card as a lift from the lineage ``name`` makes it."""
    return replace(
        PREFETCH,
        evidence=(
            Evidence("e1", "transition", name, name[0] * 40),
            Evidence("e2", "rejected", name, "b" * 40),
        ),
        anchor=Anchor(f"A loop in {name}.", "((for_statement) @anchor)"),
        carrier=Carrier(f"before {name};\n", f"after {name};\n", {"AHEAD": name}, ("e1",)),
        effects=(replace(PREFETCH.effects[0], workload=name),),
        scope=Scope(workloads=(name,)),
        notes=f"Lifted from {name}.",
        **changes,  # type: ignore[arg-type]  # fields of a card
    )


def tried(card: Card) -> Card:
    """The card with a trial that is fresh, and admitted by it."""
    evidence = (*card.evidence, Evidence("e3", "trial", report="r.json"))
    accepted = replace(trial("v1", "experts/topk", "e3"), rested_on=fingerprints(card))
    return replace(card, status="admitted", evidence=evidence, verification=(accepted,))


def test_what_was_found_adds_up_and_words_are_those_that_trials_bear() -> None:
    ours, theirs = lifted("conv"), tried(lifted("gemm"))
    card, conflicts = join_cards(ours, theirs)
    assert conflicts == ()
    assert (card.status, card.anchor, card.carrier.before) == ("admitted", theirs.anchor, "before gemm;\n")
    assert card.scope.workloads == ("conv", "gemm")
    assert [effect.workload for effect in card.effects] == ["gemm", "conv"]
    notes = {item.key: item.lineage or item.report for item in card.evidence}
    assert sorted(notes.values()) == ["conv", "conv", "gemm", "gemm", "r.json"]
    assert notes[card.carrier.evidence[0]] == "gemm"
    assert {notes[key] for key in card.preconditions[0].evidence} == {"conv", "gemm"}
    assert [one.key for one in verified_by(card)] == ["v1"]
    assert join_cards(theirs, ours)[0].carrier.before == "before gemm;\n"
    assert join_cards(theirs, theirs) == (theirs, ())
    assert join_cards(ours, lifted("gemm"))[0].carrier == replace(ours.carrier, evidence=("e1",))


def test_a_persons_words_go_before_a_lifts_and_two_persons_are_asked() -> None:
    ours, theirs = lifted("conv", intent="Fetch early"), tried(lifted("gemm", intent="Fetch late"))
    assert join_cards(ours, theirs)[0].intent == "Fetch late"
    by_me = Hands(ours=frozenset({"intent"}))
    card, conflicts = join_cards(ours, theirs, by_me)
    assert (card.intent, card.anchor, conflicts) == ("Fetch early", theirs.anchor, ())
    both = Hands(frozenset({"intent", "anchor"}), frozenset({"intent"}))
    card, (conflict,) = join_cards(ours, theirs, both)
    assert (conflict.field, conflict.base, conflict.ours, conflict.theirs) == (
        "intent", "", "Fetch early", "Fetch late",
    )  # fmt: skip
    assert (card.intent, card.anchor) == ("Fetch early", ours.anchor)
    assert join_cards(ours, theirs, both, {"intent": "theirs"})[0].intent == "Fetch late"


def test_preconditions_meet_by_what_they_say_whatever_their_keys() -> None:
    large = Precondition(
        "p1", "storage", "It is large.", "n > 9", Probe("size", {"dim": "n"}), "rule", ("e1",)
    )
    dense = Precondition("p2", "layout", "rows are dense", "", None, "rule", ("e2",))
    ran = replace(
        large, key="p2", text="it is  large", probe=Probe("size", {"dim": "n"}, "confirmed", "slow")
    )
    edited = replace(dense, key="p1", text="rows lie apart", origin="person")
    theirs = tried(lifted("gemm", preconditions=(edited, ran)))
    card, conflicts = join_cards(lifted("conv", preconditions=(large, dense)), theirs)
    assert conflicts == ()
    assert [(one.key, one.text) for one in card.preconditions] == [
        ("p1", "it is  large"), ("p2", "rows are dense"), ("p3", "rows lie apart"),
    ]  # fmt: skip
    assert card.preconditions[0].probe == ran.probe
    assert stale(card) == {"v1": ("precondition.p2",)}  # the one that it was not tried with
    refuted = replace(ran, probe=Probe("size", {"dim": "n"}, "refuted", "nothing broke"))
    _, (conflict,) = join_cards(lifted("conv", preconditions=(refuted,)), theirs)
    assert (conflict.field, "nothing broke" in conflict.ours) == ("preconditions.p2.probe", True)


@pytest.mark.parametrize(
    "other", [{"locus": "for"}, {"action": "unroll"}, {"status": "retired", "retired": "wrong"}]
)
def test_what_makes_them_two_things_is_asked(other: dict[str, str]) -> None:
    ours, theirs = lifted("conv"), lifted("gemm", **other)
    (name, value), *_ = other.items()
    card, (conflict,) = join_cards(ours, theirs)
    assert (conflict.field, conflict.ours, conflict.theirs) == (name, getattr(ours, name), value)
    assert getattr(card, name) == getattr(ours, name)
    taken, left = join_cards(ours, theirs, taken={name: "theirs"})
    assert (getattr(taken, name), left) == (value, ())
    if name != "status":
        assert (card, taken) == (ours, theirs)


@settings(max_examples=20, deadline=None)
@given(held, held, st.sampled_from(("ours", "theirs")))
def test_any_two_cards_can_be_joined(one: Card, two: Card, side: Side) -> None:
    ours, theirs = one, replace(two, id=one.id)
    card, conflicts = join_cards(ours, theirs)
    settled, left = join_cards(ours, theirs, taken={conflict.field: side for conflict in conflicts})
    assert left == ()
    assert settled == card or side == "theirs"
    assert parse(render(settled), "card") == kept(settled)
    apart = {"action", "surface", "locus", "rule", "contract.provides"}
    if not apart & {conflict.field for conflict in conflicts}:
        for trial_ in (*ours.verification, *theirs.verification):
            assert any(trial_.target == each.target and trial_.why == each.why for each in card.verification)
        for item in (*ours.evidence, *theirs.evidence):
            assert any((item.commit, item.report) == (each.commit, each.report) for each in card.evidence)
    for group in (settled.evidence, settled.verification, settled.preconditions):
        keys = [item.key for item in group]
        assert len(keys) == len(set(keys))


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Library]:
    library = Library.of(Workspace.create(tmp_path / "theirs"))
    yield library
    library.close()


def lift(library: Library, card: Card) -> None:
    library.save_all([card], title="Lift 1 card from somewhere")


def bring(library: Library, source: Path, taken: Choice | None = None) -> Pulled:
    assert isinstance(library.shelf, GitShelf)
    return pull(library.shelf, str(source), taken=taken)


def test_a_card_that_both_lifted_is_pulled_without_a_question(library: Library, theirs: Library) -> None:
    lift(library, lifted("conv"))
    lift(theirs, tried(lifted("gemm")))
    library.update("c.prefetch", lambda card: replace(card, intent="Fetch early", notes=""), "Ann", "vague")
    assert bring(library, theirs.path).changed == ("c.prefetch",)
    card = library.get("c.prefetch")
    assert (card.intent, card.status, card.carrier.before) == ("Fetch early", "admitted", "before gemm;\n")
    assert bring(library, theirs.path).changed == ()
    assert bring(theirs, library.path).changed == ("c.prefetch",)
    assert theirs.get("c.prefetch") == card


def test_only_what_two_persons_wrote_is_a_conflict(library: Library, theirs: Library) -> None:
    for side, name in ((library, "conv"), (theirs, "gemm")):
        lift(side, lifted(name))
        side.save(lifted(name, intent=f"Fetch {name}"), "Ann", "vague")
    with pytest.raises(Conflicts, match=r"fields: c\.prefetch: intent; nothing"):
        bring(library, theirs.path)
    bring(library, theirs.path, {"c.prefetch": "theirs"})
    card = library.get("c.prefetch")
    assert (card.intent, card.carrier.before) == ("Fetch gemm", "before conv;\n")


def test_a_pull_that_joined_can_be_undone_and_done_again(library: Library, tmp_path: Path) -> None:
    own = lifted("conv", risks=(Risk("slow"),))
    lift(library, own)
    folder = tmp_path / "shared" / "cards"
    folder.mkdir(parents=True)
    (folder / "c.prefetch.md").write_bytes(render(tried(lifted("gemm"))))
    assert bring(library, tmp_path / "shared").changed == ("c.prefetch",)
    joined = library.source("c.prefetch")
    library.undo()
    assert library.get("c.prefetch") == own
    assert bring(library, tmp_path / "shared").changed == ("c.prefetch",)
    assert library.source("c.prefetch") == joined
