"""A walk as it is at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from klineage.kernel import Feature, Kernel
from klineage.lineage import Meta, Settlement, Step
from klineage.proposer.candidate import Candidate
from klineage.walk import settling


@dataclass(frozen=True)
class WalkState:
    """A consistent picture of a walk, read from git in one go."""

    meta: Meta
    steps: tuple[Step, ...]  # the expert first, the simplest state last
    rejected: tuple[Step, ...]
    kernel: Kernel  # at the head
    sealed: bool
    can_undo: str  # what undo would take back; empty when nothing can be undone
    can_redo: str
    settled: tuple[Settlement, ...] = ()  # what persons said of unknown mechanisms, on any state

    @property
    def head(self) -> Step:
        return self.steps[-1]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """What is present at the head; looked for when it is first asked for."""
        from klineage.proposer.features import features

        return tuple(features(self.kernel, self.words))

    @property
    def words(self) -> tuple[Settlement, ...]:
        """What persons' words come to at the head."""
        return settling.words_at(self.settled, self.steps)

    def kernel_of(self, candidate: Candidate) -> Kernel:
        """The kernel that accepting ``candidate`` would make the new head."""
        return candidate.kernel(self.kernel)

    def rejection_of(self, candidate: Candidate) -> Step | None:
        """The rejection of exactly this candidate on this head, if there was one."""
        wanted = self.kernel_of(candidate).hash
        tried = (s for s in self.rejected if s.parent == self.head.commit)
        return next((s for s in tried if s.kernel == wanted), None)
