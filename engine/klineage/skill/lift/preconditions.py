"""What must hold before: the sentences that the rule knows, what the contract requires, and what compilers said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from klineage.proposer.rules import RULES, Rule
from klineage.proposer.rules.rule import Known
from klineage.skill.card import CHANGES, KINDS, Contract, Kind, Precondition, Probe
from klineage.skill.checks.checking import State, check
from klineage.skill.checks.facts import facts
from klineage.skill.lift.carrier import settings_of
from klineage.skill.lift.citing import Cited
from klineage.skill.lift.groups import Group
from klineage.skill.transitions import Transition

#: Resource -> (sentence, check, words of a sentence that speaks of it already): what a compiler says of a GPU's kernels.
_LIMITS = {
    "shared_bytes": (
        "The shared memory of a block stays within what the device gives one: beyond it the kernel cannot be launched.",
        "shared_bytes <= shared_limit", "shared memory",
    ),
    "registers": (
        "The registers of a thread stay within the register file: beyond its limit values are spilled to memory.",
        "registers <= registers_limit", "register",
    ),
    "spill_bytes": (
        "Nothing is spilled: loads and stores of spilled registers take the place of what is saved.",
        "spill_bytes == 0", "spill",
    ),
}  # fmt: skip
_MUCH = 1.25  # times as much of a resource, from which it is worth a sentence
_LEAST = {"shared_bytes": 4096, "registers": 16, "spill_bytes": 1}


def preconditions_of(group: Group, contract: Contract, cited: Cited) -> tuple[Precondition, ...]:
    """Every precondition that the structure shows, with keys ``p1`` ... in order. No number of an instance is in any."""
    known = [*_of_rule(rule_named(group)), *_of_contract(contract, group, cited)]
    found = [_held_against(one, group, cited) for one in _with_limits(known, group, cited)]
    return tuple(replace(one, key=f"p{number}") for number, one in enumerate(found, start=1))


def _held_against(one: Precondition, group: Group, cited: Cited) -> Precondition:
    """With the transitions that it was there for as its evidence, and doubted where its check fails on one of them.

    A transition on which the check fails speaks against the precondition: the optimization was put on all the same.
    """
    against = [t for t in group.transitions if one.check and answer_before(one.check, t) == "fails"]
    names = ", ".join(t.name for t in against)
    doubt = f"its check fails on {names}, where it was put on all the same" if against else ""
    held = [t.commit for t in group.transitions if t not in against]
    return replace(one, evidence=one.evidence or cited.of(*held), doubt=doubt)


@lru_cache(maxsize=1024)
def answer_before(expression: str, transition: Transition) -> State:
    """What a check says of the state before a transition; of a cache or a core it says unknown, on every machine."""
    kernel, workload = transition.before, transition.workload
    settings = settings_of(transition)
    return check(
        expression, facts(kernel, workload, transition.platform, settings=settings, machine={})
    ).state


def rule_named(group: Group) -> Rule | None:
    """The rule that made a group's transitions; None where others did, or a rule that is no longer there."""
    return next((rule for rule in RULES[group.surface] if rule.name == group.rule), None)


def _of_rule(rule: Rule | None) -> Iterable[Precondition]:
    """The sentences of a rule, with how each can be asked of a target and broken, where the rule knows that."""
    for text in rule.preconditions if rule is not None else ():
        kind, sentence = split_kind(text)
        known = rule.known_of(text) if rule is not None else Known()
        change = next((change for change in CHANGES if change == known.change), None)
        probe = Probe(change, dict(known.settings)) if change is not None else None
        yield Precondition("", kind, sentence, known.check, probe, origin="rule")


def split_kind(text: str) -> tuple[Kind, str]:
    """The kind and the sentence of ``Layout: every row starts at an aligned address.``; hardware where none is named."""
    head, colon, rest = text.partition(":")
    word = "-".join(head.lower().split())
    kind = next((kind for kind in KINDS if kind == word), None)
    if kind is None or not colon:
        return "hardware", text.strip()
    sentence = rest.strip()
    named = "_" in sentence.partition(" ")[0]  # a name of the code stays as it is written
    return kind, sentence if named else sentence[:1].upper() + sentence[1:]


def _of_contract(contract: Contract, group: Group, cited: Cited) -> Iterable[Precondition]:
    """What is required of the kernel: where it is missing the edit could be made on no state."""
    commits = [transition.commit for transition in group.transitions]
    for feature in contract.requires:
        if feature.where != "hardware":
            yield Precondition(
                "", "pipeline",
                f"The kernel has {feature.name} already: the edit could be made on no state without it.",
                f'has("{feature.name}")', Probe("feature", {"name": feature.name}), origin="features", evidence=cited.of(*commits),
            )  # fmt: skip


def _with_limits(known: list[Precondition], group: Group, cited: Cited) -> list[Precondition]:
    """And the limits of the device of which the optimization was seen to need more: as the check and the evidence of a
    sentence that speaks of it already, else as one of their own."""
    found = list(known)
    for name, (text, expression, words) in _LIMITS.items():
        more = [t.commit for t in group.transitions if grew(t, name)]
        if not more:
            continue
        keys = cited.of(*more)
        spoken = [at for at, one in enumerate(found) if words in one.text.lower() and not one.check]
        if spoken:
            found[spoken[0]] = replace(found[spoken[0]], check=expression, evidence=keys)
        else:
            found.append(Precondition("", "storage", text, expression, origin="compile", evidence=keys))
    return found


def grew(transition: Transition, resource: str) -> bool:
    """Whether the compiled kernel needs much more of a resource than the state before, on any platform."""
    for report in transition.comparisons:
        profile = report.stage("profile")
        if profile is not None and profile.counts is not None and profile.baseline_counts is not None:
            after, before = profile.counts.values, profile.baseline_counts.values
            if resource in after and grew_much(resource, before.get(resource, 0), after[resource]):
                return True
    return False


def grew_much(resource: str, before: float, after: float) -> bool:
    """Whether the difference is more than a compiler's mood; anything is, of what is no resource."""
    return after > before * _MUCH and after - before >= _LEAST.get(resource, 0)
