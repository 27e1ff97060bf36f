"""The rules behind the interface of every proposer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.proposer.base import Attempt, OnProposerEvent, Task


@dataclass(frozen=True)
class RulesProposer:
    """What the structural rules offer, in their order, without what was rejected on this kernel before.

    A hint changes nothing for a rule. Raises KlineageError for a task with a goal: a rule's forward edit is
    ``rules.derive``, which needs the rule's name and not a goal in words.
    """

    name: str = "rules"

    def attempts(
        self,
        task: Task,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Attempt]:
        from klineage.proposer import rules

        if task.goal is not None:
            raise KlineageError("the rules take no goal; derive a forward edit with the rule that knows it")
        tried = {attempt.kernel for attempt in task.tried}
        for candidate in rules.propose(task.kernel):
            if cancel is not None and cancel.is_set():
                return
            if candidate.kernel(task.kernel).hash not in tried:
                yield Attempt(candidate.proposer, candidate)
