"""The queue of proposals, and which gate result belongs to which bytes."""

from __future__ import annotations

from dataclasses import replace

from klineage.gate.verdict import Report, Trust
from klineage.proposer.candidate import Candidate

from klineage_tui.presentation.proposal import about, queue_text
from klineage_tui.proposals import Proposal, Queue, evidence, queue_of

CANDIDATES = [Candidate(name, "k::f", f"Remove {name}", "why", name.encode()) for name in "abcd"]


def _queue(rejected: str = "", skipped: str = "") -> Queue:
    return queue_of(
        CANDIDATES,
        lambda c: f"hash-{c.source.decode()}",
        lambda c: "wrong" if c.action in rejected else None,
        frozenset(f"hash-{name}" for name in skipped),
    )


def _names(queue: Queue) -> str:
    return "".join(p.candidate.action for p in queue.proposals)


def test_the_first_undecided_is_current() -> None:
    queue = _queue(rejected="a", skipped="b")
    assert queue.current is not None
    assert queue.current.candidate.action == "c"
    assert queue_text(queue) == "2 to decide, 1 skipped, 1 rejected"


def test_next_pending_wraps_and_stays_when_nothing_is_left() -> None:
    queue = _queue(rejected="bd")
    assert queue.next_pending().position == 2
    assert queue.next_pending().next_pending().position == 0
    done = _queue(rejected="abcd")
    assert done.next_pending() is done


def test_moving_wraps() -> None:
    queue = _queue()
    assert queue.at(-1).position == 3
    assert queue.at(4).position == 0
    assert Queue().at(1).current is None


def test_an_edit_makes_evidence_stale_until_gated_again() -> None:
    queue = _queue()
    report = Report("hash-a", "w", "cpu", "1", Trust.STATIC, (), baseline="head")
    reports = {("hash-a", "head"): report}
    assert queue.current is not None
    assert evidence(queue.current, "head", reports) == ("current", report)
    assert evidence(queue.current, "other head", reports) == ("none", None)
    edited = queue.edited(replace(CANDIDATES[0], source=b"z", proposer="person"), "hash-z")
    assert edited.current is not None
    assert evidence(edited.current, "head", reports) == ("stale", report)
    assert edited.current.edited
    assert "a person's edit" in about(edited.current)[0][0]
    reports[("hash-z", "head")] = replace(report, kernel="hash-z")
    assert evidence(edited.current, "head", reports)[0] == "current"
    back = edited.edited(replace(CANDIDATES[0], proposer="person"), "hash-a")
    assert back.current is not None
    assert evidence(back.current, "head", reports) == ("current", report)


def test_an_edit_that_takes_out_no_feature_says_so() -> None:
    part = replace(CANDIDATES[0], proposer="person", removes=(), action="unroll")
    (who, _), (what, _), *_ = about(Proposal(part, "hash-p", earlier=("hash-a",)))
    assert (who, what) == ("a person's edit removes no feature: ", "unroll")


def test_editing_with_no_proposal_left_makes_one() -> None:
    queue = Queue().edited(CANDIDATES[1], "hash-b")
    assert _names(queue) == "b"
    assert queue.pending == 1


def test_an_answer_comes_last_and_takes_the_place_of_its_own_bytes() -> None:
    queue = _queue().added(Candidate("e", "k::f", "Remove e", "why", b"e"), "hash-e")
    assert (_names(queue), queue.position) == ("abcde", 4)
    again = queue.added(replace(CANDIDATES[1], title="Said better"), "hash-b")
    assert (_names(again), again.position) == ("abcde", 1)
    assert again.current is not None
    assert again.current.candidate.title == "Said better"
