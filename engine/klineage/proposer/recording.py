"""Recording what a proposer was asked and said, and saying the same to the same questions again."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from klineage import __version__
from klineage.errors import KlineageError
from klineage.proposer.base import Attempt, OnProposerEvent, Proposer, ProposerEvent, Task
from klineage.proposer.recorded import (
    SCHEMA,
    Record,
    attempt_from,
    attempt_record,
    check,
    compared,
    line_of,
    question_record,
    read_lines,
)


class Recording:
    """A file that questions and answers are added to, as they happen."""

    def __init__(self, path: Path) -> None:
        """Begin a recording, or go on with one. Raises KlineageError for a file that is something else."""
        self.path = path
        if path.exists() and path.stat().st_size:
            read_lines(path)
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)  # a kill may have cut the last line off
        else:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.add("recording", {"schema": SCHEMA, "klineage": __version__, "made": now})

    def add(self, kind: str, value: object) -> None:
        """Add one line; it is in the file when this returns."""
        try:
            with self.path.open("ab") as file:
                file.write(line_of(kind, value).encode("utf-8", "replace"))
        except OSError as error:
            raise KlineageError(f"cannot write the recording {self.path}: {error.strerror}") from error


@dataclass(frozen=True)
class RecordedProposer:
    """Another proposer, overheard. ``raw``: the question and outcome of a paid call by its id, where there are any."""

    proposer: Proposer
    recording: Recording
    raw: Callable[[str], Record | None]

    @property
    def name(self) -> str:
        return self.proposer.name

    def attempts(
        self,
        task: Task,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Attempt]:
        """What the other proposer answers, each answer in the recording before it is passed on."""
        self.recording.add("question", question_record(task))
        ear = _Ear(self.recording, on_event)
        answers = self.proposer.attempts(task, ear, cancel)
        for attempt in answers:
            ear.flush()
            raw = self.raw(attempt.call) if attempt.call else None
            self.recording.add("attempt", attempt_record(attempt) | ({"raw": raw} if raw else {}))
            try:
                yield attempt
            except GeneratorExit:
                if hasattr(answers, "close"):
                    answers.close()
                raise
        ear.flush()
        if cancel is None or not cancel.is_set():
            self.recording.add("end", "nothing more to say")


@dataclass
class _Ear:
    """Adds events to a recording and passes them on. Text is one event: in pieces, half a key would not be known."""

    recording: Recording
    on_event: OnProposerEvent | None
    _text: list[str] = field(default_factory=list)

    def __call__(self, event: ProposerEvent) -> None:
        if event.kind == "text":
            self._text.append(event.text)
        else:
            self.flush()
            self.recording.add("event", {"kind": event.kind, "text": event.text})
        if self.on_event is not None:
            self.on_event(event)

    def flush(self) -> None:
        if self._text:
            self.recording.add("event", {"kind": "text", "text": "".join(self._text)})
            self._text.clear()


@dataclass
class Conversation:
    """One question of a recording, and what was said to it, in order.

    said: events and attempts (as records) with their line numbers. ended: the proposer had nothing more to say.
    """

    question: Record
    said: list[tuple[int, str, Any]] = field(default_factory=list)
    ended: bool = False

    @property
    def attempts(self) -> list[Record]:
        return [value for _, kind, value in self.said if kind == "attempt"]


def conversations(path: Path) -> list[Conversation]:
    """What a recording holds. Raises KlineageError, naming file and line, for what is no recording."""
    found: list[Conversation] = []
    for number, kind, value in read_lines(path):
        if kind not in ("recording", "question") and not found:
            raise KlineageError(f"{path}, line {number}: an answer without a question")
        try:
            check(kind, value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise KlineageError(f"{path}, line {number}: this is no {kind} of a recording") from error
        if kind == "question":
            found.append(Conversation(value))
        elif kind == "end":
            found[-1].ended = True
        elif kind != "recording":
            found[-1].said.append((number, kind, value))
    return found


class ReplayProposer:
    """Says what a recording says: to the same question the same answers, and to any other nothing at all.

    Where a question was asked several times, its answers follow one another; then they begin again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._conversations = conversations(path)
        self._asked: dict[str, int] = {}

    @property
    def name(self) -> str:
        return f"replay:{self.path}"

    def attempts(
        self,
        task: Task,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Attempt]:
        """The recorded answers. Raises KlineageError, naming what differs, for a question that was not recorded."""
        conversation = self._find(question_record(task))
        for number, kind, value in conversation.said:
            if cancel is not None and cancel.is_set():
                return
            try:
                if kind == "attempt":
                    yield attempt_from(value)
                elif on_event is not None:
                    on_event(ProposerEvent(value["kind"], value["text"]))
            except KlineageError as error:
                raise KlineageError(f"{self.path}, line {number}: {error}") from error
        if not conversation.ended:
            count = len(conversation.attempts)
            raise KlineageError(
                f"{self.path} has {count or 'no'} answer{'s' * (count != 1)} to this question, and one more was asked for; "
                "record it again"
            )

    def _find(self, question: Record) -> Conversation:
        wanted = compared(question)
        key = json.dumps(wanted, sort_keys=True)
        same = [c for c in self._conversations if compared(c.question) == json.loads(key)]
        if not same:
            raise KlineageError(f"{self.path} has no answer to this question: {self._nearest(wanted)}")
        turn = self._asked.get(key, 0)
        self._asked[key] = turn + 1
        return same[turn % len(same)]

    def _nearest(self, wanted: Record) -> str:
        """In what the most similar question of the recording differs."""
        plain = json.loads(json.dumps(wanted))
        differing = [
            [name for name, value in compared(c.question).items() if value != plain[name]]
            for c in self._conversations
        ]
        if not differing:
            return "it holds no question"
        nearest = min(differing, key=len)
        return f"{' and '.join(nearest)} {'differs' if len(nearest) == 1 else 'differ'} from the nearest one that was recorded"


def recorded(path: Path) -> Record:
    """A recording as one JSON value, for a reader: every question with its answers."""
    return {
        "file": str(path),
        "conversations": [
            {
                "question": c.question,
                "text": "".join(
                    v["text"] for _, kind, v in c.said if kind == "event" and v["kind"] == "text"
                ),
                "attempts": c.attempts,
                "ended": c.ended,
            }
            for c in conversations(path)
        ],
    }
