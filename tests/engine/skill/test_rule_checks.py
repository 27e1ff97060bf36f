"""What rules know of their preconditions: checks that can be asked, and probes that break something."""

from __future__ import annotations

import pytest
from klineage.gate.counts import MECHANISMS
from klineage.proposer.rules import RULES, Rule
from klineage.skill.checks import check, problem
from klineage.skill.checks.facts import facts
from klineage.skill.probe import SETTINGS
from klineage.walk.opening import experts
from klineage.walk.reading import read_kernel
from klineage.workload import load

_ASKED = ("add_rmsnorm-c", "gemm-c", "layernorm-c", "fmha-triton", "gemm-triton", "add_rmsnorm-cuda")
EVERY = [(rule, kind) for rules in RULES.values() for rule in rules for kind in rule.known]


@pytest.mark.parametrize(("rule", "kind"), EVERY, ids=lambda x: x.name if isinstance(x, Rule) else x)
def test_what_a_rule_knows_belongs_to_one_of_its_preconditions_and_can_be_asked(
    rule: Rule, kind: str
) -> None:
    own = [text for text in rule.preconditions if text.startswith(f"{kind}:")]
    assert len(own) == 1
    known = rule.known_of(own[0])
    assert known is rule.known[kind]
    assert known.check or known.change
    assert not known.check or problem(known.check) == ""
    if known.change:
        allowed = {*SETTINGS[known.change], "code"}
        assert set(known.settings) <= allowed
        complete = set(SETTINGS[known.change]) <= set(known.settings)
        assert complete or known.check, "what is left open is chosen from the check"
        assert known.settings.get("code", "mma") in MECHANISMS


def test_kinds_name_preconditions_of_a_rule_without_doubt() -> None:
    for rules in RULES.values():
        for rule in rules:
            kinds = [text.partition(":")[0] for text in rule.preconditions]
            assert len(set(kinds)) == len(kinds), rule.name
            assert rule.known_of("no sentence of a rule").check == ""


def test_checks_of_rules_never_fail_where_the_rule_is_seen_at_work() -> None:
    """A check that fails on the very expert that the mechanism was written for would keep its card from everybody."""
    asked = 0
    for expert in (e for e in experts() if e.id in _ASKED):
        workload = load(expert.workload)
        kernel = read_kernel(expert.path, workload)
        for rule in RULES[kernel.surface]:
            for site in rule.detect(kernel):
                target = facts(
                    kernel,
                    workload,
                    "cpu-x86-64-v4" if kernel.surface == "c" else "nvidia-sm90",
                    settings=site.settings,
                    machine={"cores": 8, "cache_1": 32 << 10, "cache_2": 1 << 20},
                )
                for kind, known in rule.known.items():
                    if known.check:
                        answer = check(known.check, target)
                        assert answer.state != "fails", (expert.id, rule.name, kind, known.check, answer.why)
                        asked += answer.state == "holds"
    assert asked > 20
