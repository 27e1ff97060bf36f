"""Screens and the size of the terminal."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen

import klineage_tui
from klineage_tui.screens.in_step import InStep

from .driving import MakeApp, loaded, title, until


class Other(Message):
    """Stands between two others, so that the later does not take the place of the earlier."""


def to_and_fro(screen: Screen[object]) -> None:
    """A smaller size, the terminal's, and a smaller one again, in the queue at once."""
    for size in (Size(20, 5), screen.app.size, Size(30, 8)) * 2:
        screen.post_message(events.Resize(size, size))
        screen.post_message(Other())


@pytest.mark.parametrize("key", ["", "?", "ctrl+p"])
async def test_the_app_and_what_lies_on_it_find_back_to_the_terminals_size(
    make_app: MakeApp, key: str
) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await loaded(app)
        if key:
            await pilot.press(key)
            await until(lambda: app.screen is not app.screen_stack[0] and app.screen.is_mounted)
        to_and_fro(app.screen)  # type: ignore[arg-type]
        for _ in range(10):
            await pilot.pause()
        for screen in app.screen_stack:
            assert screen.size == app.size
            assert not screen.has_class("-tiny")
        assert "PROPOSAL 1 of" in title(app, "#proposal")


def test_every_screen_keeps_step() -> None:
    for module in pkgutil.walk_packages(klineage_tui.__path__, "klineage_tui."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    def below(kind: type[Screen[object]]) -> set[type[Screen[object]]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    ours = [kind for kind in below(Screen) if kind.__module__.startswith("klineage_tui.")]
    assert len(ours) > 20
    assert [kind.__name__ for kind in ours if not issubclass(kind, InStep)] == []
