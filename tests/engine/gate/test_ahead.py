"""A first gate on a GPU compiles before torch is there; what is judged is compiled as ever, and finds that."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import POLICY, GateRequest, Verdict, interpreted
from klineage.gate.session import Session
from klineage.kernel import Kernel
from klineage.platform import Gpu
from klineage.worker.buffers import Slot
from klineage.worker.triton_ahead import StandIn
from klineage.workload import Workload, parse

pytest.importorskip("triton", reason="needs klineage-tui[triton]")
pytestmark = pytest.mark.triton

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, bias, y, columns, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0) * alpha
        tl.store(y + row * columns + at, value + tl.load(bias + at, mask=at < columns, other=0.0), mask=at < columns)


def rows_entry(x, bias, y, rows, columns, alpha):
    assert x.is_contiguous() and x.stride(0) == columns
    rows_kernel[(x.shape[0],)](x, bias, y, x.size(1), alpha, BLOCK=64)
"""


class Watched(LocalExecutor):
    """Notes, for each job of a compile, what Triton's cache held before and after it."""

    def __init__(self, environment: dict[str, str], cache: Path) -> None:
        super().__init__(environment)
        self.cache = cache
        self.jobs: list[tuple[str, str, set[Path], set[Path]]] = []

    def submit(self, kind: str, job: dict[str, Any], *rest: Any, **more: Any) -> dict[str, Any]:
        before = self.files()
        answer = super().submit(kind, job, *rest, **more)
        self.jobs.append((kind, job["op"], before, self.files()))
        return answer

    def files(self) -> set[Path]:
        return {path for path in self.cache.rglob("*") if path.is_file()}


@pytest.fixture
def watched(cache_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    executor = Watched(dict(os.environ), tmp_path / "triton")
    yield executor
    executor.close()


def session(executor: LocalExecutor, workload: Workload, text: str = KERNEL) -> Session:
    """A gate of a kernel on a machine with a GPU, as far as the compile stage can tell."""
    kernel = Kernel("triton", "kernel.py", "rows_entry", text.encode())
    made = Session(GateRequest(kernel, workload, "nvidia-sm90"), POLICY, (1,), executor, None, None)
    gpu = Gpu("H200", "nvidia-sm90", 1, "1")
    made.asked = replace(executor.machine(), gpu=gpu, gpus=(gpu,))
    return made


def test_the_first_compile_finds_all_that_it_needs_in_the_cache(watched: Watched, rows: Workload) -> None:
    gated = session(watched, rows)
    first = interpreted.compile_kernel(gated)
    assert first.verdict is Verdict.PASS, first.summary
    (_, ahead, empty, made), (kind, real, found, after) = watched.jobs
    assert (ahead, kind, real) == ("compile_ahead", "compiler", "compile_triton")
    assert not empty
    assert any(path.suffix == ".cubin" for path in made)
    assert made == found == after
    again = interpreted.compile_kernel(session(watched, rows))
    assert again == first
    assert [job[1] for job in watched.jobs[2:]] == ["compile_triton"]  # the worker is there already
    alone = session(watched, rows)
    with interpreted._compile_ahead(alone, []):
        assert not alone.layers
    assert alone.layers == gated.layers, "its children are as confined as those that are judged, and told of"


@pytest.mark.parametrize("where", ["kernel", "workload"])
def test_a_file_that_names_torch_waits_for_it(executor: LocalExecutor, rows: Workload, where: str) -> None:
    workload = parse(rows.source + b"\n\nimport torch\n", name=rows.name, path=rows.path)
    text = "import torch\n" + KERNEL
    asked = session(executor, rows, text) if where == "kernel" else session(executor, workload)
    with interpreted._compile_ahead(asked, []):
        assert not executor.runs("native")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("type_", ["fp32", "bf16", "int64", "uint8"])
def test_a_stand_in_says_what_a_tensor_says(type_: str) -> None:
    import torch
    from klineage.worker.runners import view

    size = {"fp32": 4, "bf16": 2, "int64": 8, "uint8": 1}[type_] * 30
    slot = Slot("x", type_, (2, 3, 5), 4096 + 16, size)
    tensor, other = view(torch.empty(slot.end, dtype=torch.uint8), slot), StandIn(slot)
    assert (other.shape, other.ndim, str(other.dtype)) == (tensor.shape, tensor.ndim, str(tensor.dtype))
    assert StandIn(slot).dtype == other.dtype, "host code compares them"
    assert {other.dtype: 1}[StandIn(slot).dtype] == 1
    for name in ("numel", "element_size", "dim", "size", "stride", "is_contiguous"):
        assert getattr(other, name)() == getattr(tensor, name)(), name
    assert [other.stride(n) for n in (0, 1, -1)] == [tensor.stride(n) for n in (0, 1, -1)]
    assert [other.size(n) for n in (0, 1, -1)] == [tensor.size(n) for n in (0, 1, -1)]
    assert other.data_ptr() % 16 == tensor.data_ptr() % 16
