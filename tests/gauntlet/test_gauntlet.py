"""Every cheat is refused, at the stage and with the reason that name it."""

from __future__ import annotations

import pytest
from klineage.gate import Report

from . import table
from .cases import GPU_SURFACES, Case, cheats
from .running import complaint, judge

CASES = [case for case in cheats() if case.surface not in GPU_SURFACES]


def test_every_cheat_says_what_it_is() -> None:
    assert len({case.id for case in cheats()}) == len(cheats())
    assert all(case.catalogue and case.title and str(case.expected) for case in cheats())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_cheat_is_refused(case: Case) -> None:
    if case.expected.skip:
        pytest.skip(case.expected.skip)
    if case.language == "triton":
        pytest.importorskip("triton", reason="needs klineage-tui[triton]")
    report: Report = judge(case)
    assert not complaint(case, report)


@pytest.mark.parametrize(
    "case", [case for case in cheats() if case.surface in GPU_SURFACES], ids=lambda case: case.id
)
def test_a_cheat_on_a_gpu(case: Case) -> None:
    pytest.skip("needs a GPU: benchmarks/gpu/gauntlet.py runs it there")


def test_the_table_in_the_documentation_is_current() -> None:
    text = table.DOCUMENT.read_text(encoding="utf-8")
    assert text == table.placed(text), "run python -m tests.gauntlet --write"
