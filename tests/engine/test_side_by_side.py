"""benchmarks/gpu/kernelbench.py without a GPU: what it writes for KernelBench, and how it reads and counts answers."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from klineage.workload import load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "side_by_side", ROOT / "benchmarks" / "gpu" / "kernelbench.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["side_by_side"] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


ANSWER = {"compiled": True, "correctness": True, "runtime": 2.0, "ref_runtime": 3.0, "metadata": {}}


@pytest.mark.parametrize(
    ("changed", "said", "accepts"),
    [
        ({}, "correct, 1.50x its reference", True),
        ({"runtime": -1.0}, "correct, not timed", True),
        ({"runtime": 0.2, "metadata": {"excessive_speedup": True}}, "flagged: 15.0x its reference", False),
        ({"correctness": False}, "wrong", False),
        ({"compiled": False, "correctness": False}, "does not compile", False),
        ({"refused": ["a try block"]}, "refused by its static check", False),
    ],
)
def test_what_kernelbench_said(
    program: ModuleType, changed: dict[str, object], said: str, accepts: bool
) -> None:
    words = program.their_words({**ANSWER, **changed})
    assert words == said
    assert program.Row("k", honest=True, theirs=words).theirs_right == accepts
    assert program.Row("k", honest=False, theirs=words).theirs_right != accepts


def test_what_gave_no_verdict_counts_for_nobody(program: ModuleType) -> None:
    rows = [
        program.Row("good", True, "correct, 1.00x its reference", 10.0, "pass, measured-gpu", 1.0),
        program.Row("fooled", False, "correct, 2.00x its reference", 12.0, "fail static host_compute", 0.5),
        program.Row("both", False, "wrong", 11.0, "timeout correctness hang", 2.0),
        program.Row("broken", False, "wrong", 9.0, "error correctness died", 2.0),
        program.Row("late", False, "no answer within 90 s", 90.0, "fail correctness mismatch", 1.0),
        program.Row("lost", True, "wrong", 5.0, "broke: a file is missing", 0.0),
    ]
    text = program.table(rows)
    assert "KernelBench: 2 of 3 cheats refused, 1 of 1 honest kernels accepted, median 11.0 s" in text
    assert "klineage: 2 of 3 cheats refused, 1 of 1 honest kernels accepted, median 2.0 s" in text
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert "correct, 2.00x its reference !" in lines["fooled"]
    assert "error correctness died !" in lines["broken"]
    assert "!" not in lines["late"] + lines["lost"]


@pytest.mark.parametrize("number", range(11))
def test_every_candidate_becomes_two_programs(program: ModuleType, number: int) -> None:
    name, where, _ = program.CASES[number]
    assert len(program.CASES) == 11
    folder = ROOT / where if "/" in where else program.GAUNTLET / "workloads" / where
    workload = load(folder)
    reference, solution = program.pair(ROOT / name, "entry", workload, workload.element["triton"])
    for text, wanted in ((reference, {"Model", "get_inputs", "get_init_inputs"}), (solution, {"ModelNew"})):
        names = {getattr(node, "name", "") for node in ast.parse(text).body}
        assert wanted <= names
    assert str(workload.path) in reference
    assert (ROOT / name).read_text() in solution
