"""The app asks before it runs the code of a lineage that came from elsewhere."""

from __future__ import annotations

import shutil

from klineage.walk import Walk, trust

from klineage_tui.screens.dialog import Confirm

from .driving import SIZE, MakeApp, gated, induce, loaded, text, until


async def test_a_foreign_lineage_is_asked_for_once(make_app: MakeApp, walk: Walk) -> None:
    shutil.rmtree(trust.folder())
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await loaded(app)
        await pilot.press("g")
        await until(lambda: isinstance(app.screen, Confirm) and app.screen.is_mounted)
        await pilot.press("escape")
        await until(lambda: app.screen is induce(app))
        assert induce(app)._run is None
        assert not walk.trusted()
        await pilot.press("g")
        await until(lambda: isinstance(app.screen, Confirm) and app.screen.is_mounted)
        await pilot.press("y")
        await until(lambda: "accepts it" in text(app, "#gate-view"))
        assert walk.trusted()
        await pilot.press("]")
        await gated(app, pilot)
