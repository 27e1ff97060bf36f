"""The lineage at the left, as a strip, and in the heading."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from klineage.walk import Walk, WalkState

from klineage_tui.presentation.walk import WalkColumn, heading, strip_line

from . import a_lineage


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> WalkState:
    workspace = a_lineage.make(tmp_path_factory.mktemp("lineage"))
    return Walk(workspace, "gemm").state()


def test_column(state: WalkState) -> None:
    column = WalkColumn(state, 28)
    lines = [column.line(row) for row in range(len(column))]
    assert [line.text.rstrip() for line in lines] == [
        "○ 0 expert          0.192 ms",
        "│  - evict           neutral",
        "○ 1                 0.193 ms",
        "│  - l2_raster         1.26x",
        "○ 2                 0.243 ms",
        "├─ x split_k FAIL",
        "├─ x mma NO",
        "│  - pipeline          1.77x",
        "○ 3                 0.431 ms",
        "│  - autotune          42.7x",
        "● 4 here             18.4 ms",
    ]
    assert column.here == 10
    here, removal = column.step(10), column.step(9)
    assert here is not None and here.commit == state.head.commit
    assert removal is None and not column.selectable(9)
    assert {step.decision for step in map(column.step, (5, 6)) if step} == {"rejected"}
    assert all(len(line.text) <= 28 for line in lines)


@pytest.mark.parametrize("cells", [20, 40, 60, 90])
def test_strip_keeps_the_end(state: WalkState, cells: int) -> None:
    text = strip_line(state, cells).text
    assert text.endswith("● 4 here   2 rejected")
    assert text.startswith("○ 0 expert" if cells == 90 else "…")


def test_strip_of_a_long_walk_looks_at_its_end_only(state: WalkState) -> None:
    class Guarded(tuple):  # type: ignore[type-arg]
        def __getitem__(self, index):  # type: ignore[no-untyped-def]
            assert index == -1 or index > 4900
            return super().__getitem__(index)

    steps = Guarded(replace(state.steps[1], commit=str(n), number=n) for n in range(5000))
    assert "● 4999 here" in strip_line(replace(state, steps=steps), 80).text


def test_heading_multiplies_only_what_was_timed(state: WalkState, tmp_path: Path) -> None:
    assert heading(state) == (
        "gemm triton nvidia-sm90",
        "4 steps  ≈95.2x the expert's time  sealed",
    )
    counted = Walk(a_lineage.make(tmp_path, sealed=False, timed=False), "gemm").state()
    assert heading(counted)[1] == "4 steps"
