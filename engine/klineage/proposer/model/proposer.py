"""The model behind the interface of every proposer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from klineage.errors import KlineageError
from klineage.proposer.answer import Unusable
from klineage.proposer.base import Attempt, OnProposerEvent, ProposerEvent, Task, Tried
from klineage.proposer.calls import PaidCalls
from klineage.proposer.candidate import Candidate
from klineage.proposer.model.readable import Readable
from klineage.proposer.model.reply import Nothing, read_reply
from klineage.proposer.model.request import question_of
from klineage.proposer.question import Question, Reply
from klineage.proposer.settings import Settings

CHILD = "klineage.proposer.model.child"  # the only module that imports the SDK
_OFFERED = "proposed already, and not decided on yet: propose another mechanism, or take this one out better"


@dataclass(frozen=True)
class ModelProposer:
    """Asks a model, one call an attempt; answers that were paid for and never decided on come first.

    A step records model and prompt, e.g. ``model:claude-sonnet-5-5; prompt 3f2a0c91be77``.
    """

    model: str
    lineage: str
    settings: Settings
    calls: PaidCalls

    @property
    def name(self) -> str:
        return f"model:{self.model}"

    def attempts(
        self,
        task: Task,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Attempt]:
        """Candidates and spent attempts, until the model says that nothing is left or a person cancels."""
        offered: dict[str, Tried] = {}
        faults: list[str] = []
        for answer in self._answers(task, offered, faults, on_event, cancel):
            result = self._read(task, answer, offered)
            if isinstance(result, Nothing):
                if on_event is not None:
                    on_event(
                        ProposerEvent("status", f"the model sees nothing left to take out: {result.why}")
                    )
                return
            if result.problem:
                faults.append(result.problem)
            yield result

    def _answers(
        self,
        task: Task,
        offered: dict[str, Tried],
        faults: list[str],
        on_event: OnProposerEvent | None,
        cancel: threading.Event | None,
    ) -> Iterator[Reply]:
        """Earlier answers, then new ones; each new question says what became of those before it."""

        def question() -> Question:
            told = replace(task, tried=(*task.tried, *offered.values()))
            return question_of(told, self.lineage, self.model, self.settings, tuple(faults))

        first = question()
        for answer in self.calls.earlier(first, _readable(on_event), cancel):
            if answer.outcome.status == "answered" and not self._stale(task, first, answer):
                yield answer
            else:
                self.calls.done(answer)  # of a call that failed there is nothing to offer
        while cancel is None or not cancel.is_set():
            answer = self.calls.ask(question(), _readable(on_event), cancel)
            if answer.outcome.status == "cancelled":
                return
            if answer.outcome.status == "impossible":
                self.calls.done(answer)
                raise KlineageError(answer.outcome.problem)
            yield answer

    def _stale(self, task: Task, question: Question, answer: Reply) -> bool:
        """Whether an earlier answer has been decided on, or says "nothing left" to another question."""
        try:
            result = read_reply(replace(task, tried=()), answer.outcome, answer.proposer)
        except Unusable:
            return False
        if isinstance(result, Nothing):
            return not self.calls.same(question, answer)
        return _hash(task, result) in {tried.kernel for tried in task.tried}

    def _read(self, task: Task, answer: Reply, offered: dict[str, Tried]) -> Attempt | Nothing:
        """What an answer comes to; one that cannot be used needs not be offered again."""
        spent = Attempt(answer.proposer, call=answer.call)
        if answer.outcome.status == "failed":
            self.calls.done(answer)
            return replace(spent, problem=answer.outcome.problem)
        try:
            result = read_reply(task, answer.outcome, answer.proposer)
        except Unusable as unusable:
            self.calls.done(answer)
            return replace(spent, candidate=unusable.evidence, problem=str(unusable))
        if isinstance(result, Nothing):
            return result
        kernel = _hash(task, result)
        if kernel in offered:
            self.calls.done(answer)
            return replace(spent, problem="it made the same proposal again")
        offered[kernel] = Tried(result.title, result.action, result.locus, _OFFERED, kernel)
        return replace(spent, candidate=result)


def _hash(task: Task, candidate: Candidate) -> str:
    return candidate.kernel(task.kernel).hash


def _readable(on_event: OnProposerEvent | None) -> OnProposerEvent | None:
    """Pass the pieces of a JSON answer on as the text that a person reads."""
    if on_event is None:
        return None
    reader = Readable()

    def pass_on(event: ProposerEvent) -> None:
        if event.kind != "text":
            on_event(event)
        elif text := reader.feed(event.text):
            on_event(ProposerEvent("text", text))

    return pass_on
