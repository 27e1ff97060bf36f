"""Triton kernels through the whole gate without a GPU: interpreted, compiled, counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from klineage.gate import Effect, Policy, Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.workload import Workload

pytest.importorskip("triton", reason="needs klineage-tui[triton]")
pytestmark = pytest.mark.triton

Gate = Callable[..., Report]
PATIENT = Policy()

GOOD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        value = tl.load(x + row * columns + at, mask=mask, other=0.0) * alpha
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=mask, other=0.0), mask=mask)


def rows_entry(x, bias, y, rows, columns, alpha):
    rows_kernel[(rows,)](x, bias, y, columns, alpha, BLOCK=64)
"""


def kernel(text: str = GOOD) -> Kernel:
    return Kernel("triton", "kernel.py", "rows_entry", text.encode())


def changed(old: str, new: str) -> Kernel:
    assert old in GOOD
    return kernel(GOOD.replace(old, new))


def stage(report: Report, name: str) -> StageResult:
    found = report.stage(name)
    assert found is not None
    return found


@pytest.fixture
def interpret(judge: Gate) -> Gate:
    return lambda *values, **named: judge(*values, **{"policy": PATIENT, "platform": "nvidia-sm90", **named})


def test_a_good_kernel_passes_and_its_work_is_counted(interpret: Gate) -> None:
    report = interpret(kernel())
    assert report.verdict is Verdict.PASS, report.why
    assert report.trust is Trust.INTERPRETED
    assert "registers" in stage(report, "compile").summary
    profile = stage(report, "profile")
    assert profile.measurement is None  # counts are no time
    assert profile.counts is not None
    assert profile.counts.values["bytes_stored"] == 8 * 64 * 4
    assert profile.counts.values["programs"] == 8
    assert profile.counts.values["registers"] > 0


def test_counts_are_the_same_whatever_the_seeds(interpret: Gate) -> None:
    first, second = (stage(interpret(kernel()), "profile").counts for _ in range(2))
    assert first == second


def test_loading_twice_is_more_work(interpret: Gate) -> None:
    twice = changed(
        "value = tl.load(x", "tl.store(y + row * columns + at, 0.0, mask=mask)\n        value = tl.load(x"
    )
    profile = stage(interpret(twice, baseline=kernel()), "profile")
    assert profile.effect is Effect.MORE_WORK, profile
    assert profile.summary.startswith("counts, not time: bytes 1.")
    assert stage(interpret(kernel(), baseline=twice), "profile").effect is Effect.LESS_WORK
    same = changed("    row = tl.program_id(0)\n", "    row = tl.program_id(0)  # a remark\n")
    assert stage(interpret(same, baseline=kernel()), "profile").effect is Effect.SAME_WORK


@pytest.mark.parametrize(
    ("old", "new", "name", "reason"),
    [
        ("* alpha", "* 1.25", "correctness", "mismatch"),
        ("(rows,)", "(rows - 1,)", "correctness", "unwritten"),
        ("mask = at < columns", "mask = at < columns + 1", "correctness", "out_of_bounds"),
        ("BLOCK=64", "BLOCK=63", "compile", "compile_error"),
        ("    rows_kernel[(rows,)](x", "    rows_kernle[(rows,)](x", "compile", "entry_raised"),
    ],
)
def test_wrong_kernels_fail_where_they_are_wrong(
    old: str, new: str, name: str, reason: str, interpret: Gate
) -> None:
    report = interpret(changed(old, new))
    result = stage(report, name)
    assert (result.verdict, result.reason) == (Verdict.FAIL, reason), result
    if name == "correctness":
        assert result.case is not None


def test_a_spinning_kernel_is_stopped(interpret: Gate) -> None:
    spin = changed("    for start in range(0, columns, BLOCK):", "    start = 0\n    while start < columns:")
    result = stage(interpret(spin, policy=replace(PATIENT, run_seconds=2)), "correctness")
    assert (result.verdict, result.reason) == (Verdict.TIMEOUT, "timeout"), result


def test_shared_memory_beyond_the_platform_fails(interpret: Gate, rows: Workload) -> None:
    source = """\
import triton
import triton.language as tl


@triton.jit
def product(x, y, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, 128)
    k = tl.arange(0, BLOCK)
    total = tl.zeros((128, 128), tl.float32)
    for start in tl.range(0, columns, BLOCK, num_stages=5):
        a = tl.load(x + i[:, None] * columns + (start + k)[None, :])
        b = tl.load(x + i[None, :] * columns + (start + k)[:, None])
        total += tl.dot(a, b)
    tl.store(y + i[:, None] * columns + i[None, :], total)


def rows_entry(x, y, rows, columns):
    product[(1,)](x, y, rows, columns, BLOCK=64, num_warps=8)
"""
    result = stage(interpret(kernel(source)), "compile")
    assert (result.verdict, result.reason) == (Verdict.FAIL, "shared_memory"), result
    assert "nvidia-sm90" in result.summary


def test_without_triton_it_is_unsupported_and_says_why(
    interpret: Gate, monkeypatch: pytest.MonkeyPatch, executor: object
) -> None:
    monkeypatch.setattr(type(executor), "versions", lambda *_: {"python": "3.11", "numpy": "2", "torch": "2"})
    report = interpret(kernel())
    assert report.verdict is Verdict.UNSUPPORTED
    assert "pip install" in report.why
