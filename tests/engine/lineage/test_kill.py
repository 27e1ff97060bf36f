"""SIGKILL at any moment: what is there afterwards is a prefix of what was done, and the next write works."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.lineage import Meta, StepRecord, Workspace
from klineage.lineage.importer import Importer
from klineage.lineage.lock import writing
from klineage.lineage.operations import stacks

Record = Callable[..., StepRecord]
Plain = Callable[..., str]


def decide_forever(path: Path, record: Record, done: int, dice: random.Random) -> None:
    """The child: decide, and say so, until killed. Every kind of write comes up."""
    workspace = Workspace.open(path)
    number = len(workspace.operations("gemm"))
    while True:
        number += 1
        files = {"kernel.c": b"%d" % number}
        action = dice.choice(["accept", "accept", "reject", "undo", "redo", "seal", "draft", "clear"])
        if action == "accept":
            workspace.accept("gemm", record(number), files, f'{{"n": {number}}}')
        elif action == "reject":
            workspace.reject("gemm", record(number), files, f'{{"n": {number}}}')
        elif action == "undo" and workspace.undoable("gemm"):
            workspace.undo("gemm")
        elif action == "redo" and workspace.redoable("gemm"):
            workspace.redo("gemm")
        elif action == "seal":
            workspace.seal("gemm", [])
        elif action == "draft":
            workspace.save_draft("gemm", "kernel.c", b"draft %d" % number)
        elif action == "clear":
            workspace.clear_draft("gemm")
        os.write(done, f"{len(workspace.operations('gemm'))}\n".encode())


def killed_child(path: Path, record: Record, dice: random.Random, whole_group: bool) -> int:
    """Let a child decide for a random while, kill it; returns how many operations it had confirmed."""
    reading, writing_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reading)
        with contextlib.suppress(BaseException):
            decide_forever(path, record, writing_end, dice)
        os._exit(3)
    os.close(writing_end)
    first = os.read(reading, 100)  # its first decision stands; from now on any moment will do
    assert first, "the child ended by itself"
    time.sleep(dice.uniform(0.0, 0.05))
    (os.killpg if whole_group else os.kill)(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child ended by itself"
    said = first
    while more := os.read(reading, 65536):
        said += more
    os.close(reading)
    return int(said.decode().split("\n")[-2])


def consistent(workspace: Workspace) -> None:
    """The refs are exactly where the operation log has moved them."""
    log = workspace.operations("gemm")
    placed: dict[str, str] = {}
    for operation in log:
        placed.update({ref: new for ref, _, new in operation.refs})
    undo, _ = stacks(log)
    accepted = [operation.title for operation in undo if operation.kind == "accept"]
    rejected = [operation.title for operation in undo if operation.kind == "reject"]
    history = workspace.history("gemm")
    assert [step.subject for step in history[1:]] == accepted
    assert [step.subject for step in workspace.rejected("gemm")] == rejected
    assert placed["refs/heads/walk/gemm"] == history[-1].commit
    sealed = workspace.lineage("gemm")
    assert placed.get("refs/heads/lineage/gemm", "") == (sealed[-1].commit if sealed else "")
    for step in [*history[1:], *workspace.rejected("gemm")]:
        number = workspace.read(step.commit)["kernel.c"]
        assert step.subject == f"Remove mechanism {number.decode()}"
        assert workspace.reports(step.commit) == [f'{{"n": {number.decode()}}}']


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_killed_writer_leaves_the_old_state_or_the_new(
    seed: int, tmp_path: Path, meta: Meta, record: Record, plain: Plain
) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    workspace = Workspace.create(tmp_path)
    workspace.new(meta, {"kernel.c": b"0", "workload.py": b""}, "Ann", "{}")
    workspace.close()
    for round_ in range(12):
        confirmed = killed_child(tmp_path, record, dice, whole_group=bool(round_ % 2))
        workspace = Workspace.open(tmp_path)
        found = len(workspace.operations("gemm"))
        assert found in (confirmed, confirmed + 1), f"round {round_} of seed {seed}"
        consistent(workspace)
        step = workspace.accept(
            "gemm", record(found + 1), {"kernel.c": b"%d" % (found + 1)}, f'{{"n": {found + 1}}}'
        )
        assert workspace.history("gemm")[-1] == step
        workspace.close()
    plain(tmp_path, "fsck", "--strict", "--no-dangling")


def test_a_writer_killed_between_its_halves_is_finished_by_the_next(
    walk: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    before = walk.history("gemm")
    with monkeypatch.context() as patch:
        patch.setattr("klineage.lineage.write.move", die)
        with pytest.raises(Killed):
            walk.accept("gemm", record(4), {"kernel.c": b"4"}, '{"n": 4}')
    assert walk.history("gemm") == before
    lock = walk.path / ".git" / "refs" / "heads" / "walk" / "gemm.lock"
    lock.write_text("")
    with monkeypatch.context() as patch:
        patch.setattr("klineage.lineage.write.move", die)
        with pytest.raises(Killed):
            Workspace.open(walk.path)
    reader = Workspace.open(walk.path)
    assert [step.subject for step in reader.history("gemm")][-1] == "Remove mechanism 4"
    assert reader.reports(reader.head("gemm").commit) == ['{"n": 4}']
    assert not lock.exists()
    reader.undo("gemm")
    assert reader.history("gemm") == before
    reader.close()


def test_a_dialog_that_ends_early_writes_nothing(walk: Workspace) -> None:
    with Importer(walk.git, None, "refs/klineage/operations/new", 1_700_000_000) as importer:
        importer.commit("half of an operation\n", {"kernel.c": b"half"})
        _, stderr = importer._process.communicate()
    assert b"stream ends early" in stderr
    assert walk.git.object("refs/klineage/operations/new") is None


def test_a_lock_of_somebody_else_is_not_broken(walk: Workspace, record: Record) -> None:
    before = walk.history("gemm")
    lock = walk.path / ".git" / "refs" / "heads" / "walk" / "gemm.lock"
    lock.write_text("")
    with pytest.raises(Exception, match="File exists"):
        walk.accept("gemm", record(4), {"kernel.c": b"4"})
    assert lock.exists()
    lock.unlink()
    assert walk.history("gemm") == before
    assert walk.undoable("gemm") == "accept: Remove mechanism 3"
    walk.accept("gemm", record(4), {"kernel.c": b"4"})


def test_a_dead_holder_of_the_lock_does_not_block(walk: Workspace, record: Record) -> None:
    child = os.fork()
    if child == 0:
        with writing(walk.path / ".git", "gemm", lambda _: None):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (walk.path / ".git" / "klineage.lock").read_text().startswith(f"{child} ")
    assert walk.accept("gemm", record(4), {"kernel.c": b"4"}).number == 4
    assert (walk.path / ".git" / "klineage.lock").read_text() == ""
