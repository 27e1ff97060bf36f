"""Forward edits: what a step took out is put back on the simpler kernel, by somebody who does not see the difference.

An edit counts when it comes to the richer kernel: the same features, at least 0.99 of its speed in every trial (or no more
work, where counts are all that is known), and a pass in a worker that has run nothing yet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from klineage.errors import KlineageError
from klineage.executor import Executor, fresh_workers
from klineage.gate import POLICY, GateRequest, Report, Verdict, gate
from klineage.kernel import Kernel
from klineage.lineage import KeptEdit, Step
from klineage.walk import fidelity, putting_back
from klineage.walk.putting_back import Ask

if TYPE_CHECKING:
    from klineage.proposer.base import OnProposerEvent, Proposer
    from klineage.walk.session import Walk

#: A measurement that was too noisy is taken again for this long: slow kernels have few rounds in the time of a gate.
_PATIENT = replace(POLICY, most_profile_seconds=5 * POLICY.most_profile_seconds)


@dataclass(frozen=True)
class Derivation:
    """How one forward edge came to be.

    number: of the state that it leads to, the simplest being 0. step: the backward step that it turns round.
    how:    "derived", or "replayed": the recorded inverse, since no edit of anybody counted.
    by:     whose edit it is; empty for a replayed one.
    why:    one sentence.
    fidelity: the part of the richer kernel's speed in each trial; empty where nothing was timed.
    confirmed: in a fresh worker. source: what the edit came to.
    """

    number: int
    step: Step
    how: Literal["derived", "replayed"]
    by: str
    why: str
    fidelity: tuple[float, ...] = ()
    confirmed: bool = False
    source: bytes = field(default=b"", repr=False)


@dataclass
class Deriving:
    """What all derivations of one command share; ``close`` ends the fresh workers.

    ask:   who is asked for edits that no rule makes; None asks nobody, and uses what is kept.
    only:  a person's choice of proposer, in place of the order of all.
    renew: forget what was found out before.
    confirmed: hashes of kernels that have passed here in fresh workers, with new seeds.
    """

    walk: Walk
    platform: str
    ask: Ask | None = None
    only: Proposer | None = None
    on_progress: Callable[[str], None] | None = None
    on_event: OnProposerEvent | None = None
    cancel: threading.Event | None = None
    renew: bool = False
    confirmed: set[str] = field(default_factory=set)
    _stack: ExitStack = field(default_factory=ExitStack)
    _fresh: Executor | None = None

    def __enter__(self) -> Deriving:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def say(self, what: str) -> None:
        if self.on_progress is not None:
            self.on_progress(what)

    def check_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise KlineageError("deriving was cancelled; nothing was written")

    def gated(
        self,
        kernel: Kernel,
        baseline: Kernel | None,
        what: str,
        *,
        fresh: bool = False,
        again: bool = False,
        patient: bool = False,
    ) -> Report:
        """Gate a kernel, and profile it where it has a baseline.

        fresh: in workers that have run nothing else. again: not from the cache. patient: measure for longer.
        Raises KlineageError on cancel.
        """
        self.say(what)
        request = GateRequest(kernel, self.walk.workload, self.platform, baseline=baseline)
        report = gate(
            request,
            None,
            self.cancel,
            fresh=fresh or again,
            keep=not fresh,
            profiled=baseline is not None,
            policy=_PATIENT if patient else POLICY,
            executor=self._fresh_workers() if fresh else None,
        )
        self.check_cancelled()
        return report

    def transition(self, kernel: Kernel, before: Kernel, what: str) -> Report:
        """Gate a state against the simpler one, and profile it. Found out now, in fresh workers, it confirms the kernel."""
        self.say(what)
        ran: list[str] = []
        report = gate(
            GateRequest(kernel, self.walk.workload, self.platform, baseline=before),
            lambda event: ran.append(event.stage) if event.state == "running" else None,
            self.cancel,
            executor=self._fresh_workers(),
        )
        self.check_cancelled()
        if ran and report.verdict is Verdict.PASS:
            self.confirmed.add(kernel.hash)
        return report

    def _fresh_workers(self) -> Executor:
        if self._fresh is None:
            self._fresh = self._stack.enter_context(fresh_workers())
        return self._fresh


def derive(
    deriving: Deriving, number: int, simpler: Step, richer: Step, source: bytes | None = None
) -> Derivation:
    """The forward edge that puts back what ``simpler`` removed from ``richer``.

    ``source`` is a person's own edit of the simpler kernel. What was found out before about an edit is not
    found out again.
    """
    walk = deriving.walk
    before, after = walk.kernel_at(simpler.commit), walk.kernel_at(richer.commit)
    problems: list[str] = []
    for by, made in putting_back.edits(deriving, simpler, before, after, source, problems):
        outcome = fidelity.judged(deriving, simpler, before, replace(after, source=made), after)
        if outcome.holds:
            _keep(walk, before, after, by, made)
            text = f"{by}: {outcome.why}"
            return Derivation(number, simpler, "derived", by, text, outcome.fidelity, outcome.confirmed, made)
        problems.append(f"{by}: {outcome.why}")
    why = (
        "; ".join(dict.fromkeys(problems))
        or f"nobody is there to put {simpler.action or 'it'} back: no rule made this step"
    )
    return Derivation(number, simpler, "replayed", "", why)


def _keep(walk: Walk, before: Kernel, after: Kernel, by: str, source: bytes) -> None:
    """Keep an edit that nobody makes again for nothing."""
    if by.startswith("rules"):
        return
    edit = KeptEdit(before.hash, after.hash, by, source)
    if walk.workspace.edits(walk.id).get(edit.key) != edit:
        walk.workspace.keep_edit(walk.id, edit)
