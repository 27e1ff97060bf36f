"""Where a card stands in the queue, and how the queue moves: pure functions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from klineage.skill.card import Card, Effect, Evidence, Precondition, Probe, Risk, Verification
from klineage.skill.staleness import fingerprints, probe_fingerprint

from klineage_tui.actions import keymap
from klineage_tui.card_queue import Item, Marks, item_of, queue_of, standing_of
from klineage_tui.card_reading import marks_of, troubled
from klineage_tui.presentation.card_queue import cut_why, nothing_yet, queue_counts, queue_lines, why_lines

CARD = Card(
    "c.prefetch",
    "Fetch the next lines while these are used",
    "prefetch",
    "c",
    preconditions=(
        Precondition("p1", "storage", "the array is larger than the cache", "n > 4096", Probe("size")),
    ),
    effects=(Effect("time", 1.3, 1.2, 1.4, "measured-cpu", "cpu-x86-64-v3", "gemm"),),
    evidence=(Evidence("e1", "transition", "gemm-c", "a" * 40),),
)


def probed(card: Card, outcome: str, found: str = "") -> Card:
    """The card with its first precondition probed now."""
    first = card.preconditions[0]
    assert first.probe is not None
    first = replace(first, probe=replace(first.probe, outcome=outcome, found=found))
    assert first.probe is not None
    first = replace(first, probe=replace(first.probe, of=probe_fingerprint(first)))
    return replace(card, preconditions=(first, *card.preconditions[1:]))


def tried(
    card: Card, key: str = "v1", *, accepted: bool = True, target: str = "bmm-c:K0", when: str = "1"
) -> Card:
    """The card with a held-out trial of what it says now."""
    trial = Verification(
        key, target, "bmm", "c", "cpu-x86-64-v3", (), "rules:c.prefetch", accepted, "so it was", ("workload",),
        when=when, rested_on=fingerprints(card),
    )  # fmt: skip
    return replace(card, verification=(*card.verification, trial))


def edited(card: Card, text: str = "the array is twice as large as the cache") -> Card:
    first = replace(card.preconditions[0], text=text)
    return replace(card, preconditions=(first, *card.preconditions[1:]))


DONE = probed(CARD, "confirmed", "n = 512: it gains nothing")
STANDINGS = {
    "a probe that has not run": (CARD, "probe", "p1 is not probed yet"),
    "probed, and never tried": (DONE, "try", "no held-out kernel"),
    "tried in vain": (tried(DONE, accepted=False), "try", "v1 failed on bmm-c:K0"),
    "shown on a held-out kernel": (tried(DONE), "accept", "v1 shows it on bmm-c:K0"),
    "admitted": (replace(tried(DONE), status="admitted"), "admitted", "shown on bmm-c:K0"),
    "admitted by a trial of other words": (replace(edited(tried(DONE)), status="admitted"), "stale", "p1 was edited"),
    "admitted without a trial": (replace(DONE, status="admitted"), "stale", "no trial on a held-out kernel"),
    "edited and probed again": (probed(edited(tried(DONE)), "confirmed"), "stale", "v1 rests on precondition.p1"),
    "refuted": (probed(CARD, "refuted", "n = 512: nothing breaks"), "disagreement", "p1 is refuted: n = 512"),
    "refuted, then edited": (edited(probed(CARD, "refuted")), "stale", "p1 was edited since the probe"),
    "in doubt": (replace(DONE, risks=(Risk("it spills", doubt="no report says so"),)), "disagreement", "no report"),
    "failed where it was accepted": (
        tried(tried(DONE), "v2", accepted=False, when="2"), "disagreement", "v2 failed on bmm-c:K0, where v1 was accepted",
    ),
    "accepted where it had failed": (tried(tried(DONE, accepted=False), "v2", when="2"), "accept", "v2 shows it"),
    "nothing that a trial could show": (replace(DONE, effects=()), "try", "declares no gain"),
    "a probe that showed nothing": (
        probed(CARD, "untested", "too noisy"), "probe", "p1 was probed and nothing was shown: too noisy",
    ),
    "retired": (replace(DONE, status="retired", retired="merged into c.hint"), "retired", "merged into c.hint"),
}  # fmt: skip


@pytest.mark.parametrize("name", STANDINGS)
def test_where_a_card_stands(name: str) -> None:
    card, standing, words = STANDINGS[name]
    found, why = standing_of(card, marks_of(card))
    assert found == standing
    assert words in why


def test_a_trial_that_is_made_again_renews_the_stale_one() -> None:
    renewed = tried(probed(edited(replace(tried(DONE), status="admitted")), "confirmed"), "v2", when="2")
    marks = marks_of(renewed)
    assert set(marks.stale) == {"v1"}
    assert standing_of(renewed, marks)[0] == "admitted"


def test_what_lint_or_the_evidence_says_against_a_card_is_a_disagreement() -> None:
    assert standing_of(DONE, Marks(faults=("it provides simd, which K3 did not add",)))[0] == "disagreement"


def items() -> list[Item]:
    cards = [replace(card, id=f"c.card-{i}") for i, (card, _, _) in enumerate(STANDINGS.values())]
    broken = Item("c.broken", None, "broken", "c.broken.md:3: what is this, take it out")
    return [*(item_of(card, marks_of(card)) for card in cards), broken]


def test_the_queue_is_in_the_order_of_need_and_goes_round() -> None:
    queue = queue_of(items())
    order = [item.standing for item in queue.items]
    assert order == sorted(
        order, key=["broken", "disagreement", "stale", "probe", "accept", "try", "admitted", "retired"].index
    )
    assert queue.current is not None and queue.current.standing == "broken"
    seen = []
    for _ in range(queue.needed):
        seen.append(queue.position)
        queue = queue.next_needed()
    assert seen == list(range(len(seen)))
    assert queue.position == 0, "after the last one comes the first"
    assert not {"admitted", "retired"} & {queue.items[i].standing for i in seen}


def test_a_skipped_card_is_not_gone_to_again() -> None:
    queue = queue_of([replace(item, skipped=item.standing != "try") for item in items()])
    assert queue.needed == 3
    assert {queue.current.standing for _ in range(3) if (queue := queue.next_needed()).current} == {"try"}


def test_reading_again_stays_at_the_card() -> None:
    found = items()
    assert queue_of(found, "c.card-4").on("c.nowhere").current == queue_of(found, "c.card-4").current
    here = queue_of(found, "c.card-4").current
    assert here is not None and here.id == "c.card-4"
    assert queue_of([]).current is None
    assert queue_of([]).next_needed().needed == 0


def test_rows_say_the_state_in_a_word_first() -> None:
    rows = [line.text for line in queue_lines(queue_of(items()), 40)]
    assert rows[0].startswith("! BROKEN    c.broken")
    assert any(row.startswith("? ACCEPT?   c.card-") for row in rows)
    assert any(row.startswith("x retired   c.card-") for row in rows)
    assert queue_counts(queue_of(items())) == "15 of 17 need you"


@pytest.mark.parametrize("cells", [40, 76, 120])
def test_why_a_card_is_there_ends_with_the_key_that_goes_on(cells: int) -> None:
    keys = keymap()
    for item in (
        item_of(replace(DONE, id="c.long"), Marks(faults=("what it says is wrong " * 20,))),
        items()[1],
    ):
        rows = [line.text for line in why_lines(item, keys, cells)]
        assert len(rows) <= 2
        assert all(len(row) <= cells for row in rows)
        assert rows[-1].endswith(("x retires the card", "g tries it on one"))
        said = cut_why(item, keys, cells)
        assert said == (item.why.strip() if "…" in " ".join(rows) else ""), (
            "what has no room stands elsewhere"
        )


def test_an_empty_library_says_what_to_do_next() -> None:
    keys = keymap()
    assert "L lifts them from what is sealed: gemm-c" in nothing_yet(keys, ["gemm-c"])
    assert "S in Induce (1) seals one" in nothing_yet(keys, [])
    assert "P brings the shipped cards" in nothing_yet(keys, [])


def test_fields_with_problems_are_called_what_a_person_sees() -> None:
    found = {
        "preconditions.p1.text": ("a",),
        "preconditions.p1": ("b",),
        "contract.provides": ("c",),
        "effects.0.trust": ("d",),
        "status": ("e",),
    }
    assert troubled(found) == ("p1", "provides", "effects", "status")
