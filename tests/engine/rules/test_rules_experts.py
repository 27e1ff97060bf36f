"""Every shipped expert: rules take at least four steps from it, and put each one back to the byte."""

from __future__ import annotations

import pytest
from klineage.kernel import Kernel
from klineage.proposer.rules import after, derive
from klineage.surface.dispatch import autotune_configs, entry_of, flags_of
from klineage.walk.opening import experts
from klineage.workload import load

#: What is written anew when it is put back, and must then pass the gate against what was there.
WRITTEN_ANEW = ("layout_pack",)
#: These have tests of their own, over every order of their steps.
ELSEWHERE = ("gemm", "fmha", "add_rmsnorm")
SHIPPED = [expert for expert in experts() if expert.workload not in ELSEWHERE]


def test_there_are_more_experts_than_those_with_tests_of_their_own() -> None:
    assert len(SHIPPED) >= 4


@pytest.mark.parametrize("expert", SHIPPED, ids=lambda expert: expert.id)
def test_rules_walk_it_and_put_every_step_back(expert, first_walk) -> None:
    workload, source, name = load(expert.workload), expert.path.read_bytes(), expert.path.name
    bare = Kernel(expert.surface, name, entry_of(expert.surface, name, source, workload), source)
    configs, flags = autotune_configs(bare), flags_of(expert.surface, source)
    kernel = Kernel(expert.surface, name, bare.entry, source, configs[0] if configs else (), flags)
    steps = first_walk(kernel)
    assert len(steps) >= 4, [c.title for _, c in steps]
    for state, candidate in steps:
        settings = candidate.settings
        restored = derive(candidate.proposer, after(state, candidate), candidate.locus, settings)
        assert restored == state.source or candidate.action in WRITTEN_ANEW, candidate.proposer
