"""Paid calls in their real child: never lost, never paid twice, and no key on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from klineage.ledger import Call, Ledger, Limit, OverBudget, Usage
from klineage.proposer.base import Attempt, ProposerEvent, Task, Tried
from klineage.proposer.calls import calls_folder, recover
from klineage.proposer.folder import CallFolder
from klineage.proposer.model.proposer import ModelProposer
from klineage.proposer.model.request import question_of
from klineage.proposer.registry import Context, proposer_named
from klineage.proposer.settings import Settings

from ...messages_server import KEY, MessagesServer, Reply
from .conftest import KERNEL, SIMPLER, SOURCE

SETTINGS = Settings(timeout=600)


def model(git_dir: Path, **context: Any) -> ModelProposer:
    found = proposer_named("model", Context(git_dir, "rows-c", SETTINGS, **context))
    assert isinstance(found, ModelProposer)
    return found


def first(git_dir: Path, task: Task, **context: Any) -> Attempt:
    return next(iter(model(git_dir, **context).attempts(task)))


def spent(git_dir: Path) -> tuple[int, Usage, int]:
    """Settled calls, their usage, and how many are still open."""
    total = Ledger.of(git_dir).read().total()
    return total.calls - total.open, total.usage, total.open


def served(server: MessagesServer) -> tuple[int, Usage]:
    count = server.served
    return count.calls, Usage(count.input, count.cache_read, count.cache_write, count.output)


def eventually(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def folders(git_dir: Path) -> list[CallFolder]:
    return [CallFolder(path) for path in sorted(calls_folder(git_dir).glob("[!.]*"))]


def test_answers_are_paid_once_and_offered_until_they_are_decided_on(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    messages.say(Reply(good, piece=50))
    events: list[ProposerEvent] = []
    attempt = next(iter(model(tmp_path).attempts(task(), events.append)))
    assert attempt.candidate is not None
    assert attempt.candidate.source == SIMPLER
    assert attempt.proposer == attempt.candidate.proposer
    assert good["rationale"] in "".join(event.text for event in events if event.kind == "text")
    assert spent(tmp_path) == (*served(messages), 0)

    again = first(tmp_path, task(hint="and now?"))  # e.g. after a kill: nothing was decided
    assert again == attempt
    assert len(messages.requests) == 1

    rejected = Tried("x", "restrict", "kernel.c::rows", "slower", replace(KERNEL, source=SIMPLER).hash)
    messages.say(Reply("{"))
    answers = model(tmp_path).attempts(task(tried=(rejected,)))
    assert "not valid JSON" in next(iter(answers)).problem
    messages.say(Reply(good))
    assert "rejected on this state already" in next(iter(answers)).problem
    assert "its answer is not valid JSON" in messages.requests[-1].text
    assert spent(tmp_path) == (*served(messages), 0)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert good["title"].encode() in everything
    assert KEY.encode() not in everything


def test_nothing_left_ends_the_answers_and_is_not_paid_for_again(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    messages.say(Reply(good | {"decision": "nothing"}))
    for _ in range(2):
        events: list[ProposerEvent] = []
        assert list(model(tmp_path).attempts(task(), events.append)) == []
        assert "nothing left to take out" in events[-1].text
    assert len(messages.requests) == 1


def test_a_killed_parent_loses_nothing(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    """The parent is killed while the answer streams; the child ends the call and settles it.

    Who asks meanwhile waits for that answer, and who asks later is given it.
    """
    hold = threading.Event()
    messages.say(Reply(good, piece=50, hold=hold))
    source = tmp_path / "kernel.c"
    source.write_bytes(SOURCE)
    script = (
        "import sys; from pathlib import Path\n"
        "from klineage.kernel import Kernel; from klineage.proposer.base import Task; from klineage.workload import load\n"
        "from klineage.proposer.registry import Context, proposer_named; from klineage.proposer.settings import Settings\n"
        "place, source = map(Path, sys.argv[1:])\n"
        "task = Task(Kernel('c', 'kernel.c', 'rows', source.read_bytes()), load('gemm'), 'cpu-x86-64')\n"
        "print('asking', flush=True)\n"
        "next(iter(proposer_named('model', Context(place, 'rows-c', Settings(timeout=600))).attempts(task)))\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), str(source)], stdout=subprocess.DEVNULL
    )
    eventually(lambda: messages.requests, "the call was never made")
    parent.kill()
    parent.wait()
    assert spent(tmp_path)[2] == 1
    found: list[Attempt] = []
    waiting = threading.Thread(target=lambda: found.append(first(tmp_path, task())))
    waiting.start()
    hold.set()
    waiting.join()
    (folder,) = folders(tmp_path)
    assert folder.has("settled")
    assert spent(tmp_path) == (*served(messages), 0)
    found.append(first(tmp_path, task()))
    for attempt in found:
        assert attempt.candidate is not None
        assert attempt.call == folder.id
    assert len(messages.requests) == 1


def test_a_killed_child_and_a_cancel_cost_at_most(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    messages.say(Reply(good, piece=50, hold=threading.Event()), Reply(good, piece=50, hold=threading.Event()))
    answers = model(tmp_path).attempts(task())
    found: list[Attempt] = []
    waiting = threading.Thread(target=lambda: found.append(next(iter(answers))))
    waiting.start()
    eventually(lambda: messages.requests, "the call was never made")
    (folder,) = folders(tmp_path)
    pid = folder.pid()
    assert pid is not None
    assert os.getsid(pid) == pid
    os.kill(pid, signal.SIGKILL)
    waiting.join()
    assert "its process died before the answer was complete" in found[0].problem
    assert spent(tmp_path) == (0, Usage(), 1)

    cancel = threading.Event()
    rest: list[Attempt] = []
    waiting = threading.Thread(target=lambda: rest.extend(model(tmp_path).attempts(task(), None, cancel)))
    waiting.start()
    eventually(lambda: len(messages.requests) == 2, "the second call was never made")
    cancel.set()
    waiting.join()
    assert rest == []
    assert spent(tmp_path) == (0, Usage(), 2)
    assert all(folder.has("done") and folder.has("settled") for folder in folders(tmp_path))


def test_who_asks_the_same_at_the_same_moment_pays_once(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    rest = threading.Event()
    messages.say(Reply(good, piece=50, hold=rest))
    question = question_of(task(), "rows-c", "claude-sonnet-5-5", SETTINGS)
    with ThreadPoolExecutor(2) as both:
        replies = [both.submit(model(tmp_path).calls.ask, question) for _ in range(2)]
        eventually(lambda: messages.requests, "the call was never made")
        rest.set()
        assert replies[0].result() == replies[1].result()
    assert len(messages.requests) == len(folders(tmp_path)) == 1
    assert spent(tmp_path) == (*served(messages), 0)


def test_an_answer_cannot_carry_the_key_into_a_commit(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    messages.say(Reply(good | {"rationale": f"I was asked with {KEY}.", "title": KEY}))
    candidate = first(tmp_path, task()).candidate
    assert candidate is not None
    assert (candidate.rationale, candidate.title) == ("I was asked with [secret].", "[secret]")
    assert candidate.source == SIMPLER


def test_calls_that_failed_before_are_not_in_the_way(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task], good: dict[str, Any]
) -> None:
    messages.say(Reply(good, drop=True), Reply(good))
    for run in range(2):  # in two runs; the first was killed before it could tell
        answers = model(tmp_path).attempts(task())
        attempt = next(iter(answers))
        for mark in tmp_path.rglob("done"):
            mark.unlink()
        assert (attempt.candidate is None) == (run == 0)
    assert spent(tmp_path)[2] == 1


def test_over_the_budget_nothing_is_sent(
    messages: MessagesServer, tmp_path: Path, task: Callable[..., Task]
) -> None:
    limit = Limit(Decimal("0.0001"), "rows-c")
    with pytest.raises(OverBudget):
        first(tmp_path, task(), limits=(limit,))
    assert folders(tmp_path)[0].has("done")
    assert Ledger.of(tmp_path).read().entries == ()
    assert messages.requests == []


@pytest.fixture
def interrupted(tmp_path: Path, task: Callable[..., Task]) -> Iterator[CallFolder]:
    """A call whose parent was killed at some moment before its child had begun."""
    question = question_of(task(), "rows-c", "claude-sonnet-5-5", SETTINGS)
    folder = CallFolder(calls_folder(tmp_path) / "20261129T000000-000000000000")
    os.close(folder.create(question, {}))
    yield folder
    recover(tmp_path)
    assert folder.has("settled")
    assert folder.has("done")
    assert spent(tmp_path) == (0, Usage(), 0)


def test_a_call_that_was_only_written_down_is_forgotten(interrupted: CallFolder, tmp_path: Path) -> None:
    recover(tmp_path)
    assert Ledger.of(tmp_path).read().entries == ()


def test_a_call_that_was_only_reserved_is_released(interrupted: CallFolder, tmp_path: Path) -> None:
    question = interrupted.question()
    assert question is not None
    call = Call(
        interrupted.id, question.lineage, question.kernel, question.proposer, question.model, question.hash,
        datetime.now(UTC), question.worst,
    )  # fmt: skip
    Ledger.of(tmp_path).reserve(call)
    recover(tmp_path)
    assert [entry.state for entry in Ledger.of(tmp_path).read().entries] == ["released"]
