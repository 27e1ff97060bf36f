"""Who puts back what a step took out: the rule, an edit that is kept, the model or the command that made the step.

All of them see the simpler kernel and the record of the step, and none of them the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.lineage import Step
from klineage.proposer.base import Goal, Proposer, Task, Tried

if TYPE_CHECKING:
    from klineage.walk.deriving import Deriving

#: How often a paid proposer is asked for one forward edit; the second time it is told what was wrong.
ATTEMPTS = 2

#: The proposer of a name that a step records; None where it is not to be asked.
Ask = Callable[[str], Proposer | None]


def edits(
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
