"""Forward edits: what a step took out is put back on the simpler kernel, by somebody who does not see the difference.

An edit counts when it comes to the richer kernel: the same features, at least 0.99 of its speed in every trial (or no more
work, where counts are all that is known), and a pass in a worker that has run nothing yet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from klineage.errors import KlineageError
from klineage.executor import Executor, fresh_workers
from klineage.gate import POLICY, GateRequest, Report, gate
from klineage.kernel import Kernel
from klineage.lineage import KeptEdit, Step
from klineage.proposer.base import Goal, Proposer, Task, Tried
from klineage.walk import fidelity
from klineage.walk.fidelity import Outcome

if TYPE_CHECKING:
    from klineage.proposer.base import OnProposerEvent
    from klineage.walk.session import Walk

#: How often a paid proposer is asked for one forward edit; the second time it is told what was wrong.
ATTEMPTS = 2

#: A measurement that was too noisy is taken again for this long: slow kernels have few rounds in the time of a gate.
_PATIENT = replace(POLICY, most_profile_seconds=5 * POLICY.most_profile_seconds)

#: The proposer of a name that a step records; None where it is not to be asked.
Ask = Callable[[str], Proposer | None]


@dataclass(frozen=True)
class Derivation:
    """How one forward edge came to be.

    number: of the state that it leads to, the simplest being 0. step: the backward step that it turns round.
    how:    "derived", or "replayed": the recorded inverse, since no edit of anybody counted.
    by:     whose edit it is; empty for a replayed one.
    why:    one sentence.
    """

    number: int
    step: Step
    how: Literal["derived", "replayed"]
    by: str
    why: str
    fidelity: tuple[
        float, ...
    ] = ()  # of the richer kernel's speed, one a trial; empty where nothing was timed
    confirmed: bool = False  # in a fresh worker
    source: bytes = field(default=b"", repr=False)  # what the edit came to


@dataclass
class Deriving:
    """What all derivations of one command share; ``close`` ends the fresh workers.

    ask:   who is asked for edits that no rule makes; None asks nobody, and uses what is kept.
    only:  a person's choice of proposer, in place of the order of all.
    renew: forget what was found out before.
    """

    walk: Walk
    platform: str
    ask: Ask | None = None
    only: Proposer | None = None
    on_progress: Callable[[str], None] | None = None
    on_event: OnProposerEvent | None = None
    cancel: threading.Event | None = None
    renew: bool = False
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
    for by, made in _edits(deriving, simpler, before, after, source, problems):
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


def _edits(
    deriving: Deriving, step: Step, before: Kernel, after: Kernel, source: bytes | None, problems: list[str]
) -> Iterator[tuple[str, bytes]]:
    """(who, whole file) of every edit to be tried, best first; why there is none goes to ``problems``."""
    if source is not None:
        yield "person", source
        return
    if deriving.only is not None:
        yield from _asked(deriving, deriving.only, step, before, problems)
        return
    yield from _by_rule(step, before, problems)
    kept = deriving.walk.workspace.edits(deriving.walk.id).get((before.hash, after.hash))
    if kept is not None:
        yield kept.proposer, kept.source
    maker = maker_of(step)
    if not maker or (kept is not None and not deriving.renew):
        return
    try:
        proposer = deriving.ask(maker) if deriving.ask is not None else None
        if proposer is not None:
            yield from _asked(deriving, proposer, step, before, problems)
            return
    except KlineageError as error:  # no key, no money left: the step is still there, and says so
        deriving.check_cancelled()
        problems.append(f"{maker}: {error}")
        return
    problems.append(f"{maker}, who made the step, was not asked; klineage derive asks, within a --budget")


def rule_of(step: Step) -> str | None:
    """The rule behind a step, also where a person went over its proposal; None where there is none."""
    _, found, name = step.proposer.rpartition("rules:")
    return f"rules:{name}" if found else None


def maker_of(step: Step) -> str:
    """The model or the command behind a step, also where a person went over its proposal; else empty."""
    name = step.proposer.removeprefix("person, from ").partition(";")[0]
    return name if name.startswith(("model", "command", "replay")) else ""


def _by_rule(step: Step, before: Kernel, problems: list[str]) -> Iterator[tuple[str, bytes]]:
    """The rule that made the step, else those of its action."""
    from klineage.proposer import rules

    rule = rule_of(step)
    word = rule or step.action
    if not word:
        return
    try:
        made = rules.derive(word, before, step.locus, dict(step.settings))
    except rules.NotApplicable as error:
        problems.append(f"{rule or 'rules'}: {error.reason}")
        return
    yield rule or "rules", made


def _asked(
    deriving: Deriving, proposer: Proposer, step: Step, before: Kernel, problems: list[str]
) -> Iterator[tuple[str, bytes]]:
    """The answers of a proposer that is given the goal, never the difference."""
    tried: list[Tried] = []
    for _ in range(ATTEMPTS):
        deriving.check_cancelled()
        deriving.say(f"asking {proposer.name} to put {step.action} back")
        told = len(problems)
        attempts = proposer.attempts(
            _task(deriving, step, before, tuple(tried)), deriving.on_event, deriving.cancel
        )
        attempt = next(iter(attempts), None)
        if isinstance(attempts, Generator):
            attempts.close()
        deriving.check_cancelled()
        if attempt is None:
            problems.append(f"{proposer.name}: it had no answer")
            return
        made = ""
        if attempt.candidate is None:
            problems.append(f"{proposer.name}: {attempt.problem}")
        else:
            config = attempt.candidate.config
            made = replace(
                before,
                source=attempt.candidate.source,
                config=before.config if config is None else config,
            ).hash
            yield attempt.proposer, attempt.candidate.source
        said = "; ".join(problems[told:])
        tried.append(Tried(f"Put {step.action} back", step.action, step.locus, said, made))


def _task(deriving: Deriving, step: Step, before: Kernel, tried: tuple[Tried, ...]) -> Task:
    from klineage.proposer.features import features

    goal = Goal(step.action, step.locus, forward_title(step), step.body, step.removes, step.settings)
    return Task(before, deriving.walk.workload, deriving.platform, tuple(features(before)), tried, goal=goal)


def forward_title(step: Step) -> str:
    """The imperative of the forward step: the rule's own, else that of a person's step turned round."""
    from klineage.proposer import rules

    rule = rule_of(step)
    return (rule and rules.forward_title(rule)) or turned_round(step.subject)


def turned_round(subject: str) -> str:
    """What a step back is called when it is taken forward."""
    for back, forth in (("Undo: ", ""), ("Remove ", "Add ")):
        if subject.startswith(back):
            return forth + subject.removeprefix(back)
    return f"Undo: {subject}"


def _keep(walk: Walk, before: Kernel, after: Kernel, by: str, source: bytes) -> None:
    """Keep an edit that nobody makes again for nothing."""
    if by.startswith("rules"):
        return
    edit = KeptEdit(before.hash, after.hash, by, source)
    if walk.workspace.edits(walk.id).get(edit.key) != edit:
        walk.workspace.keep_edit(walk.id, edit)


__all__ = [
    "ATTEMPTS",
    "Ask",
    "Derivation",
    "Deriving",
    "Outcome",
    "derive",
    "forward_title",
    "maker_of",
    "rule_of",
]
