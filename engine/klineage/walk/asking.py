"""Asking a proposer for the next step: what it is told, and what its answer must be before it is offered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage.kernel import Feature, Kernel
from klineage.lineage import Step
from klineage.proposer import rules
from klineage.proposer.base import Attempt, OnProposerEvent, Proposer, Task, Tried
from klineage.proposer.candidate import Candidate
from klineage.walk import naming

if TYPE_CHECKING:
    from klineage.walk.session import Walk
    from klineage.walk.state import WalkState


def task(walk: Walk, state: WalkState, hint: str = "") -> Task:
    """What any proposer is told of a state: the kernel, what is in it, and what failed on it and why."""
    return Task(
        kernel=state.kernel,
        workload=walk.workload,
        platform=state.meta.platform,
        features=state.features,
        tried=tuple(
            Tried(step.subject, step.action, step.locus, step.why or step.gate, step.kernel)
            for step in state.rejected
            if step.parent == state.head.commit
        ),
        hint=hint,
    )


def ask(
    walk: Walk,
    proposer: Proposer,
    hint: str = "",
    on_event: OnProposerEvent | None = None,
    cancel: threading.Event | None = None,
    on_recorded: Callable[[Step], None] | None = None,
) -> Generator[Attempt, None, None]:
    """The proposer's answers to the present state, each checked: a candidate in an attempt can be gated.

    An answer with a fault has a ``problem`` in place of its candidate. Where it proposed bytes that are evidence
    (they do not parse, or do not take out one mechanism), it is recorded as a rejected attempt, and
    ``on_recorded`` is told.
    """
    state = walk.state()
    offered: set[str] = set()
    answers = proposer.attempts(task(walk, state, hint), on_event, cancel)
    try:
        for attempt in answers:
            checked, fault = _checked(state, attempt, offered)
            if fault and attempt.candidate is not None:
                step = walk.reject(attempt.candidate, None, why=fault, on=state.head.commit)
                if on_recorded is not None:
                    on_recorded(step)
            yield checked
    finally:
        if isinstance(answers, Generator):
            answers.close()


def _checked(state: WalkState, attempt: Attempt, offered: set[str]) -> tuple[Attempt, str]:
    """The attempt as it may be offered, and the fault that its bytes are evidence of."""
    candidate = attempt.candidate
    if candidate is None:
        return attempt, ""
    kernel, before = state.kernel_of(candidate), state.rejection_of(candidate)
    if kernel.hash == state.kernel.hash:
        return _without(attempt, "it proposed the kernel as it is now"), ""
    if before is not None:
        return _without(attempt, f"it proposed again what was rejected here: {before.why}"), ""
    if kernel.hash in offered:
        return _without(attempt, "it made the same proposal twice"), ""
    offered.add(kernel.hash)
    if candidate.proposer.startswith("rules:"):
        # A rule takes out one mechanism, and has looked at what it leaves. A recording can only say that a rule spoke.
        own = candidate if ";" not in candidate.proposer else _of_a_rule(state.kernel, candidate)
        fault = "" if own is not None else "no rule proposes this, whatever its recording says"
        return (_without(attempt, fault), fault) if fault else (replace(attempt, candidate=own), "")
    gone = naming.gone(state.kernel, kernel, state.words)
    fault = (
        attempt.problem
        or _unreadable(state.kernel, kernel)
        or _not_one_mechanism(state, kernel, candidate, gone)
    )
    if fault:
        return _without(attempt, fault), fault
    return replace(attempt, candidate=replace(candidate, removes=gone or candidate.removes)), ""


def _without(attempt: Attempt, problem: str) -> Attempt:
    return replace(attempt, candidate=None, problem=problem)


def _of_a_rule(head: Kernel, replayed: Candidate) -> Candidate | None:
    """What the rule itself says, where it proposes the same bytes."""
    name = replayed.proposer.partition(";")[0]
    same = (c for c in rules.propose(head) if c.proposer == name and c.source == replayed.source)
    return next((replace(c, proposer=replayed.proposer) for c in same), None)


def _unreadable(head: Kernel, kernel: Kernel) -> str:
    from klineage.surface.tree import parse_kernel

    broken, before = parse_kernel(kernel).broken_lines(), parse_kernel(head).broken_lines()
    return f"the new kernel does not parse: see its line {broken[0]}" if len(broken) > len(before) else ""


def _not_one_mechanism(
    state: WalkState, kernel: Kernel, candidate: Candidate, gone: tuple[Feature, ...]
) -> str:
    """What the detectors hold against a step that says it takes one mechanism out; empty for nothing.

    Names are compared, not places: an edit may rename what a place is called after.
    """
    come = naming.come(state.kernel, kernel, state.words)
    lost, new = (Counter(feature.name for feature in features) for features in (gone, come))
    if new - lost:
        return f"it puts in {_listed(new - lost)}, but a step back only takes out"
    if len(lost - new) > 1:
        return f"it takes out {_listed(lost - new)} at once, but a step takes out one mechanism"
    still = [f for f in candidate.removes if f in state.features and f not in gone]
    return f"it says that it removes {still[0]}, which is still there" if still else ""


def _listed(names: Counter[str]) -> str:
    return ", ".join(sorted(names))
