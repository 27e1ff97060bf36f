"""A CUDA lineage in the app: shown like any other, with nothing to propose yet and no step unjudged."""

from __future__ import annotations

from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.walk import new_lineage

from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import LineView

from .driving import SIZE, MakeApp, induce, said, text, until

EXPERT = shipped("experts") / "add_rmsnorm" / "cuda" / "kernel.cu"


async def test_the_kernel_is_read_and_nothing_is_offered(make_app: MakeApp, workspace: Workspace) -> None:
    name = new_lineage(workspace, EXPERT, "add_rmsnorm")
    app = make_app(name)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(
            lambda: app.screen.query("#kernel-view") and "klineage: launch" in text(app, "#kernel-view")
        )
        await until(lambda: "No rule sees" in induce(app).query_one(DiffView).placeholder)
        lines = induce(app).lines_of(induce(app).query_one("#kernel-view", LineView))
        (using,) = [line for line in lines if "using bf16" in line.text]
        assert any(span.role.startswith("syntax-") for span in using.spans)
        await pilot.press("a")
        await until(lambda: said(app))
        await pilot.press("q")
    assert len(workspace.history(name)) == 1
