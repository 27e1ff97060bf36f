"""Paid calls: written down and reserved, made by a child that outlives its parent, and never paid twice."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.ledger import Call, Ledger, Limit, new_call_id
from klineage.proposer.base import OnProposerEvent, ProposerEvent
from klineage.proposer.cancel import Cancel
from klineage.proposer.folder import CallFolder
from klineage.proposer.question import Outcome, Question, Reply

_LOOK = 0.03  # seconds between two looks at a reply that is being written


@dataclass(frozen=True)
class PaidCalls:
    """The paid calls of one workspace.

    child:  the module that makes the call; it is run as ``python -m <child> <folder>``.
    client: what that module needs to know besides the question; no secrets, it is written down.
    limits: what the calls may cost. fresh: do not offer earlier answers again.
    """

    git_dir: Path
    child: str
    client: dict[str, Any] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    fresh: bool = False

    def earlier(
        self,
        question: Question,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Reply]:
        """Answers to the same task that nobody has decided on; a call that is still running is waited for."""
        recover(self.git_dir)
        wanted = (question.task, question.lineage, question.name)
        for folder, asked in () if self.fresh else adopt(self.git_dir, question.kernel):
            if (asked.task, asked.lineage, asked.name) == wanted:
                if on_event is not None:
                    on_event(ProposerEvent("status", "an answer that was paid for earlier"))
                yield self._follow(folder, asked, on_event, cancel)

    def ask(
        self,
        question: Question,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Reply:
        """Reserve the worst case, make the call in a child, and wait for its end.

        The same question that somebody else is asking just now is not asked again: its answer is waited for.
        Raises OverBudget before anything is spent, and KlineageError when the child cannot be started or is left
        to itself. Whatever ``on_event`` raises leaves it to itself too; only a cancel and Ctrl-C end it.
        """
        now = datetime.now(UTC)
        folder = CallFolder(calls_folder(self.git_dir) / new_call_id(now))
        with _one_at_a_time(self.git_dir):
            twin = None if self.fresh else _twin(self.git_dir, question)
            lock = folder.create(question, self.client) if twin is None else -1
        if twin is not None:
            return self._follow(twin, question, on_event, cancel)
        try:
            ledger = Ledger.of(self.git_dir)
            try:
                ledger.reserve(_call(folder.id, question, now), *self.limits)
            except KlineageError:
                _forget(folder)
                raise
            process = self._spawn(folder, lock, ledger)
        finally:
            os.close(lock)
        try:
            reply = self._follow(folder, question, on_event, cancel)
        except KeyboardInterrupt:
            gone = threading.Event()
            gone.set()
            self._follow(folder, question, None, gone)
            raise
        process.wait()
        return reply

    def same(self, question: Question, answer: Reply) -> bool:
        """Whether an earlier answer was given to this question, whatever was said of answers of no use before it."""
        asked = CallFolder(calls_folder(self.git_dir) / answer.call).question()
        return asked is not None and (asked.task, asked.told) == (question.task, question.told)

    def done(self, answer: Reply) -> None:
        """Never offer this answer again."""
        CallFolder(calls_folder(self.git_dir) / answer.call).mark("done")

    def _spawn(self, folder: CallFolder, lock: int, ledger: Ledger) -> subprocess.Popen[bytes]:
        """The child, in a session of its own, so that no key and no end of the parent reaches it."""
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", self.child, str(folder.path)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(lock,), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            ledger.release(folder.id, "the child could not be started")
            _forget(folder)
            raise KlineageError(
                f"cannot start {sys.executable}: {error.strerror}; nothing was spent"
            ) from error

    def _follow(
        self,
        folder: CallFolder,
        asked: Question,
        on_event: OnProposerEvent | None,
        cancel: threading.Event | None,
    ) -> Reply:
        """Pass the reply on as it is written, until the child has ended. Raises KlineageError when it is left."""
        offset, ended = 0, False
        while True:
            lock = folder.take()
            try:
                events, offset = folder.events(offset)
                if on_event is not None:
                    for event in events:
                        on_event(event)
                if lock is not None:
                    return Reply(_concluded(folder, cancelled=ended), folder.id, asked.proposer)
            finally:
                if lock is not None:
                    os.close(lock)
            if isinstance(cancel, Cancel) and cancel.leaving:
                raise KlineageError(f"{asked.name} is left to finish; its answer is offered next time")
            if cancel is not None and cancel.is_set() and not ended:
                ended = _end(folder)
            time.sleep(_LOOK)


def calls_folder(git_dir: Path) -> Path:
    """Where the calls of a workspace are."""
    return git_dir / "klineage" / "calls"


def raw(git_dir: Path, call_id: str) -> dict[str, Any] | None:
    """What was sent and what came back in one call, for a recording; None where nobody knows."""
    folder = CallFolder(calls_folder(git_dir) / call_id)
    question, outcome = folder.question(), folder.outcome()
    if question is None or outcome is None:
        return None
    return {"sent": dict(question.body), "outcome": outcome.to_json()}


def adopt(git_dir: Path, kernel: str) -> Iterator[tuple[CallFolder, Question]]:
    """The calls about a kernel (by its hash) whose answers nobody has decided on, the oldest first."""
    for folder in _folders(git_dir):
        question = None if folder.has("done") else folder.question()
        if question is not None and question.kernel == kernel:
            yield folder, question


def _twin(git_dir: Path, question: Question) -> CallFolder | None:
    """The call that asks exactly the same, where there is one that nobody has decided on."""
    same = (question.hash, question.lineage)
    found = (f for f, asked in adopt(git_dir, question.kernel) if (asked.hash, asked.lineage) == same)
    return next(found, None)


@contextmanager
def _one_at_a_time(git_dir: Path) -> Iterator[None]:
    """Nobody else begins a call meanwhile. Raises KlineageError where the disk refuses."""
    path = calls_folder(git_dir) / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise KlineageError(f"cannot write {path}: {error.strerror}; nothing was spent") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # not by closing alone: a child forked just now would keep it
        os.close(descriptor)


def recover(git_dir: Path) -> None:
    """Conclude every call whose child has ended and that a kill has kept from being settled."""
    for folder in _folders(git_dir):
        if folder.has("settled") or (lock := folder.take()) is None:
            continue
        try:
            _concluded(folder)
        finally:
            os.close(lock)


def _folders(git_dir: Path) -> list[CallFolder]:
    try:
        paths = sorted(calls_folder(git_dir).iterdir())
    except FileNotFoundError:
        return []
    return [CallFolder(path) for path in paths if not path.name.startswith(".")]


def _call(call_id: str, question: Question, now: datetime) -> Call:
    return Call(
        id=call_id, lineage=question.lineage, step=question.kernel, proposer=question.name,
        model=question.model, prompt=question.hash, when=now, worst=question.worst,
    )  # fmt: skip


def _end(folder: CallFolder) -> bool:
    """End the child, if it is still there, and everything that it started; whether it was known whom to end."""
    pid = folder.pid()
    if pid is None:
        return False  # it has hardly begun; the next look will find its number
    lock = folder.take()
    if lock is not None:  # it has ended by itself, and its number may be somebody else's by now
        os.close(lock)
        return False
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return True


def _forget(folder: CallFolder) -> None:
    """Leave a call that was never made out of everything."""
    folder.mark("settled")
    folder.mark("done")


def _concluded(folder: CallFolder, cancelled: bool = False) -> Outcome:
    """The outcome of a call whose child has ended, settled; the lock is held."""
    outcome = folder.outcome()
    if outcome is None:
        sent = folder.has("sent")
        problem = "the call was cancelled" if cancelled else "its process died before the answer was complete"
        outcome = Outcome(
            "cancelled" if cancelled else "failed", problem=problem, spent="unknown" if sent else "nothing"
        )
        if cancelled or not sent:
            folder.mark("done")
    if folder.has("settled"):
        return outcome
    if Ledger.of(folder.git_dir).read().entry(folder.id) is None:
        _forget(folder)  # the parent was killed before it could reserve; nothing was sent
        return outcome
    return folder.finish(outcome)
