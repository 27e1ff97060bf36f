"""Undo and redo of decisions, against a model that a child could follow, across restarts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import ForwardRecord, Meta, StepRecord, Workspace

Record = Callable[..., StepRecord]
Plain = Callable[..., str]


@dataclass
class Model:
    """What a lineage should look like: (walk, rejected, sealed) now, and every state undo can return to."""

    now: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = ((), (), ())
    undo: list[tuple[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]] = field(
        default_factory=list
    )
    redo: list[tuple[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]] = field(
        default_factory=list
    )

    def decide(
        self, name: str, walk: tuple[str, ...], rejected: tuple[str, ...], sealed: tuple[str, ...]
    ) -> None:
        self.undo.append((name, self.now))
        self.redo.clear()
        self.now = (walk, rejected, sealed)

    def back(self) -> str:
        name, before = self.undo.pop()
        self.redo.append((name, self.now))
        self.now = before
        return name

    def forth(self) -> str:
        name, after = self.redo.pop()
        self.undo.append((name, self.now))
        self.now = after
        return name


def seen(workspace: Workspace) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    walks = (workspace.history("gemm")[1:], workspace.rejected("gemm"), workspace.lineage("gemm"))
    walk, rejected, sealed = (tuple(step.commit for step in steps) for steps in walks)
    return walk, rejected, sealed


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_decisions(
    seed: int, tmp_path: Path, meta: Meta, record: Record, plain: Plain
) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    workspace = Workspace.create(tmp_path)
    workspace.new(meta, {"kernel.c": b"expert", "workload.py": b""})
    model = Model()
    made: set[str] = set()
    for number in range(30):
        walk, rejected, sealed = model.now
        said = record(number)
        action = dice.choice(["accept", "accept", "reject", "seal", "undo", "undo", "redo", "restart"])
        if action == "accept":
            step = workspace.accept("gemm", said, {"kernel.c": b"%d" % number}, "{}")
            model.decide(f"accept: {said.subject}", (*walk, step.commit), rejected, sealed)
        elif action == "reject":
            step = workspace.reject("gemm", said, {"kernel.c": b"%d" % number}, "{}")
            model.decide(f"reject: {said.subject}", walk, (*rejected, step.commit), sealed)
        elif action == "seal":
            steps = workspace.seal("gemm", [ForwardRecord(said, {"kernel.c": b"%d" % number}, "replayed")])
            model.decide("seal: 1 optimizations, naive first", walk, rejected, tuple(s.commit for s in steps))
        elif action == "restart":
            workspace.close()
            workspace = Workspace.open(tmp_path)
        else:
            turn, stack = (workspace.undo, model.undo) if action == "undo" else (workspace.redo, model.redo)
            if stack:
                assert turn("gemm") == (model.back() if action == "undo" else model.forth())
            else:
                with pytest.raises(KlineageError, match=f"nothing to {action} in gemm"):
                    turn("gemm")
        assert seen(workspace) == model.now, f"after {action} {number} of seed {seed}"
        assert workspace.undoable("gemm") == (model.undo[-1][0] if model.undo else "")
        assert workspace.redoable("gemm") == (model.redo[-1][0] if model.redo else "")
        made.update(commit for commits in model.now for commit in commits)
    plain(tmp_path, "reflog", "expire", "--expire=now", "--all")
    plain(tmp_path, "gc", "--quiet", "--prune=now")
    assert all(workspace.read(commit) and workspace.step(commit) for commit in made), "gc lost a decision"
    assert seen(workspace) == model.now
    plain(tmp_path, "fsck", "--strict", "--no-dangling")
    workspace.close()


def test_a_branch_moved_by_hand_is_respected(walk: Workspace, record: Record, plain: Plain) -> None:
    head = walk.history("gemm")[-1]
    plain(walk.path, "update-ref", "refs/heads/walk/gemm", head.parent)
    with pytest.raises(KlineageError, match="moved by another tool"):
        walk.undo("gemm")
    assert walk.head("gemm").commit == head.parent
    step = walk.accept("gemm", record(7), {"kernel.c": b"7"})
    assert (step.parent, step.number) == (head.parent, 3)
    assert walk.undo("gemm") == "accept: Remove mechanism 7"


def test_a_plain_clone_has_a_history_and_starts_its_own_log(
    walk: Workspace, record: Record, plain: Plain, tmp_path: Path
) -> None:
    plain(tmp_path, "clone", "--quiet", "--branch", "walk/gemm", str(walk.path), "clone")
    clone = Workspace.open(tmp_path / "clone")
    assert clone.history("gemm") == walk.history("gemm")
    assert clone.operations("gemm") == []
    with pytest.raises(KlineageError, match="nothing to undo"):
        clone.undo("gemm")
    clone.accept("gemm", record(4), {"kernel.c": b"4"})
    assert [str(operation) for operation in clone.operations("gemm")] == ["accept: Remove mechanism 4"]
    clone.undo("gemm")
    assert clone.history("gemm") == walk.history("gemm")
    assert [summary.id for summary in clone.lineages()] == ["gemm"]
    clone.close()


def test_a_replaced_lineage_survives_gc_where_no_log_knew_it(
    walk: Workspace, record: Record, plain: Plain, tmp_path: Path
) -> None:
    sealed = walk.seal("gemm", [ForwardRecord(record(5), {"kernel.c": b"5"}, "derived")])
    plain(tmp_path, "clone", "--quiet", "--mirror", str(walk.path), "copy.git")
    plain(tmp_path / "copy.git", "update-ref", "-d", "refs/klineage/operations/gemm")
    copy = Workspace.open(tmp_path / "copy.git")
    copy.seal("gemm", [ForwardRecord(record(6), {"kernel.c": b"6"}, "derived")])
    plain(copy.path, "gc", "--quiet", "--prune=now")
    copy.undo("gemm")
    assert copy.lineage("gemm") == sealed
    copy.close()


def test_a_forged_operation_cannot_move_other_branches(walk: Workspace, plain: Plain) -> None:
    head = walk.head("gemm").commit
    plain(walk.path, "branch", "main", head)
    tree = plain(walk.path, "mktree", data="").strip()
    text = f"accept: Evil\n\nOperation-Ref: refs/heads/main {'0' * 40} {head}\n"
    forged = plain(walk.path, "commit-tree", tree, data=text).strip()
    plain(walk.path, "update-ref", "refs/klineage/operations/gemm", forged)
    with pytest.raises(KlineageError, match=f"operation {forged[:12]} of gemm is corrupt"):
        walk.undo("gemm")
    assert plain(walk.path, "rev-parse", "main").strip() == head


def test_a_reopened_name_starts_afresh(walk: Workspace, meta: Meta, plain: Plain) -> None:
    plain(walk.path, "branch", "-D", "walk/gemm")
    walk.new(meta, {"kernel.c": b"again", "workload.py": b""})
    assert walk.undoable("gemm") == ""
    assert [step.number for step in walk.history("gemm")] == [0]


def test_a_step_taken_again_at_once_keeps_one_copy_of_its_report(walk: Workspace, record: Record) -> None:
    seen_before: set[str] = set()
    for _ in range(50):
        step = walk.accept("gemm", record(1), {"kernel.c": b"1"}, '{"n": 1}')
        if step.commit in seen_before:  # within the same second, so it is the same commit
            break
        seen_before.add(step.commit)
        walk.undo("gemm")
    else:
        pytest.fail("no two steps were written within one second")
    assert walk.reports(step.commit) == ['{"n": 1}']
