"""A branch goes on by itself from a state of another lineage, and leaves that one alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Feature
from klineage.lineage import (
    ForwardRecord,
    Meta,
    Step,
    StepRecord,
    Workspace,
    branch_create,
    bundle_create,
    bundle_open,
)
from klineage.lineage.edits import KeptEdit
from klineage.lineage.settled import Settlement

Record = Callable[..., StepRecord]
Plain = Callable[..., str]


def refs_of(plain: Plain, path: Path, lineage: str) -> list[str]:
    listing = plain(path, "for-each-ref", "--format=%(refname) %(objectname)")
    return [line for line in listing.splitlines() if f"/{lineage} " in line or f"/{lineage}/" in line]


def grown(seed: int, path: Path, meta: Meta, record: Record) -> Workspace:
    """A lineage "gemm" of random decisions, each state with reports."""
    chance = random.Random(seed)
    workspace = Workspace.create(path, clock=lambda: 1_700_000_000)
    workspace.new(meta, {"kernel.c": b"expert", "workload.py": b"w"}, "Ann", '{"root": 1}')
    for number in range(1, 9):
        files = {"kernel.c": b"kernel %d of %d" % (number, seed)}
        report = f'{{"number": {number}}}'
        if chance.random() < 0.6:
            workspace.accept("gemm", record(number), files, report)
        else:
            workspace.reject("gemm", record(number), files, report)
    return workspace


def content(workspace: Workspace, step: Step) -> tuple[object, ...]:
    """What a copy must share with its original."""
    files = workspace.read(step.commit)
    files.pop("lineage.json")
    said = (step.number, step.subject, step.body, step.action, step.removes, step.settings, step.proposer)
    return (
        files,
        said,
        step.decision,
        step.who,
        step.why,
        step.when,
        step.kernel,
        workspace.reports(step.commit),
    )


@pytest.mark.parametrize("seed", range(5))
def test_it_shares_the_history_and_leaves_the_original_untouched(
    seed: int, tmp_path: Path, meta: Meta, record: Record, plain: Plain
) -> None:
    print(f"seed {seed}")
    path = tmp_path / "w"
    workspace = grown(seed, path, meta, record)
    steps, rejected = workspace.history("gemm"), workspace.rejected("gemm")
    at = random.Random(seed).randrange(len(steps))
    before = refs_of(plain, path, "gemm")
    head = branch_create(workspace, "gemm", steps[at].commit, "other")
    assert refs_of(plain, path, "gemm") == before

    copies = workspace.history("other")
    assert head == copies[-1]
    assert [content(workspace, step) for step in copies] == [content(workspace, s) for s in steps[: at + 1]]
    assert [step.copies for step in copies] == [step.commit for step in steps[: at + 1]]
    assert {step.id for step in copies} == {"other"}
    assert {workspace.meta(step.commit).id for step in copies} == {"other"}
    shared = {step.commit for step in steps[: at + 1]}
    tried = [step for step in rejected if step.parent in shared]
    assert [content(workspace, s) for s in workspace.rejected("other")] == [
        content(workspace, s) for s in tried
    ]
    homes = {copy.commit: copy.copies for copy in copies}
    assert [homes[s.parent] for s in workspace.rejected("other")] == [step.parent for step in tried]
    plain(path, "fsck", "--strict", "--no-dangling")
    workspace.close()


def test_it_is_a_lineage_like_any_other(tmp_path: Path, meta: Meta, record: Record, plain: Plain) -> None:
    path = tmp_path / "w"
    workspace = grown(3, path, meta, record)
    steps = workspace.history("gemm")
    branch_create(workspace, "gemm", steps[1].commit, "other")
    assert workspace.undoable("other") == ""
    with pytest.raises(KlineageError, match="nothing to undo"):
        workspace.undo("other")
    before = refs_of(plain, path, "gemm")
    step = workspace.accept("other", record(2), {"kernel.c": b"another way"}, '{"new": 1}')
    assert (step.number, step.id, step.copies) == (2, "other", "")
    assert workspace.undo("other").startswith("accept")
    assert workspace.redo("other").startswith("accept")
    workspace.reject("other", record(7), {"kernel.c": b"no"})
    workspace.seal("other", [ForwardRecord(record(2), {"kernel.c": b"expert"}, "derived")])
    assert workspace.sealed("other")
    assert not workspace.sealed("gemm")
    assert refs_of(plain, path, "gemm") == before

    bundle = tmp_path / "other.bundle"
    bundle_create(workspace, "other", bundle)
    elsewhere = Workspace.create(tmp_path / "elsewhere")
    assert bundle_open(bundle, elsewhere) == "other"
    assert elsewhere.history("other") == workspace.history("other")
    assert elsewhere.rejected("other") == workspace.rejected("other")
    first = elsewhere.history("other")[0]
    assert elsewhere.reports(first.commit) == ['{"root": 1}']
    branch_create(workspace, "other", workspace.head("other").commit, "third")
    assert [s.copies for s in workspace.history("third")] == [s.commit for s in workspace.history("other")]
    elsewhere.close()
    workspace.close()


def test_a_rejected_attempt_is_accepted_on_the_branch(walk: Workspace, record: Record) -> None:
    attempt = walk.reject(
        "gemm", record(8, why="another one was taken"), {"kernel.c": b"also good"}, '{"v": 1}'
    )
    other = walk.reject("gemm", record(9), {"kernel.c": b"bad"})
    head = branch_create(walk, "gemm", attempt.commit, "other")
    assert (head.decision, head.why, head.copies) == ("accepted", "another one was taken", attempt.commit)
    assert head.number == walk.head("gemm").number + 1
    assert walk.read(head.commit)["kernel.c"] == b"also good"
    assert [step.copies for step in walk.rejected("other")] == [other.commit]
    assert [step.commit for step in walk.rejected("gemm")] == [attempt.commit, other.commit]


def test_what_persons_said_of_the_shared_states_comes_along(
    walk: Workspace, record: Record, tmp_path: Path
) -> None:
    root, head = walk.history("gemm")[0], walk.head("gemm")
    first, second = Feature("kernel.c::gemm", "unroll"), Feature("kernel.c::gemm", "simd")
    walk.settle("gemm", Settlement(first, "absent", "I looked", "Ann", at=root.commit))
    walk.settle("gemm", Settlement(second, "present", "I looked", "Ann", at=head.commit))
    edit = KeptEdit("simpler", "richer", "person", b"the richer kernel")
    walk.keep_edit("gemm", edit)
    branch_create(walk, "gemm", root.commit, "other")
    (word,) = walk.settled("other")
    assert (word.feature, word.why, word.at) == (first, "I looked", walk.head("other").commit)
    assert walk.edits("other") == walk.edits("gemm") == {edit.key: edit}
    assert len(walk.settled("gemm")) == 2
    assert walk.undoable("other") == ""
    bundle_create(walk, "other", tmp_path / "other.bundle")
    elsewhere = Workspace.create(tmp_path / "elsewhere")
    bundle_open(tmp_path / "other.bundle", elsewhere)
    assert (elsewhere.settled("other"), elsewhere.edits("other")) == ((word,), {edit.key: edit})
    elsewhere.close()


def test_what_cannot_be_branched(walk: Workspace, record: Record, plain: Plain) -> None:
    head = walk.head("gemm")
    everything = plain(walk.path, "for-each-ref")
    with pytest.raises(KlineageError, match="'gemm' already"):
        branch_create(walk, "gemm", head.commit, "gemm")
    with pytest.raises(KlineageError, match="cannot name a lineage"):
        branch_create(walk, "gemm", head.commit, "No Such")
    with pytest.raises(KlineageError, match="no state of the walk of gemm"):
        branch_create(walk, "gemm", "f" * 40, "other")
    walk.undo("gemm")
    undone = plain(walk.path, "for-each-ref")
    with pytest.raises(KlineageError, match="no state of the walk of gemm"):
        branch_create(walk, "gemm", head.commit, "other")
    assert plain(walk.path, "for-each-ref") == undone != everything
