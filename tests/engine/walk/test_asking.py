"""What a proposer is told, and what its answers must be before they are offered."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.proposer.base import Attempt, Goal, ProposerEvent
from klineage.proposer.by_rules import RulesProposer
from klineage.walk import Walk

from .scripted import Scripted, attempt, candidate, feature, version, walk_of

WITHOUT_PREFETCH = version(4)
BROKEN = version(5).replace(b"sums += part * part;", b"sums += (part * part;")


def answers(walk: Walk, *said: Attempt, hint: str = "") -> list[Attempt]:
    return list(walk.ask(Scripted(lambda _: said), hint))


def test_a_task_says_what_the_state_is_and_what_failed_on_it(walk: Walk) -> None:
    walk.reject(candidate(version(3), "Take two out"), None, why="it slows\nnothing down")
    task = walk.task("mind the tail")
    assert task.kernel == walk.state().kernel
    assert (task.workload.name, task.platform, task.hint) == (
        "row_norms",
        walk.state().meta.platform,
        "mind the tail",
    )
    assert {f.name for f in task.features} >= {"prefetch", "unroll", "simd", "restrict"}
    (tried,) = task.tried
    assert (tried.title, tried.action, tried.why) == ("Take two out", "unroll", "it slows nothing down")
    assert tried.kernel == walk.state().kernel_of(candidate(version(3))).hash
    assert task.goal is None


def test_a_good_answer_is_offered_with_what_it_removes(walk: Walk) -> None:
    (offered,) = answers(walk, attempt(WITHOUT_PREFETCH))
    assert offered.problem == ""
    assert offered.candidate is not None
    assert offered.candidate.removes == (feature("prefetch"),)
    assert walk.state().rejected == ()


def test_a_mechanism_that_no_detector_knows_is_the_proposers_word(walk: Walk) -> None:
    source = version(5).replace(b"(; c < columns; ++c)", b"(; c != columns; ++c)")
    (offered,) = answers(walk, attempt(source, removes=(feature("loop_bound"),)))
    assert offered.candidate is not None
    assert offered.candidate.removes == (feature("loop_bound"),)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (attempt(BROKEN), "the new kernel does not parse: see its line"),
        (attempt(version(3)), "it takes out prefetch, unroll at once"),
        (attempt(WITHOUT_PREFETCH, removes=(feature("unroll"),)), "it says that it removes kernel.c::row_norms / unroll"),
        (Attempt("scripted", candidate(WITHOUT_PREFETCH), "it changed the workload too"), "it changed the workload too"),
    ],
)  # fmt: skip
def test_a_fault_in_the_bytes_is_evidence(walk: Walk, said: Attempt, why: str) -> None:
    (offered,) = answers(walk, said)
    assert offered.candidate is None
    assert offered.problem.startswith(why)
    (rejected,) = walk.state().rejected
    assert rejected.why == offered.problem
    assert rejected.gate == "not run"
    assert said.candidate is not None
    assert walk.kernel_at(rejected.commit).source == said.candidate.source
    (again,) = answers(walk, said)
    assert again.problem.startswith("it proposed again what was rejected here: ")
    assert walk.state().rejected == (rejected,)


def test_a_mechanism_put_in_is_no_step_back(workspace: Workspace, tmp_path: Path) -> None:
    walk = walk_of(workspace, tmp_path, 4)
    (offered,) = answers(walk, attempt(version(5)))
    assert offered.problem == "it puts in prefetch, but a step back only takes out"


def test_what_is_no_evidence_is_only_told(walk: Walk) -> None:
    same, empty, first, second = answers(
        walk,
        attempt(version(5)),
        Attempt("scripted", problem="the answer was cut off"),
        attempt(WITHOUT_PREFETCH),
        attempt(WITHOUT_PREFETCH, "The same in other words"),
    )
    assert same.problem == "it proposed the kernel as it is now"
    assert empty.problem == "the answer was cut off"
    assert first.candidate is not None
    assert second.problem == "it made the same proposal twice"
    assert walk.state().rejected == ()


def test_a_proposer_is_told_when_no_more_is_wanted(walk: Walk) -> None:
    proposer = Scripted(lambda _: [attempt(WITHOUT_PREFETCH), attempt(version(5))])
    heard: list[ProposerEvent] = []
    with closing(walk.ask(proposer, "", heard.append)) as asked:
        assert next(asked).candidate is not None
        assert (proposer.given, proposer.closed, len(heard)) == (1, 0, 1)
    assert (proposer.given, proposer.closed) == (1, 1)


def test_rules_are_a_proposer(walk: Walk) -> None:
    offered = [a.candidate for a in walk.ask(RulesProposer())]
    assert offered == list(walk.candidates())
    assert offered[0] is not None
    walk.reject(offered[0], None, why="not now")
    assert [a.candidate for a in walk.ask(RulesProposer())] == offered[1:]
    goal = Goal("unroll", "kernel.c::row_norms", "Unroll", "", ())
    with pytest.raises(KlineageError, match="take no goal"):
        list(RulesProposer().attempts(replace(walk.task(), goal=goal)))


def test_a_recording_cannot_speak_for_a_rule(walk: Walk) -> None:
    """What it says is a rule's is taken from the rule, or not at all."""
    rule = walk.candidates()[0]
    signed = replace(rule, proposer=f"{rule.proposer}; replayed")
    (offered,) = answers(walk, Attempt("rules; replayed", replace(signed, removes=(), title="Trust me")))
    assert offered.candidate == signed
    (forged,) = answers(walk, Attempt("rules; replayed", replace(signed, source=version(1))))
    assert forged.problem == "no rule proposes this, whatever its recording says"
    assert [step.why for step in walk.state().rejected] == [forged.problem]
