"""Walking by itself: what is taken, what stops it, and what is kept whatever the proposer does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from klineage.errors import KlineageError
from klineage.gate import Report, Verdict
from klineage.ledger import OverBudget
from klineage.lineage import Step
from klineage.proposer.base import Attempt, Task
from klineage.proposer.candidate import Candidate
from klineage.walk import Listener, Walk, WalkLimits, records, walk_automatically
from klineage.walk.branching import branch

from .scripted import Scripted, attempt, candidate, feature, version

WRONG = version(4).replace(b"sums += part * part;", b"sums += part * part * part;")
WORDY = version(4).replace(b"total += sums[lane];", b"total = total + sums[lane];")


def next_version(task: Task) -> Iterator[Attempt]:
    """Takes one mechanism more out of the series, down to the third version."""
    for number in (4, 3):
        if task.kernel.source == version(number + 1):
            yield attempt(version(number), f"Version {number}")


def subjects(steps: tuple[Step, ...]) -> list[str]:
    return [step.subject for step in steps]


def test_any_proposer_walks_to_its_end(walk: Walk) -> None:
    told: list[str] = []
    heard: list[Attempt] = []
    outcome = walk_automatically(
        walk,
        proposer=Scripted(next_version),
        listener=Listener(on_step=lambda step: told.append(step.subject), on_attempt=heard.append),
    )
    assert outcome.stopped == "simplest form"
    assert subjects(outcome.accepted) == told == ["Version 4", "Version 3"]
    assert [a.problem for a in heard] == ["", ""]
    assert walk.state().kernel.source == version(3)
    assert walk.state().head.proposer == "scripted"


def test_a_rejection_is_the_hint_of_the_next_attempt(walk: Walk) -> None:
    def say(task: Task) -> Iterator[Attempt]:
        yield attempt(version(4) if task.tried else WRONG, "Another way" if task.tried else "A wrong way")

    proposer = Scripted(say)
    outcome = walk_automatically(walk, WalkLimits(steps=1), proposer=proposer, hint="mind the tail")
    (wrong,) = outcome.rejected
    assert subjects(outcome.accepted) == ["Another way"]
    assert outcome.stopped == "step limit"
    first, second = proposer.asked
    assert first.hint == "mind the tail"
    assert (
        second.hint
        == f"mind the tail\nThe last attempt on this kernel, 'A wrong way', was rejected: {wrong.why}"
    )
    assert [tried.why for tried in second.tried] == [wrong.why]


def test_answers_that_cannot_be_used_cost_attempts_and_never_a_step(walk: Walk) -> None:
    def say(task: Task) -> Iterator[Attempt]:
        yield from next_version(task)
        for number in count():
            yield Attempt("scripted", problem=f"malformed {number}")

    outcome = walk_automatically(walk, WalkLimits(rejections_in_a_row=4), proposer=Scripted(say))
    assert outcome.stopped == "rejection limit"
    assert subjects(outcome.accepted) == ["Version 4", "Version 3"]
    assert walk.state().rejected == ()


def test_of_several_that_pass_the_smallest_is_taken_and_the_others_are_kept(walk: Walk) -> None:
    said = [
        attempt(WORDY, "Much"),
        attempt(WRONG, "Wrong"),
        attempt(version(4), "Little"),
        attempt(b"", "Never asked"),
    ]
    proposer = Scripted(lambda _: said)
    outcome = walk_automatically(walk, WalkLimits(steps=1), proposer=proposer, best_of=3)
    assert subjects(outcome.accepted) == ["Little"]
    assert sorted(subjects(outcome.rejected)) == ["Much", "Wrong"]
    assert proposer.given == 3
    much = next(step for step in outcome.rejected if step.subject == "Much")
    assert much.why == "passed, as did 'Little', which was taken: it changes no more lines"
    assert walk.reports(much.commit)[0].verdict is Verdict.PASS
    assert much.parent == outcome.accepted[0].parent
    assert walk.undo().startswith("accept")

    other = Walk(walk.workspace, branch(walk, much, "other"))
    assert other.state().kernel.source == WORDY
    assert other.trusted()
    wrong = next(step for step in outcome.rejected if step.subject == "Wrong")
    with pytest.raises(KlineageError, match="did not pass its gate"):
        branch(walk, wrong)
    assert branch(walk, walk.state().head) == "row_norms-c-0"


def test_a_spent_limit_does_not_lose_what_was_paid_for(walk: Walk) -> None:
    def say(task: Task) -> Iterator[Attempt]:
        yield from next_version(task)
        raise OverBudget("the next call may cost up to $0.40, but only $0.10 is left")

    outcome = walk_automatically(walk, proposer=Scripted(say), best_of=3)
    assert (outcome.stopped, subjects(outcome.accepted)) == ("spending limit", ["Version 4"])
    assert "only $0.10 is left" in outcome.note


def test_a_proposer_that_cannot_go_on_ends_the_walk_and_loses_no_step(walk: Walk) -> None:
    def say(task: Task) -> Iterator[Attempt]:
        if task.kernel.source == version(4):
            raise KlineageError("there is no API key")
        yield from next_version(task)

    with pytest.raises(KlineageError, match="no API key"):
        walk_automatically(walk, proposer=Scripted(say))
    assert walk.state().kernel.source == version(4)
    assert subjects(walk_automatically(walk, proposer=Scripted(next_version)).accepted) == ["Version 3"]


def test_nothing_new_is_begun_after_the_time_limit(walk: Walk) -> None:
    now = [0.0]
    proposer = Scripted(next_version)
    listener = Listener(on_step=lambda _: now.append(61.0))
    outcome = walk_automatically(
        walk, WalkLimits(seconds=60), proposer=proposer, listener=listener, clock=lambda: now[-1]
    )
    assert (outcome.stopped, subjects(outcome.accepted)) == ("time limit", ["Version 4"])
    assert len(proposer.asked) == 1


def test_a_person_decides_on_what_passes(walk: Walk) -> None:
    seen: list[str] = []

    def decide(candidate: Candidate, report: Report) -> str | None:
        assert report.verdict is Verdict.PASS
        seen.append(candidate.title)
        return "too long" if candidate.source == WORDY else None

    def say(task: Task) -> Iterator[Attempt]:
        if task.kernel.source == version(5):
            yield attempt(WRONG, "Wrong")
            yield attempt(WORDY if len(task.tried) < 2 else version(4), "Next")

    outcome = walk_automatically(walk, proposer=Scripted(say), decide=decide, best_of=2)
    assert seen == ["Next", "Next"]
    assert [step.why for step in outcome.rejected if step.subject == "Next"] == ["too long"]
    assert subjects(outcome.accepted) == ["Next"]


def test_a_cancelled_walk_decides_nothing_more(walk: Walk) -> None:
    cancel = threading.Event()

    def decide(candidate: Candidate, report: Report) -> str | None:
        cancel.set()
        return None

    outcome = walk_automatically(walk, proposer=Scripted(next_version), decide=decide, cancel=cancel)
    assert (outcome.stopped, outcome.accepted, outcome.rejected) == ("cancelled", (), ())
    assert len(walk.state().steps) == 1


def test_a_kernel_that_fails_its_own_gate_is_not_walked(walk: Walk) -> None:
    proposer = Scripted(next_version)
    state = walk.state()
    record = records.of_candidate(
        candidate(WRONG), state.kernel_of(candidate(WRONG)), state.meta, None, why=""
    )
    wrong = walk.workspace.accept(walk.id, record, {"kernel.c": WRONG})
    with pytest.raises(KlineageError, match="does not pass its own gate"):
        walk_automatically(walk, proposer=proposer)
    assert proposer.asked == []
    assert walk.state().head == wrong


def test_a_step_needs_a_candidate(walk: Walk) -> None:
    with pytest.raises(KlineageError, match="at least one candidate"):
        walk_automatically(walk, best_of=0)


def test_what_another_klineage_has_taken_meanwhile_is_no_rejection(walk: Walk) -> None:
    """Nothing is recorded on a state that it was not tried on; the proposer is asked about the new one."""

    def say(task: Task) -> Iterator[Attempt]:
        if task.kernel.source == version(5):
            other = replace(candidate(version(4), "Taken elsewhere"), removes=(feature("prefetch"),))
            walk.accept(other, walk.gate(other))
            yield attempt(version(4))  # about a state that is the head no more
        elif task.kernel.source == version(4):
            yield attempt(version(3), "Version 3")

    outcome = walk_automatically(walk, proposer=Scripted(say))
    assert (subjects(outcome.accepted), outcome.rejected) == (["Version 3"], ())
    assert subjects(walk.state().steps[1:]) == ["Taken elsewhere", "Version 3"]
    assert walk.state().rejected == ()
