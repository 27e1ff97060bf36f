"""What cards are lifted from: the transitions of sealed lineages, and the attempts that were rejected on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from klineage.errors import KlineageError
from klineage.gate import Report
from klineage.kernel import Feature, Kernel, Surface
from klineage.lineage import Settlement, Step, Workspace
from klineage.proposer.features import features
from klineage.walk import Walk
from klineage.walk.settling import words_at
from klineage.workload import Workload

RULE_PREFIX = "rules:"


@dataclass(frozen=True, eq=False)
class Transition:
    """One sealed forward step: the kernel before it has not the optimization, the kernel after it has.

    commit:   the sealed commit; its tree is the state *after*.
    reports:  the gate reports noted on that commit, oldest first: ``after`` judged, mostly against ``before``.
    features_before, features_after: what is present, by detectors and by persons' words on this lineage.
    platform: of the step.
    """

    lineage: str
    commit: str
    before: Kernel = field(repr=False)
    after: Kernel = field(repr=False)
    step: Step
    reports: tuple[Report, ...] = field(repr=False)
    workload: Workload = field(repr=False)
    features_before: tuple[Feature, ...] = ()
    features_after: tuple[Feature, ...] = ()
    platform: str = ""

    @property
    def surface(self) -> Surface:
        return self.after.surface

    @property
    def name(self) -> str:
        """``gemm-c K3``."""
        return f"{self.lineage} K{self.step.number}"

    @property
    def rule(self) -> str:
        """The rule that made the step, ``prefetch``; empty for a model's, a command's or a person's."""
        return rule_of(self.step)

    @property
    def added(self) -> tuple[Feature, ...]:
        """What this transition brought in: what its step says, and whatever else the detectors see come.

        A mechanism that only moved to another place has not come.
        """
        known, now = set(self.features_before), set(self.features_after)
        claimed = [f for f in self.step.adds if f not in known]
        old = {f.name for f in claimed} | {f.name for f in known - now}
        return tuple(
            dict.fromkeys(
                [*claimed, *(f for f in self.features_after if f not in known and f.name not in old)]
            )
        )

    @property
    def report(self) -> Report | None:
        """The latest report that judged ``after`` against ``before``, else the latest on ``after``."""
        own = [report for report in self.reports if report.kernel == self.after.hash]
        return next(reversed([r for r in own if r.baseline == self.before.hash] or own), None)

    @property
    def comparisons(self) -> tuple[Report, ...]:
        """Of each platform the latest report that judged ``after`` against ``before``."""
        found = {
            report.platform: report
            for report in self.reports
            if report.kernel == self.after.hash and report.baseline == self.before.hash
        }
        return tuple(found.values())


@dataclass(frozen=True)
class Rejected:
    """One attempt that was turned down: ``tried`` is its kernel, ``on`` the state that it was tried on."""

    lineage: str
    commit: str
    on: Kernel = field(repr=False)
    tried: Kernel = field(repr=False)
    step: Step
    reports: tuple[Report, ...] = field(repr=False)
    workload: Workload = field(repr=False)
    platform: str = ""

    @property
    def report(self) -> Report | None:
        """The latest report on exactly these bytes; None where nothing was gated."""
        own = [report for report in self.reports if report.kernel == self.tried.hash]
        return own[-1] if own else None

    @property
    def name(self) -> str:
        """``gemm-c x1f0a3c55``: rejected attempts have no number of their own."""
        return f"{self.lineage} x{self.commit[:8]}"


def rule_of(step: Step) -> str:
    """The rule that made a step, also where a person edited its proposal no longer: only the rule's own bytes count."""
    name = step.proposer.partition(";")[0].strip()
    return name.removeprefix(RULE_PREFIX) if name.startswith(RULE_PREFIX) else ""


def transitions(workspace: Workspace, lineage_id: str) -> tuple[Transition, ...]:
    """The transitions of a sealed lineage, the first on the naive kernel first.

    Raises KlineageError, with what to do, for a lineage that is not sealed, or that has gone on since.
    """
    walk = Walk(workspace, lineage_id)
    steps = walk.forward()
    if not steps or not workspace.sealed(lineage_id):
        what = "has gone on since it was sealed" if steps else "is not sealed yet"
        raise KlineageError(f"{lineage_id} {what}; klineage seal {lineage_id} writes its lineage")
    words = _words_by_kernel(workspace, lineage_id)
    present = {step.commit: _features(walk, step.commit, words) for step in steps}
    workload = walk.workload
    return tuple(
        Transition(
            lineage_id,
            step.commit,
            walk.kernel_at(simpler.commit),
            walk.kernel_at(step.commit),
            step,
            walk.reports(step.commit),
            workload,
            present[simpler.commit],
            present[step.commit],
            step.platform or workspace.meta(step.commit).platform,
        )
        for simpler, step in pairwise(steps)
    )


def rejected(workspace: Workspace, lineage_id: str) -> tuple[Rejected, ...]:
    """The rejected attempts of a lineage, oldest first."""
    walk = Walk(workspace, lineage_id)
    return tuple(
        Rejected(
            lineage_id,
            step.commit,
            walk.kernel_at(step.parent),
            walk.kernel_at(step.commit),
            step,
            walk.reports(step.commit),
            walk.workload,
            step.platform or workspace.meta(step.commit).platform,
        )
        for step in workspace.rejected(lineage_id)
    )


def sealed_lineages(workspace: Workspace) -> tuple[str, ...]:
    """The lineages here that can be lifted from, in the order of their names."""
    return tuple(sorted(s.id for s in workspace.lineages() if s.sealed and not s.problem))


def _words_by_kernel(workspace: Workspace, lineage_id: str) -> Mapping[str, Sequence[Settlement]]:
    """What persons' words come to on each state of the walk, by the hash of its kernel."""
    settled = workspace.settled(lineage_id)
    if not settled:
        return {}
    history = workspace.history(lineage_id)
    walk = Walk(workspace, lineage_id)
    return {
        walk.kernel_at(step.commit).hash: words_at(settled, history[: number + 1])
        for number, step in enumerate(history)
    }


def _features(walk: Walk, commit: str, words: Mapping[str, Sequence[Settlement]]) -> tuple[Feature, ...]:
    kernel = walk.kernel_at(commit)
    return tuple(features(kernel, words.get(kernel.hash, ()), walk.report_of(commit)))
