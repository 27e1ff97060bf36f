"""Forward edges: who puts back what a step took out, and when that counts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from klineage.errors import KlineageError
from klineage.gate import Counts, Effect, Measurement, Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.proposer.base import Attempt, Proposer, Task
from klineage.walk import Walk, WalkLimits, fidelity, walk_automatically
from klineage.walk.deriving import Derivation

from .scripted import Scripted, candidate, feature, version

NAME = "command:scripted"
SAME_CODE = version(5).replace(b"        vec sums", b"        /* eight sums */\n        vec sums")
OTHER_CODE = version(5).replace(
    b"columns; ++c)\n            total +=", b"columns; c += 1)\n            total = total +"
)
# A second pass over the row, one sum after the other, that no compiler may leave out.
SLOW = version(5).replace(
    b"        y[r] = sqrtf(total);",
    b"        float twice = 0.0f;\n        for (c = 0; c < columns; ++c)\n            twice += row[c] * row[c];\n"
    b"        y[r] = sqrtf(twice > 0.0f ? total : twice);",
)
WRONG = version(5).replace(b"sums += part * part;", b"sums += part * part * part;")


@pytest.fixture
def taken(walk: Walk) -> Walk:
    """A walk with one step, by a command, that took prefetching out."""
    first = replace(
        candidate(version(4), "Drop the prefetch", (feature("prefetch"),)), action="prefetch", proposer=NAME
    )
    walk.accept(first, walk.gate(first))
    return walk


def answering(*sources: bytes) -> Scripted:
    """A command whose next answers are these kernels."""
    left = list(sources)

    def say(task: Task) -> Iterator[Attempt]:
        assert task.goal is not None and task.goal.action == "prefetch"
        assert task.goal.adds == (feature("prefetch"),)
        assert task.kernel.source == version(4), "the derivation begins at the simpler kernel"
        if left:
            yield Attempt(NAME, replace(candidate(left.pop(0)), proposer=NAME))

    return Scripted(say, NAME)


def derived(walk: Walk, proposer: Proposer | None = None, **more: object) -> Derivation:
    ask = None if proposer is None else (lambda name: proposer if name == NAME else None)
    (found,) = walk.derivations(ask=ask, **more)  # type: ignore[arg-type]
    return found


def test_rules_derive_every_step_of_theirs_once(walk: Walk) -> None:
    outcome = walk_automatically(walk, WalkLimits(steps=1))
    assert len(outcome.accepted) == 1
    told: list[str] = []
    first = walk.derivations(on_progress=told.append)
    assert [(d.number, d.how, d.confirmed) for d in first] == [(1, "derived", True)]
    assert all(d.by.startswith("rules:") and "confirmed in a fresh worker" in d.why for d in first)
    assert len(told) == 1
    assert walk.derivations(on_progress=told.append) == first
    assert len(told) == 1, "what was found out is not found out again"
    progress: list[str] = []
    steps = walk.seal(progress.append)
    assert [step.forward for step in steps] == ["", "derived"]
    assert [line for line in progress if "derived" in line] == [], "sealing repeats no derivation"


def test_who_made_the_step_is_asked_and_the_answer_is_kept(taken: Walk, workspace: Workspace) -> None:
    nobody = derived(taken)
    assert nobody.how == "replayed"
    assert f"{NAME}, who made the step, was not asked" in nobody.why
    proposer = answering(SAME_CODE)
    found = derived(taken, proposer)
    assert (found.how, found.by, found.confirmed) == ("derived", NAME, True)
    assert "the same machine code" in found.why
    assert (proposer.given, len(proposer.asked)) == (1, 1)
    assert derived(taken).how == "derived", "without asking again"
    (kept,) = workspace.edits(taken.id).values()
    assert (kept.proposer, kept.source) == (NAME, SAME_CODE)

    step = taken.seal()[1]
    assert step.forward == "derived"
    message = subprocess.run(
        ["git", "-C", workspace.path, "show", "-s", "--format=%B", step.commit],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    trailers = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=message, capture_output=True, text=True, check=True
    ).stdout
    assert f"Lineage-Forward-Why: {NAME}: other bytes, the same machine code" in trailers
    assert taken.kernel_at(step.commit).source == version(5), "the lineage keeps the recorded bytes"


def test_an_answer_that_does_not_hold_is_told_what_was_wrong(taken: Walk) -> None:
    proposer = answering(version(3), version(5))
    found = derived(taken, proposer)
    assert (found.how, found.by) == ("derived", NAME)
    assert [task.tried for task in proposer.asked[:1]] == [()]
    (tried,) = proposer.asked[1].tried
    assert "the edit does not bring kernel.c::row_norms / prefetch back" in tried.why


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (version(4), "the edit changes nothing"),
        (version(5).replace(b"#pragma GCC unroll 4\n", b""), "does not bring kernel.c::row_norms / unroll back"),
        (WRONG, "it does not pass the gate"),
        (SLOW, "of the recorded kernel's speed, and 0.99 is asked for in trial 1"),
    ],
    ids=["nothing", "a feature short", "wrong", "slow"],
)  # fmt: skip
def test_what_does_not_come_to_the_recorded_kernel_is_replayed(taken: Walk, source: bytes, why: str) -> None:
    found = derived(taken, answering(source, source))
    assert (found.how, found.by) == ("replayed", "")
    assert why in found.why


def test_a_proposer_that_cannot_go_on_costs_its_edge_and_not_the_seal(taken: Walk) -> None:
    def say(task: Task) -> Iterator[Attempt]:
        raise KlineageError("there is no key")
        yield

    (_, step) = taken.seal(ask=lambda name: Scripted(say, name))
    assert step.forward == "replayed"
    assert "command:scripted: there is no key" in step.found


def test_a_person_gives_their_own_edit_for_one_step(taken: Walk) -> None:
    (_, step) = taken.state().steps
    found = derived(taken, step=step, source=SAME_CODE)
    assert (found.how, found.by) == ("derived", "person")
    assert derived(taken).by == "person", "it is kept"


def test_a_step_that_nobody_can_put_back_says_so(walk: Walk) -> None:
    edited = walk.edited(
        version(5).replace(b"#define LANES 8", b"#define LANES (4 + 4)"), title="Spell it out"
    )
    walk.accept(edited, walk.gate(edited))
    found = derived(walk)
    assert found.how == "replayed"
    assert found.why


@dataclass
class Gates:
    """Gates whose clock says what a test wants: one ratio (or effect) for each trial, in order."""

    walk: Walk
    results: list[StageResult]
    platform: str = "cpu-native"
    renew: bool = True
    told: list[tuple[bool, bool]] = field(default_factory=list)  # (profiled, fresh) of each gate

    def gated(
        self,
        kernel: Kernel,
        baseline: Kernel | None,
        what: str,
        *,
        fresh: bool = False,
        again: bool = False,
        patient: bool = False,
    ) -> Report:
        self.told.append((baseline is not None, fresh))
        correct = StageResult("correctness", Verdict.PASS, "ok", "")
        profile = (self.results.pop(0),) if baseline is not None else ()
        return Report(kernel.hash, "", self.platform, "2", Trust.MEASURED_CPU, (correct, *profile))


def timed(ratio: float) -> StageResult:
    measured = Measurement(1.0, "thread_cpu_time", 8, "bench", 1.0, ratio, ratio, ratio)
    return StageResult("profile", Verdict.PASS, "ok", "", effect=Effect.NEUTRAL, measurement=measured)


def counted(effect: Effect) -> StageResult:
    return StageResult(
        "profile", Verdict.PASS, "ok", "bytes 1.00x", effect=effect, counts=Counts("small", {})
    )


NOISY = StageResult("profile", Verdict.NOISY, "noisy", "too noisy for a number")


@pytest.mark.parametrize(
    ("results", "holds", "said"),
    [
        ([timed(1.0), timed(1.01), timed(0.9)], True, "1.000, 0.990, 1.111 of the speed in 3 trials"),
        ([timed(1.0), timed(1.012)], False, "it has 0.988 of the recorded kernel's speed, and 0.99 is asked for in trial 2"),
        ([timed(1.0), timed(1.0), timed(1.2)], False, "0.833 of the recorded kernel's speed, and 0.99 is asked for in trial 3"),
        ([timed(1.0), NOISY, timed(1.0), timed(1.0)], True, "in 3 trials"),
        ([NOISY, NOISY], False, "no ratio could be measured (too noisy for a number) in trial 1"),
        ([counted(Effect.SAME_WORK)] * 2, True, "same-work by exact counts"),
        ([counted(Effect.MORE_WORK)], False, "it does more-work by exact counts"),
        ([counted(Effect.MIXED_WORK)], False, "it does mixed-work by exact counts"),
    ],
)  # fmt: skip
def test_every_trial_must_keep_up(walk: Walk, results: list[StageResult], holds: bool, said: str) -> None:
    (expert,) = walk.state().steps
    after = walk.kernel_at(expert.commit)
    before, other = replace(after, source=version(4)), replace(after, source=SAME_CODE)
    gates = Gates(walk, list(results))
    found = fidelity.judged(gates, expert, before, other, after)
    assert found.holds is holds
    assert said in found.why
    assert gates.results == [], "a trial was left out"
    assert gates.told[0] == (False, True), "nothing is timed before it passed in a fresh worker"
    if holds:
        assert gates.told[-1] == (True, True), "the last trial is in a fresh worker"
