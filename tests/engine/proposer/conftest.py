"""A small kernel that models are asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from klineage.kernel import Kernel
from klineage.proposer.base import Task
from klineage.resources import shipped
from klineage.workload import load

SOURCE = b"""\
static float total(const float *x, long n) {
  float s = 0;
  for (long i = 0; i < n; i++) s += x[i];
  return s;
}

void rows(const float *restrict x, float *restrict y, long rows, long n) {
  for (long r = 0; r < rows; r++) y[r] = total(x + r * n, n);
}
"""
KERNEL = Kernel("c", "kernel.c", "rows", SOURCE)
SIMPLER = SOURCE.replace(b"*restrict ", b"*")


@pytest.fixture
def task() -> Callable[..., Task]:
    """``task(...)``: a task about ``KERNEL``, with some of it changed."""
    workload = load(str(shipped("experts") / "gemm" / "workload.py"))
    return lambda **changes: replace(Task(KERNEL, workload, "cpu-x86-64"), **changes)


@pytest.fixture
def good() -> dict[str, Any]:
    """A good answer to a task about ``KERNEL``: its pointers may overlap."""
    return {
        "decision": "propose",
        "rationale": "The compiler may keep what it has loaded; without the promise it loads again.",
        "title": "Let the pointers overlap",
        "action": "restrict",
        "locus": "kernel.c::rows",
        "removes": ["kernel.c::rows / restrict"],
        "settings": [{"name": "pointers", "value": "2"}],
        "preconditions": ["Storage: x and y must not overlap, or stores are lost."],
        "source": SIMPLER.decode(),
        "edits": [],
    }
