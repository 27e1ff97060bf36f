"""A short soak: benchmarks/soak.py runs the long one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from klineage.gate import Verdict

SOAK = Path(__file__).parents[3] / "benchmarks" / "soak.py"


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_forty_gates_leave_nothing_and_lose_nothing(soak: ModuleType) -> None:
    outcome = soak.soak(40, seed=7)
    assert outcome.problems == []
    assert sum(outcome.counts.values()) == 40
    assert any(name.startswith("good / none: pass") for name in outcome.counts)


def test_the_soak_would_notice(soak: ModuleType, tmp_path: Path) -> None:
    rows = soak._workload(tmp_path)
    workers = soak.LocalExecutor()
    try:
        wrong = next(kind for kind in soak.KINDS if kind.name == "wrong")
        report = soak.gate(
            soak._request(wrong, rows, "x"), fresh=True, keep=False, policy=soak.POLICY, executor=workers
        )
    finally:
        workers.close()
    assert report.verdict is Verdict.FAIL
    assert soak._right(wrong, "none", report)
    assert not soak._right(soak.KINDS[0], "none", report)
    assert not soak._right(soak.KINDS[0], "cancel", report)
