"""Several klineages on one workspace: writes take turns, stale ones are refused, readers never wait."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from klineage.errors import KlineageError
from klineage.lineage import StepRecord, Workspace
from klineage.lineage import lock as lock_module
from klineage.lineage.lock import NAME, WAIT_SECONDS, writing

Record = Callable[..., StepRecord]
Plain = Callable[..., str]


def test_two_processes_that_both_know_the_head_take_turns(
    walk: Workspace, record: Record, plain: Plain
) -> None:
    children = []
    for who in range(2):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                workspace = Workspace.open(walk.path)
                for number in range(12):
                    while True:
                        head = workspace.history("gemm")[-1]
                        try:
                            files = {"kernel.c": b"%d %d" % (who, number)}
                            said = record(number, who=f"P{who}")
                            workspace.accept("gemm", said, files, "{}", head.commit)
                            break
                        except KlineageError as error:
                            assert str(error) == "another klineage has moved this lineage; reload"
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    steps = walk.history("gemm")[4:]
    assert sorted((step.who, step.subject) for step in steps) == sorted(
        (f"P{who}", f"Remove mechanism {number}") for who in range(2) for number in range(12)
    )
    assert [step.number for step in steps] == list(range(4, 28))
    assert len(walk.operations("gemm")) == 28
    plain(walk.path, "fsck", "--strict", "--no-dangling")


def test_threads_share_one_workspace(walk: Workspace, record: Record) -> None:
    heads = [step.commit for step in walk.history("gemm")]
    wrong: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(30):
                for number, commit in enumerate(heads):
                    assert walk.read(commit)["kernel.c"].startswith(b"/* %d */" % number)
                walk.history("gemm")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(4, 10):
        walk.accept("gemm", record(number), {"kernel.c": b"%d" % number})
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(walk.history("gemm")) == 10


def test_a_reader_does_not_wait_and_a_writer_says_whom_it_waits_for(
    walk: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klineage.lineage.lock.WAIT_SECONDS", 0.05)
    with writing(walk.path / ".git", "gemm", lambda _: None):
        other = Workspace.open(walk.path)
        assert len(other.history("gemm")) == 4
        with pytest.raises(KlineageError, match=rf"another klineage \(process {os.getpid()}\) is writing"):
            other.accept("gemm", record(4), {"kernel.c": b"4"})
        other.close()
    assert len(walk.history("gemm")) == 4


def test_a_writer_waits_for_all_who_let_go_in_time(
    walk: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten who each take a while are not one who hangs."""
    others = os.open(walk.path / ".git" / NAME, os.O_RDWR | os.O_CREAT)
    fcntl.flock(others, fcntl.LOCK_EX)
    clock = [0.0]

    def sleep(_: float) -> None:
        clock[0] += 0.6 * WAIT_SECONDS
        os.ftruncate(others, 0)
        if clock[0] < 6 * WAIT_SECONDS:
            os.pwrite(others, f"{os.getpid()} {clock[0]:.3f} gemm\n".encode(), 0)
        else:
            fcntl.flock(others, fcntl.LOCK_UN)

    patient = SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep, time=time.time)
    monkeypatch.setattr(lock_module, "time", patient)
    assert walk.accept("gemm", record(4), {"kernel.c": b"4"}) == walk.history("gemm")[-1]
    assert clock[0] >= 6 * WAIT_SECONDS
    os.close(others)


def test_the_app_sees_what_another_process_did(walk: Workspace, record: Record) -> None:
    other = Workspace.open(walk.path)
    step = other.accept("gemm", record(4), {"kernel.c": b"4"}, "{}")
    assert walk.history("gemm")[-1] == step
    assert walk.reports(step.commit) == ["{}"]
    assert walk.undo("gemm") == "accept: Remove mechanism 4"
    assert len(other.history("gemm")) == 4
    other.close()
