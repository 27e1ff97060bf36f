"""Lists to choose from: moved with j and k, and no row is cut without standing below in full."""

from __future__ import annotations

import pytest
from textual.containers import Vertical
from textual.widgets import Static

from klineage_tui.actions import keymap
from klineage_tui.key_order import KeysInOrder
from klineage_tui.screens.card_lists import Choose, choice_line, choice_names
from klineage_tui.themes import DEFAULT, load_themes
from klineage_tui.widgets.lines import LineView

from .driving import ready, until

NAMES = ["gemm-c", "experts/conv2d/c/kernel.c less " + ", ".join(f"mechanism_{n}" for n in range(9)), "last"]


class Host(KeysInOrder[None]):
    """Shows one list, and keeps what was chosen."""

    chosen = ""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return next(theme for theme in load_themes().themes if theme.name == DEFAULT).variables

    def on_mount(self) -> None:
        rows = [(n, choice_line(s, "rule fits")) for n, s in zip(NAMES, choice_names(NAMES), strict=True)]
        question = (
            "On which kernel? It must pass every gate and show half of the effect; at most three attempts."
        )
        wholes = [f"{name}: rule fits" for name in NAMES]
        dialog = Choose("Try", question, rows, "tries it there", keymap(), wholes)
        self.push_screen(dialog, lambda name: setattr(self, "chosen", name))


@pytest.mark.parametrize("size", [(80, 24), (80, 16), (160, 48)])
async def test_a_list_shows_all_of_the_row_under_the_cursor_and_its_keys(size: tuple[int, int]) -> None:
    app = Host()
    async with app.run_test(size=size) as pilot:
        await until(lambda: ready(app, Choose))
        await pilot.press("j")
        assert app.screen.query_one(LineView).cursor_row == 1
        await until(lambda: app.screen.query_one("#choose-whole", Static).region.height)
        box = app.screen.query_one(Vertical).region
        whole, keys = app.screen.query_one("#choose-whole", Static), app.screen.query_one(".keys", Static)
        assert str(whole.render()) == f"{NAMES[1]}: rule fits"
        assert str(keys.render()) == "enter tries it there   esc goes back"
        for part in (whole, keys, app.screen.query_one(LineView)):
            assert part.region.height and box.contains_region(part.region), f"{part} is not shown whole"
        await pilot.press("j", "k", "k", "j", "enter")
        await until(lambda: app.chosen)
    assert app.chosen == NAMES[1]
