"""Every shipped expert, and every honest kernel however odd, passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.gate import GateRequest, Verdict, gate
from klineage.kernel import Kernel
from klineage.platform import detect
from klineage.resources import shipped
from klineage.surface.dispatch import autotune_configs, entry_of, flags_of
from klineage.workload import load

from ..gauntlet.cases import GPU_SURFACES, SUFFIXES, UNRUN, Case, honest
from ..gauntlet.running import QUICK, complaint, decided, judge, workers

HERE = [case for case in honest() if case.surface not in GPU_SURFACES]
EXPERTS = sorted(p for p in shipped("experts").glob("*/*/kernel.*") if p.suffix in SUFFIXES)


def test_there_are_enough_of_them() -> None:
    assert len({case.path for case in honest()}) >= 30


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.id)
def test_an_honest_kernel_passes(case: Case) -> None:
    if case.expected.skip:
        pytest.skip(case.expected.skip)
    if case.language == "triton":
        pytest.importorskip("triton", reason="needs klineage-tui[triton]")
    assert not complaint(case, judge(case))


@pytest.mark.parametrize("path", EXPERTS, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}")
def test_an_expert_passes(path: Path) -> None:
    surface = SUFFIXES[path.suffix]
    if surface == "triton":
        pytest.importorskip("triton", reason="needs klineage-tui[triton]")
    workload, source = load(path.parent.parent), path.read_bytes()
    bare = Kernel(surface, path.name, entry_of(surface, path.name, source, workload), source)
    configs = autotune_configs(bare)
    kernel = Kernel(
        surface, path.name, bare.entry, source, configs[0] if configs else (), flags_of(surface, source)
    )
    platform = "cpu-native" if surface == "c" else "nvidia-sm90"
    report = gate(GateRequest(kernel, workload, platform), fresh=True, policy=QUICK, executor=workers())
    if surface == "cuda" and detect().gpu is None:  # compiled, and ran nowhere
        assert decided(report) == (UNRUN.verdict, UNRUN.stage, *UNRUN.reasons), report.why
    else:
        assert report.verdict is Verdict.PASS, report.why
