"""A proposer that says what a test wants, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from klineage.kernel import Feature
from klineage.lineage import Workspace
from klineage.proposer.base import Attempt, OnProposerEvent, ProposerEvent, Task
from klineage.proposer.candidate import Candidate
from klineage.walk import Walk, new_lineage

SERIES = Path(__file__).parents[2] / "series" / "row_norms"
Say = Callable[[Task], Iterable[Attempt]]


@dataclass
class Scripted:
    """Answers a task with what ``say`` makes of it."""

    say: Say
    name: str = "scripted"
    asked: list[Task] = field(default_factory=list)
    given: int = 0  # how many answers were taken
    closed: int = 0  # how often it was told that no more are wanted

    def attempts(
        self, task: Task, on_event: OnProposerEvent | None = None, cancel: threading.Event | None = None
    ) -> Iterator[Attempt]:
        self.asked.append(task)
        try:
            for attempt in self.say(task):
                if on_event is not None:
                    on_event(ProposerEvent("status", "thinking"))
                self.given += 1
                yield attempt
        finally:
            self.closed += 1


def version(number: int) -> bytes:
    """A kernel of the series: 5 has prefetch, unrolling, vectors and restrict; each below lacks one more."""
    return (SERIES / f"v{number}.c").read_bytes()


def candidate(source: bytes, title: str = "Take it out", removes: tuple[Feature, ...] = ()) -> Candidate:
    return Candidate(
        "unroll", "kernel.c::row_norms", title, "It should not matter.", source, removes, proposer="scripted"
    )


def attempt(source: bytes, title: str = "Take it out", removes: tuple[Feature, ...] = ()) -> Attempt:
    return Attempt("scripted", candidate(source, title, removes))


def feature(name: str) -> Feature:
    return Feature("kernel.c::row_norms", name)


def walk_of(workspace: Workspace, folder: Path, number: int = 5) -> Walk:
    """A new lineage of a version of the series."""
    file = folder / "kernel.c"
    file.write_bytes(version(number))
    return Walk(workspace, new_lineage(workspace, file, SERIES))
