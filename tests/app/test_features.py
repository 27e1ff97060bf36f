"""The features of the current kernel in the app: the lines that show them, and one key for what is unknown."""

from __future__ import annotations

from klineage.walk import Walk
from textual.widgets import Static

from klineage_tui.app import KlineageApp
from klineage_tui.screens.features import FeaturesScreen
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.source_view import SourceView
from klineage_tui.widgets.title_row import TitleRow

from ..messages_server import MessagesServer, Reply
from .driving import MakeApp, loaded, said, until


def screen(app: KlineageApp) -> FeaturesScreen:
    assert isinstance(app.screen, FeaturesScreen)
    return app.screen


def rows(app: KlineageApp) -> list[str]:
    view = screen(app).query_one("#features-list", LineView)
    return [view.document.line(row).text for row in range(len(view.document))]


async def test_features_point_at_their_lines_and_an_unknown_is_settled_by_a_key(
    make_app: MakeApp, walk: Walk
) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(app)
        await pilot.press("f")
        await until(lambda: isinstance(app.screen, FeaturesScreen) and rows(app))
        view = screen(app).query_one("#features-list", LineView)
        source = screen(app).query_one("#features-source", SourceView)

        simd = next(f for f in walk.findings() if f.name == "simd")
        view.move_to(next(i for i, row in enumerate(rows(app)) if " simd " in row))
        await until(lambda: source.marked == frozenset(line - 1 for line in simd.lines))
        top = source.scroll_offset.y
        assert top <= simd.lines[0] - 1 < top + source.size.height

        await pilot.press("p")
        assert "the detectors are certain" in said(app)
        view.move_to(next(i for i, row in enumerate(rows(app)) if " fusion " in row))
        await pilot.press("p")
        await until(lambda: any("PRESENT" in r and "fusion" in r and "settled by" in r for r in rows(app)))
        before = screen(app).query_one("#features-title", TitleRow).text
        await pilot.press("a")
        await until(lambda: any("ABSENT" in r and "fusion" in r and "settled by" in r for r in rows(app)))
        assert screen(app).query_one("#features-title", TitleRow).text != before

        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)
        assert [(s.feature.name, s.state) for s in walk.state().settled] == [("fusion", "absent")]
        await until(lambda: walk.state().can_undo.startswith("settle"))
        await pilot.press("u")
        await until(lambda: [s.state for s in walk.state().settled] == ["present"])


async def test_a_model_is_asked_about_the_unknown_and_settles_nothing(
    make_app: MakeApp, walk: Walk, messages: MessagesServer
) -> None:
    unknown = [f for f in walk.findings() if f.state == "unknown"]
    first = walk.state().kernel.text.splitlines().index("#include <math.h>") + 1
    cited = [{"line": first, "quote": "#include <math.h>"}]
    wrong = [{"line": 1, "quote": "no such text"}]
    said_of = {"fusion": ("absent", cited), "precision": ("present", wrong)}
    answers = [
        {"mechanism": f.name, "place": f.locus, "state": state, "why": "one\x1b[31m pass", "citations": lines}
        for f in unknown
        if f.name in said_of
        for state, lines in [said_of[f.name]]
    ]
    messages.say(Reply({"answers": answers}))
    app = make_app()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(app)
        await pilot.press("f")
        await until(lambda: isinstance(app.screen, FeaturesScreen) and rows(app))
        await pilot.press("m", "enter")
        await until(lambda: any("a model says absent" in row for row in rows(app)))
        assert any("precision" in row and "UNSUPPORTED" in row for row in rows(app))
        view = screen(app).query_one("#features-list", LineView)
        view.move_to(next(i for i, row in enumerate(rows(app)) if " fusion " in row))
        why = screen(app).query_one("#features-why", Static)
        await until(lambda: f"says absent (cites line {first}): one␛[31m pass" in str(why.render()))
        assert first - 1 in screen(app).query_one("#features-source", SourceView).marked
        assert walk.state().settled == ()
        await pilot.press("a")
        await until(lambda: any("fusion" in row and "settled by" in row for row in rows(app)))
    assert len(messages.requests) == 1
