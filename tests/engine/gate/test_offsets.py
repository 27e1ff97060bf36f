"""Buffers that begin off an aligned address, as a workload may ask with OFFSETS."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.gate import Report, Verdict
from klineage.kernel import Kernel
from klineage.worker.problem import load as run
from klineage.workload import Workload, parse

Gate = Callable[..., Report]
MakeC = Callable[..., Kernel]

PROMISED = """
  typedef float wide __attribute__((vector_size(32), may_alias));
  volatile wide first = *(const wide *)__builtin_assume_aligned(x, 32);
  (void)first;"""


@pytest.fixture
def shifted(rows: Workload) -> Callable[[str], Workload]:
    def make(offsets: str) -> Workload:
        source = rows.source + f"\nOFFSETS = {offsets}\n".encode()
        return parse(source, name=rows.name, path=Path("mine/workload.py"))

    return make


def test_a_promise_of_alignment_breaks_on_a_shifted_base_and_the_plain_kernel_does_not(
    judge: Gate, c: MakeC, shifted: Callable[[str], Workload]
) -> None:
    workload = shifted('{"x": 4}')
    plain, promised = c(), c(PROMISED)
    assert judge(promised).verdict is Verdict.PASS
    assert judge(plain, workload).verdict is Verdict.PASS
    broken = judge(promised, workload)
    assert broken.verdict is Verdict.FAIL, broken.log
    assert broken.decisive is not None and broken.decisive.stage == "correctness"


def test_every_buffer_begins_as_far_off_as_asked_in_both_placements(
    shifted: Callable[[str], Workload],
) -> None:
    workload = shifted('{"x": 4, "y": 40}')
    problem = run(workload.source, str(workload.path), "fp32")
    for second in (False, True):
        slots, total = problem.layout(workload.sizes["ragged"], second)
        assert {s.name: s.offset % 4096 for s in slots} == {"x": 4, "bias": 0, "y": 40}
        ends = sorted((s.offset, s.end) for s in slots)
        gaps = [after[0] - before[1] for before, after in pairwise(ends)]
        assert min(gaps) >= 4096 and total - ends[-1][1] >= 4096, "a guard zone became narrower"


@pytest.mark.parametrize("offsets", ["4", '{"x": 4096}', '{"x": -4}', '{"x": "4"}', '{"x": True}'])
def test_offsets_that_make_no_sense_are_refused_by_name(
    shifted: Callable[[str], Workload], offsets: str
) -> None:
    with pytest.raises(KlineageError, match="OFFSETS must map buffers to numbers of bytes"):
        shifted(offsets)


def test_half_an_element_is_the_workloads_fault_and_not_the_kernels(
    judge: Gate, c: MakeC, shifted: Callable[[str], Workload]
) -> None:
    for offsets in ('{"x": 2}', '{"z": 4}'):
        report = judge(c(), shifted(offsets))
        assert report.verdict is Verdict.ERROR
        assert "OFFSETS shifts" in report.why
