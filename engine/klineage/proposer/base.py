"""The one interface of whoever proposes: rules, a model, a command, a person.

A proposer is given a ``Task`` and yields ``Attempt``s. The same interface serves both directions: without a
goal it simplifies the kernel, with a goal it puts one optimization back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from klineage.kernel import Feature, Kernel
from klineage.proposer.candidate import Candidate
from klineage.workload import Workload


@dataclass(frozen=True)
class Tried:
    """An attempt that was rejected on this state, and why. ``kernel``: hash of what it proposed, if known."""

    title: str
    action: str
    locus: str
    why: str
    kernel: str = ""


@dataclass(frozen=True)
class Goal:
    """What a forward edit must put back: the record of the transition, never its diff."""

    action: str
    locus: str
    title: str
    rationale: str
    adds: tuple[Feature, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What a proposer is asked to do with a kernel.

    features: what the detectors see in it.
    tried:    attempts that were rejected on this state; do not offer them again.
    hint:     what a person said, in their words; empty for nothing.
    goal:     None to take one mechanism out; else the mechanism to add.
    """

    kernel: Kernel
    workload: Workload
    platform: str
    features: tuple[Feature, ...] = ()
    tried: tuple[Tried, ...] = ()
    hint: str = ""
    goal: Goal | None = None


@dataclass(frozen=True)
class Attempt:
    """One answer of a proposer: a candidate, or the sentence that says why there is none.

    Both, where an answer cannot be used but its bytes are evidence: they are kept as a rejected attempt.
    An answer that cannot be used costs one attempt and never the walk. ``call`` is the id of the paid
    call in the ledger, empty where nothing was spent. ``notes`` are further sentences about it, such as what
    the proposer changed beside its answer, which was ignored.
    """

    proposer: str
    candidate: Candidate | None = None
    problem: str = ""
    call: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProposerEvent:
    """Progress of an attempt: ``status`` (what it does now) or ``text`` (the next piece of the answer)."""

    kind: str
    text: str


OnProposerEvent = Callable[[ProposerEvent], None]


class Proposer(Protocol):
    """Anything that answers a task. ``name`` is what a step records: ``rules``, ``model:<id>`` ..."""

    @property
    def name(self) -> str: ...

    def attempts(
        self,
        task: Task,
        on_event: OnProposerEvent | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[Attempt]:
        """Answers, one at a time, best first; a paid proposer makes one call for each that is taken.

        Raises KlineageError only for what no further attempt can mend (no key, no such command, a
        spending limit); everything else is an ``Attempt`` with a ``problem``.
        """
        ...
