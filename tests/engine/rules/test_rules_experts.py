"""Every shipped expert: rules take at least four steps from it, and put each one back to the byte."""

from __future__ import annotations

import re
import shutil
import subprocess

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
SHIPPED = [e for e in experts() if e.workload not in ELSEWHERE or e.id == "fmha-cuda"]


def test_there_are_more_experts_than_those_with_tests_of_their_own() -> None:
    assert len(SHIPPED) >= 4


def kernel_of(expert) -> Kernel:
    workload, source, name = load(expert.workload), expert.path.read_bytes(), expert.path.name
    bare = Kernel(expert.surface, name, entry_of(expert.surface, name, source, workload), source)
    configs, flags = autotune_configs(bare), flags_of(expert.surface, source)
    return Kernel(expert.surface, name, bare.entry, source, configs[0] if configs else (), flags)


@pytest.mark.parametrize("expert", SHIPPED, ids=lambda expert: expert.id)
def test_rules_walk_it_and_put_every_step_back(expert, first_walk) -> None:
    steps = first_walk(kernel_of(expert))
    assert len(steps) >= 4, [c.title for _, c in steps]
    for state, candidate in steps:
        settings = candidate.settings
        restored = derive(candidate.proposer, after(state, candidate), candidate.locus, settings)
        assert restored == state.source or candidate.action in WRITTEN_ANEW, candidate.proposer


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize(("workload", "registers"), [("fmha", (168,)), ("conv2d", range(64, 169))])
def test_every_state_in_cuda_compiles_within_the_registers_of_its_launch(
    workload, registers, first_walk, tmp_path
) -> None:
    """Three warpgroups share 65,536 registers: 168 a thread, of attention's before they trade, and products that nothing makes wait."""
    expert = next(e for e in experts() if e.id == f"{workload}-cuda")
    steps = first_walk(kernel_of(expert))
    for number, state in enumerate([steps[0][0], *(after(*step) for step in steps)]):
        source = tmp_path / f"{number}.cu"
        source.write_bytes(state.source)
        target = ["-gencode=arch=compute_90a,code=sm_90a", "-O3", "-Xptxas", "-v", "-cubin"]
        command = ["nvcc", *target, "-o", str(tmp_path / "k.cubin"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told = done.stderr[done.stderr.index(f"entry function '{workload}_kernel'") :]
        used = re.search(r"(\d+) bytes spill stores.*?Used (\d+) registers", told, re.DOTALL)
        assert used is not None
        assert (int(used[1]), int(used[2]) in registers) == (0, True)
        assert "C7510" not in done.stderr, "products wait for each other"
