"""Starting: sizes, several lineages, themes, and what happens when it cannot start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.walk import new_lineage, open_workspace
from textual.containers import Vertical
from textual.widgets import Static

from klineage_tui import app as app_module
from klineage_tui import cli
from klineage_tui.config import Config
from klineage_tui.palette import ActionProvider
from klineage_tui.screens.help import HelpScreen
from klineage_tui.screens.history import HistoryScreen
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.screens.lineages import LineagesScreen
from klineage_tui.session import Session
from klineage_tui.themes import load_themes
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.too_small import TooSmall

from .driving import MakeApp, loaded, said, title, until


async def test_sizes_from_tiny_to_wide_and_back(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(20, 5)) as pilot:
        await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)

        def visible() -> list[type]:
            return [type(widget) for widget in app.screen.children if widget.display]

        await until(lambda: visible() == [TooSmall])
        assert len(str(app.screen.query_one(TooSmall).render())) <= 2 * 20
        for size, shown in (
            ((80, 24), {"#right"}),
            ((120, 30), {"#kernel", "#right"}),
            ((160, 48), {"#lineage", "#kernel", "#right"}),
            ((20, 5), set()),
            ((80, 24), {"#right"}),
        ):
            await pilot.resize_terminal(*size)
            panes = [app.screen.query_one(name) for name in ("#lineage", "#kernel", "#right")]
            await until(
                lambda panes=panes, shown=shown: {f"#{p.id}" for p in panes if p.size.width} == shown  # type: ignore[misc]
            )


async def test_tabs_at_80x24_reach_every_pane(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(app)
        for view in ("kernel-view", "lineage-view", "diff"):
            await pilot.press("tab")
            assert app.focused is not None
            assert app.focused.id == view
            await until(lambda: app.focused is not None and app.focused.size.height > 3)


async def test_at_80x24_a_gate_is_shown_where_it_runs(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(app)
        await pilot.press("tab", "tab")
        assert app.focused is not None
        assert app.focused.id == "lineage-view"
        await pilot.press("g")
        gate = app.screen.query_one("#gate")
        await until(lambda: gate.size.width)  # the verb's progress is on screen
        await pilot.press("escape")


async def test_at_80x24_help_says_how_to_close_it(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(app)
        await pilot.press("?")
        await until(lambda: isinstance(app.screen, HelpScreen) and app.screen.is_mounted)
        keys = app.screen.query_one(".keys")
        await until(lambda: 0 < keys.region.bottom < 24)
        assert len(str(keys.render())) <= keys.content_size.width
        assert app.screen.query_one(Vertical).region.contains_region(keys.region)


async def test_an_empty_workspace_says_how_to_begin(tmp_path: Path, make_app: MakeApp) -> None:
    open_workspace(tmp_path / "a b", create=True).close()
    app = make_app()
    app.path = tmp_path / "a b"
    async with app.run_test(size=(80, 24)):
        await until(lambda: "klineage new" in str(app.screen.query_one("#welcome", Static).render()))
        assert "-w '" in str(app.screen.query_one("#welcome", Static).render()), "as a shell needs it"


async def test_the_layout_key_always_changes_what_is_shown(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await loaded(app)
        diff = app.screen.query_one(DiffView)
        for _ in range(3):
            before = diff.is_split
            await pilot.press("d")
            assert diff.is_split != before
        await pilot.press("2")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
        other = app.screen.query_one(DiffView)
        assert other.layout_mode == diff.layout_mode


async def test_several_lineages_are_offered_and_the_last_is_remembered(
    make_app: MakeApp, workspace: Workspace
) -> None:
    kernel = shipped("experts") / "add_rmsnorm" / "c" / "kernel.c"
    new_lineage(workspace, kernel, "add_rmsnorm", lineage_id="another")
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await until(lambda: isinstance(app.screen, LineagesScreen) and app.screen._summaries)
        ids = [summary.id for summary in app.screen._summaries]  # type: ignore[attr-defined]
        welcome = str(app.screen.query_one("#welcome", Static).render())
        assert "enter opens one" in welcome
        assert "g gates a proposal" in welcome
        assert f"-w {workspace.path}" in welcome
        await pilot.press("1")
        assert isinstance(app.screen, LineagesScreen), "nothing is open yet, so Induce is closed"
        listed, welcome = app.screen.query_one("#lineages"), app.screen.query_one("#welcome")
        few = listed.outer_size.height
        app.screen._show(app.screen._summaries * 30)
        await until(lambda: listed.outer_size.height > few)
        await until(lambda: welcome.region.bottom == app.screen.size.height - 1)  # above the footer
        await pilot.press("down", "enter")
        await loaded(app)
        assert app.walk is not None
        assert app.walk.id == ids[1]
        await pilot.press("o")
        await until(lambda: isinstance(app.screen, LineagesScreen))
        await until(lambda: all(job.is_finished for job in app.workers))
        await pilot.press()
        chooser = app.screen
        assert isinstance(chooser, LineagesScreen)
        view = chooser.query_one("#lineages", LineView)
        assert view.cursor_row == 1, "the lineage that is open"
        chooser.reload_if_outdated()
        view.move_to(0)
        await until(lambda: all(job.is_finished for job in app.workers))
        await pilot.press()
        assert view.cursor_row == 0, "what was read meanwhile does not take the reader back"
        await pilot.press("2")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
    app = app_module.KlineageApp(
        workspace.path, None, Config(), load_themes(), app_module.load_session(app._session.path)[0]
    )
    async with app.run_test(size=(120, 30)):
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
        await until(lambda: app.walk is not None)
        assert app.walk is not None
        assert app.walk.id == ids[1]


async def test_themes_help_and_palette(make_app: MakeApp) -> None:
    app = make_app(config=Config(theme="no-such-theme"))
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await loaded(app)
        assert "no-such-theme" in said(app)
        seen = {app.theme}
        for _ in app.theme_names():
            await pilot.press("t")
            seen.add(app.theme)
        assert seen == set(app.theme_names())
        await pilot.press("?")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape", "ctrl+p", *"next und", "enter")
        await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)
        await until(lambda: "PROPOSAL 2 of" in title(app, "#proposal"))


async def test_the_palette_finds_what_other_places_do_and_goes_there(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await loaded(app)
        provider = ActionProvider(app.screen)
        found = [hit async for hit in provider.search("ablat")]
        assert [hit.text for hit in found] == ["Ablation in History"], "letters here and there are no match"
        assert found[0].help == "2, then A   Show what each step is worth first, in order and last"
        here = {hit.text: hit.score async for hit in provider.search("undo")}
        assert here["Undo"] > here["Undo in Cards"], "what can be done here comes first"
        await pilot.press("ctrl+p", *"ablation", "enter")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)


async def test_toasts_are_text(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await loaded(app)
        app.screen.notify("[b]x[/b] \x1b]0;title\x07\nsecond", title="\x1b[2J")
        await pilot.pause()
        (toast,) = app._notifications
        assert toast.message == "[b]x[/b] ␛]0;title␇\nsecond"
        assert toast.title == "␛[2J"
        assert not toast.markup


async def test_a_folder_that_is_no_workspace_is_a_sentence(tmp_path: Path, own_folders: Path) -> None:
    app = app_module.KlineageApp(tmp_path, None, Config(), load_themes(), Session(own_folders / "s.json"))
    async with app.run_test():
        await until(lambda: app.return_code == 1)
    assert str(tmp_path) in app.last_words


async def test_a_lineage_that_is_named_opens_in_induce(make_app: MakeApp, workspace: Workspace) -> None:
    app = make_app()
    async with app.run_test() as pilot:
        await loaded(app)
        await pilot.press("2")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
    new_lineage(workspace, shipped("experts") / "softmax" / "c" / "kernel.c", "softmax")
    app = make_app("softmax-c")
    async with app.run_test():
        await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)


def test_an_argument_may_stand_after_the_options(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(workspace.path)
    assert cli.main(["show", "add_rmsnorm-c", "-w", where, "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["number"] == 0


def test_a_missing_folder_is_refused_before_the_screen_changes(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match="no such folder"):
        app_module.run(tmp_path / "missing", None)


async def test_a_defect_ends_with_one_line_and_a_log(
    make_app: MakeApp,
    own_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = make_app()
    with pytest.raises(ZeroDivisionError):
        async with app.run_test(size=(120, 30)) as pilot:
            await loaded(app)
            monkeypatch.setattr(app.screen, "do_skip", lambda: 1 // 0)
            await pilot.press("s")
    assert "internal error (ZeroDivisionError)" in app.last_words
    assert not capsys.readouterr().err, "no traceback, and so no local variables, on the terminal"
    (log,) = own_folders.rglob("crash-*.log")
    assert "1 // 0" in log.read_text(encoding="utf-8")
