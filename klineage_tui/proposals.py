"""The proposals of the current state as a person goes through them: pure data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from klineage.gate import Report
    from klineage.proposer.candidate import Candidate

Standing = Literal["pending", "skipped", "rejected"]


@dataclass(frozen=True)
class Proposal:
    """One candidate on the current state.

    kernel:   hash of the kernel that accepting it would make.
    earlier:  hashes that it had before it was edited, newest last; their reports are stale.
    reason:   why it was rejected here.
    """

    candidate: Candidate
    kernel: str
    standing: Standing = "pending"
    earlier: tuple[str, ...] = ()
    reason: str = ""

    @property
    def edited(self) -> bool:
        """A person changed its bytes."""
        return self.candidate.by_hand


@dataclass(frozen=True)
class Queue:
    """The proposals in order, and which one is on screen."""

    proposals: tuple[Proposal, ...] = ()
    position: int = 0

    @property
    def current(self) -> Proposal | None:
        return self.proposals[self.position] if self.proposals else None

    @property
    def pending(self) -> int:
        return self.count("pending")

    def count(self, standing: Standing) -> int:
        return sum(proposal.standing == standing for proposal in self.proposals)

    def at(self, position: int) -> Queue:
        """The queue at another position, wrapping round at both ends."""
        return replace(self, position=position % len(self.proposals)) if self.proposals else self

    def next_pending(self) -> Queue:
        """The next undecided proposal after this one, wrapping; the same queue when there is none."""
        for step in range(1, len(self.proposals) + 1):
            candidate = self.at(self.position + step)
            if candidate.current is not None and candidate.current.standing == "pending":
                return candidate
        return self

    def with_current(self, **changes: object) -> Queue:
        """The queue with the current proposal changed."""
        current = self.current
        if current is None:
            return self
        changed = replace(current, **changes)  # type: ignore[arg-type]
        proposals = (*self.proposals[: self.position], changed, *self.proposals[self.position + 1 :])
        return replace(self, proposals=proposals)

    def added(self, candidate: Candidate, kernel: str) -> Queue:
        """The queue with one more proposal, which becomes the current one, in the place of one of the same bytes."""
        known = next((i for i, p in enumerate(self.proposals) if p.kernel == kernel), None)
        if known is not None:
            return self.at(known).with_current(candidate=candidate)
        return Queue((*self.proposals, Proposal(candidate, kernel)), len(self.proposals))

    def edited(self, candidate: Candidate, kernel: str) -> Queue:
        """The current proposal with a person's bytes, pending again; on an empty queue, a new one."""
        current = self.current
        if current is None:
            return Queue((Proposal(candidate, kernel),))
        earlier = current.earlier if kernel == current.kernel else (*current.earlier, current.kernel)
        return self.with_current(
            candidate=candidate, kernel=kernel, standing="pending", reason="", earlier=earlier
        )


def queue_of(
    candidates: Iterable[Candidate],
    kernel_of: Callable[[Candidate], str],
    rejected_because: Callable[[Candidate], str | None],
    skipped: frozenset[str] = frozenset(),
) -> Queue:
    """The queue for a state: what was rejected here or skipped is marked, the first undecided is current.

    ``rejected_because`` gives the reason of a rejection, None where there was none; ``skipped`` holds
    hashes of kernels.
    """
    proposals = []
    for candidate in candidates:
        kernel, reason = kernel_of(candidate), rejected_because(candidate)
        standing: Standing = "skipped" if kernel in skipped else "pending"
        if reason is not None:
            standing = "rejected"
        proposals.append(Proposal(candidate, kernel, standing, reason=reason or ""))
    queue = Queue(tuple(proposals))
    first = queue.current
    return queue if first is None or first.standing == "pending" else queue.next_pending()


Evidence = Literal["none", "stale", "current"]


def evidence(
    proposal: Proposal, head: str, reports: Mapping[tuple[str, str], Report]
) -> tuple[Evidence, Report | None]:
    """What the gate said of exactly these bytes on this state, or else of the bytes before an edit.

    ``reports`` is keyed by (kernel hash, hash of the state it was gated on).
    """
    if (report := reports.get((proposal.kernel, head))) is not None:
        return "current", report
    for kernel in reversed(proposal.earlier):
        if (report := reports.get((kernel, head))) is not None:
            return "stale", report
    return "none", None
