"""Driving the app in tests: wait for jobs, press keys, read what is on screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.css.query import NoMatches
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from klineage_tui.app import KlineageApp
from klineage_tui.key_order import KeysInOrder
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.screens.naming import NameStep
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.pane import Pane

MakeApp = Callable[..., KlineageApp]
SIZE = (160, 48)


def induce(app: KlineageApp) -> InduceScreen:
    return next(s for s in app.screen_stack if isinstance(s, InduceScreen))


def text(app: KlineageApp, view: str) -> str:
    screen = induce(app)
    return "\n".join(line.text for line in screen.lines_of(screen.query_one(view, LineView)))


def title(app: KlineageApp, pane: str) -> str:
    return induce(app).query_one(pane, Pane).title_text


def said(app: KlineageApp) -> str:
    """Every toast so far: those that a busy machine was too slow to look at are gone from the screen."""
    return "\n".join(app.toasts)  # type: ignore[attr-defined]


async def loaded(app: KlineageApp) -> None:
    """Induce shows the first proposal."""
    await until(lambda: isinstance(app.screen, InduceScreen) and bool(app.screen.query("#proposal")))
    await until(lambda: "PROPOSAL 1 of" in title(app, "#proposal"))


async def gated(app: KlineageApp, pilot: Pilot[int]) -> None:
    await pilot.press("g")
    await until(lambda: "accepts it" in text(app, "#gate-view"))


def ready(app: App[Any], kind: type[Screen[Any]]) -> bool:
    """Whether a screen of this kind is on top, whole, and has the focus: it takes keys."""
    return isinstance(app.screen, kind) and app.screen.is_mounted and app.screen.focused is not None


async def named_as_offered(app: KlineageApp, pilot: Pilot[int]) -> None:
    """The dialog after an edit, answered with what it offers."""
    await until(lambda: ready(app, NameStep))
    await pilot.press("enter")
    await until(lambda: not isinstance(app.screen, NameStep))


async def until(condition: Callable[[], object], seconds: float = 120.0, every: float = 0.02) -> None:
    """Wait for something that jobs bring about, on a screen that may not have all its widgets yet."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    def holds() -> bool:
        try:
            return bool(condition())
        except NoMatches:
            return False

    while not holds():
        assert loop.time() < end, f"waited {seconds} s in vain"
        await asyncio.sleep(every)


async def handled(app: KeysInOrder[int]) -> None:
    """Every key that was pressed has been handled, and what it made the widgets say."""
    arrived = asyncio.Event()
    app.call_later(arrived.set)

    def over() -> bool:
        done = arrived.is_set() and not app._keys and not app._handling
        return done or app._exit or app._exception_event.is_set()

    await until(over, every=0.002)


def about(app: KlineageApp) -> str:
    return str(induce(app).query_one("#about", Static).render())
