"""A CUDA lineage in the app: shown and proposed for like any other, and no step is taken that nobody judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from klineage.lineage import Workspace
from klineage.platform import detect
from klineage.resources import shipped
from klineage.walk import new_lineage

from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import LineView

from .driving import SIZE, MakeApp, induce, said, text, title, until

EXPERT = shipped("experts") / "add_rmsnorm" / "cuda" / "kernel.cu"
BROADCAST = """// klineage: launch add grid=(rows) block=(32)
#include <cuda_bf16.h>

extern "C" __global__ void add(const __nv_bfloat16 *x, const __nv_bfloat16 *residual, __nv_bfloat16 *residual_out,
                               const __nv_bfloat16 *weight, __nv_bfloat16 *y, int hidden, float eps) {
  const float first = 2.0f * __shfl_sync(0xffffffffu, eps, 0);
  for (int c = threadIdx.x; c < hidden; c += 32) {
    const int at = blockIdx.x * hidden + c;
    residual_out[at] = __float2bfloat16(__bfloat162float(x[at]) + __bfloat162float(residual[at]));
    y[at] = __float2bfloat16(first * __bfloat162float(weight[c]));
  }
}
"""


async def test_the_kernel_is_read_and_no_step_is_taken_unjudged(
    make_app: MakeApp, workspace: Workspace
) -> None:
    name = new_lineage(workspace, EXPERT, "add_rmsnorm")
    app = make_app(name)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(
            lambda: app.screen.query("#kernel-view") and "klineage: launch" in text(app, "#kernel-view")
        )
        await until(lambda: "Drop the launch bounds" in title(app, "#proposal"))
        lines = induce(app).lines_of(induce(app).query_one("#kernel-view", LineView))
        (using,) = [line for line in lines if "using bf16" in line.text]
        assert any(span.role.startswith("syntax-") for span in using.spans)
        if detect().gpu is not None:
            pytest.skip("there is a GPU: benchmarks/gpu/cuda_surface.py judges there")
        await pilot.press("a")
        await until(lambda: said(app))
        await pilot.press("q")
    assert len(workspace.history(name)) == 1


async def test_what_rules_see_and_leave_alone_is_told(
    make_app: MakeApp, workspace: Workspace, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(BROADCAST)
    name = new_lineage(workspace, kernel, "add_rmsnorm")
    app = make_app(name)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(
            lambda: app.screen.query(DiffView) and induce(app).query_one(DiffView).placeholder != "Opening…"
        )
        told = induce(app).query_one(DiffView).placeholder
        assert told.startswith(
            "Rules see 1 mechanism here that they do not take out, warp_exchange: line 6: "
        )
        assert f"klineage propose {name} --all lists them all" in told
        await pilot.press("q")
