"""The views of lines: what reaches the terminal, where the cursor goes, and what a move costs."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from klineage_tui.text.diff import Op
from klineage_tui.text.line import compose
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.source_view import SourceView

from .driving import until

HOSTILE = "x = '\x1b[31m\x9b2J\u202e'\t# tab\r\n" + "你" * 3 + "⚠\ufe0f\u200d\n" + "y" * 10_000 + "\nlast"


class OneView(App[None]):
    def __init__(self, view: LineView) -> None:
        super().__init__()
        self.view = view

    def compose(self) -> ComposeResult:
        yield self.view


@asynccontextmanager
async def showing(view: LineView, size: tuple[int, int] = (60, 12)) -> AsyncIterator[Pilot[Any]]:
    async with OneView(view).run_test(size=size) as pilot:
        view.focus()
        await pilot.pause()
        yield pilot


def drawn(view: LineView) -> list[str]:
    return [view.render_line(y).text for y in range(view.size.height)]


def test_lines_know_their_cells() -> None:
    lines = Lines([compose("你好", gutter=((" 1 ", ""),)), compose("abc")])
    assert (lines.width, lines.gutter_width, len(lines)) == (4, 3, 2)


async def test_hostile_source_is_seen_and_not_obeyed() -> None:
    view = SourceView()
    async with showing(view):
        view.show_source(HOSTILE, "kernel.py")
        for x in (0, 1, 9_990):
            view.scroll_to(x=x, animate=False)
            for text in drawn(view):
                assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in text)
        view.scroll_to(x=0, animate=False)
        assert "␛[31m‹9b›2J‹202e›" in drawn(view)[0]
        assert "␍" in drawn(view)[0]
        assert "‹no newline›" in drawn(view)[3]
        assert drawn(view)[2].rstrip().endswith("›")


@pytest.mark.parametrize("width", [7, 20, 61])
async def test_every_row_fills_exactly_the_width(width: int) -> None:
    view = DiffView(layout_mode="split")
    async with showing(view, (width, 12)):
        new = HOSTILE.replace("y" * 10_000, "z你" * 2_000)
        ops = [Op("equal", 0, 2, 0, 2), Op("replace", 2, 3, 2, 3), Op("equal", 3, 4, 3, 4)]
        view.show_diff(HOSTILE, new, ops, "kernel.py")
        for x in (0, 1, 2, 33):
            view.scroll_to(x=x, animate=False)
            for y in range(view.size.height):
                assert view.render_line(y).cell_length == view.size.width
        view.layout_mode = "unified"
        for y in range(view.size.height):
            assert view.render_line(y).cell_length == view.size.width


async def test_the_cursor_rests_only_where_it_may() -> None:
    view = LineView(Lines([compose(str(i)) for i in range(9)], frozenset({1, 4, 7})))
    async with showing(view) as pilot:
        rows = []
        view.show(view.document)
        for key in ("down", "down", "down", "up", "home", "end"):
            await pilot.press(key)
            rows.append(view.cursor_row)
        assert rows == [4, 7, 7, 4, 1, 7]


async def test_a_click_moves_the_cursor_and_a_double_click_opens() -> None:
    opened: list[int] = []

    class Listening(OneView):
        CLICK_CHAIN_TIME_THRESHOLD = 60.0  # on a busy machine half a second lies between two clicks

        def on_line_view_opened(self, message: LineView.Opened) -> None:
            opened.append(message.row)

    view = LineView(Lines([compose(str(i)) for i in range(9)]))
    async with Listening(view).run_test(size=(40, 10)) as pilot:
        await pilot.click(LineView, offset=(3, 5))
        await until(lambda: view.cursor_row == 5)
        await pilot.pause()
        assert opened == []
        await pilot.double_click(LineView, offset=(3, 2))
        await until(lambda: opened == [2])


async def test_a_cursor_move_needs_no_layout_and_draws_two_rows() -> None:
    view = SourceView()
    async with showing(view, (80, 30)) as pilot:
        view.show_source("x = 1\n" * 5_000, "kernel.py")
        layouts: list[bool] = []
        regions: list[Any] = []
        refresh = view.refresh
        view.refresh = lambda *r, **k: (
            regions.extend(r),
            layouts.append(k.get("layout", False)),
            refresh(*r, **k),
        )[2]  # type: ignore[method-assign, func-returns-value]
        await pilot.pause()
        layouts.clear()  # what a new source makes the view draw may come at any time: no pause from here on
        regions.clear()
        view.move_to(3)
        assert not any(layouts)
        assert sum(region.height for region in regions) == 2


async def test_an_empty_view_says_what_to_do() -> None:
    view = LineView(placeholder="Press g to gate this proposal.")
    async with showing(view, (20, 6)) as pilot:
        assert "Press g to gate" in drawn(view)[0]
        await pilot.press("down", "enter", "end")
        assert view.cursor_row == 0


async def test_changes_are_visited_and_folds_open() -> None:
    old = [f"line {i}" for i in range(60)]
    new = [*old[:10], "added", *old[10:50], *old[51:]]
    ops = [
        Op("equal", 0, 10, 0, 10),
        Op("insert", 10, 10, 10, 11),
        Op("equal", 10, 50, 11, 51),
        Op("delete", 50, 51, 51, 51),
        Op("equal", 51, 60, 51, 60),
    ]
    view = DiffView(layout_mode="unified")
    async with showing(view, (60, 20)) as pilot:
        view.show_diff("\n".join(old) + "\n", "\n".join(new) + "\n", ops, "kernel.py")
        await pilot.pause()
        assert view.line_numbers == (None, 11)
        assert view.changed == (1, 1)
        view.action_next_hunk()
        assert view.line_numbers == (51, None)
        view.action_previous_hunk()
        assert view.line_numbers == (None, 11)
        rows = len(view.document)
        await pilot.press("home", "enter")
        assert len(view.document) > rows
        assert view.line_numbers[0] == 1
        view.layout_mode = "split"
        assert view.is_split
        assert view.line_numbers[0] == 1


async def test_an_unchanged_pair_and_an_empty_one_are_shown() -> None:
    view = DiffView(placeholder="These two states are the same.")
    async with showing(view) as pilot:
        view.show_diff("", "", [], "kernel.py")
        assert "the same" in drawn(view)[0]
        view.show_diff("a\n", "a\n", [Op("equal", 0, 1, 0, 1)], "kernel.py")
        await pilot.pause()
        assert view.changed == (0, 0)
        assert "a" in drawn(view)[0]
        view.clear()
        assert "the same" in drawn(view)[0]


async def test_a_missing_newline_is_a_visible_difference() -> None:
    view = DiffView(layout_mode="unified")
    async with showing(view):
        view.show_diff("a\n", "a", [Op("replace", 0, 1, 0, 1)], "kernel.py")
        assert [text.rstrip() for text in drawn(view)[:2]] == ["▌1   - a", "   1 + a ‹no newline›"]


@pytest.mark.parametrize("ansi", [False, True])
async def test_without_colour_changed_words_still_stand_out(
    monkeypatch: pytest.MonkeyPatch, ansi: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    view = DiffView(layout_mode="unified")
    async with showing(view) as pilot:
        if ansi:
            pilot.app.theme = "ansi-dark"
        view.show_diff("num_stages=4\n", "num_stages=1\n", [Op("replace", 0, 1, 0, 1)], "kernel.py")
        await pilot.pause()
        for y, sign, word in ((0, "-", "4"), (1, "+", "1")):
            strip = view.render_line(y)
            assert sign in strip.text
            assert [s.text for s in strip if s.style is not None and s.style.reverse] == [word]


async def test_text_is_selected_with_the_mouse_as_it_is_seen() -> None:
    view = SourceView()
    async with showing(view) as pilot:
        view.show_source("x = '\x1b[0m'\nlast\n", "kernel.py")
        await pilot.pause()
        await pilot.mouse_down(view, offset=(5, 0))
        await pilot.hover(view, offset=(6, 1))
        await pilot.mouse_up(view, offset=(6, 1))
        assert pilot.app.screen.get_selected_text() == " = '␛[0m'\nlas"


async def test_a_changed_word_far_to_the_right_is_brought_into_view() -> None:
    old, new = "x = 1\n" + "a, " * 30 + "num_stages=4)\n", "x = 1\n" + "a, " * 30 + "num_stages=1)\n"
    ops = [Op("equal", 0, 1, 0, 1), Op("replace", 1, 2, 1, 2)]
    for mode in ("unified", "split"):
        view = DiffView(layout_mode=mode)  # type: ignore[arg-type]
        async with showing(view):
            view.show_diff(old, new, ops, "kernel.py")
            rows = drawn(view)
            assert any("num_stages=4)" in row for row in rows)
            assert any("num_stages=1)" in row for row in rows)
            assert "x = 1" in rows[0]  # what did not change stays where it is


async def test_a_cursor_set_before_the_first_layout_is_seen() -> None:
    view = LineView(Lines([compose(str(i)) for i in range(500)]))
    view.cursor_row = 0

    class Early(OneView):
        def on_mount(self) -> None:
            view.move_to(400)

    async with Early(view).run_test(size=(40, 10)):
        await until(lambda: any("400" in row for row in drawn(view)))
