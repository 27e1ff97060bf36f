"""Jobs of a place: of those of one group only the latest is heard, however the threads end; what waits for a drawing."""

from __future__ import annotations

import threading
import time

from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from klineage_tui.screens.place import Place, once_drawn

from .driving import until


class Jobs(App[None]):
    def on_mount(self) -> None:
        self.push_screen(Place())

    walk = None
    revision = 0


async def test_a_result_on_its_way_gives_way_to_a_newer_job() -> None:
    app = Jobs()
    began, go = threading.Event(), threading.Event()
    heard: list[str] = []

    def old() -> str:
        began.set()
        go.wait(60)
        return "old"

    async with app.run_test():
        await until(lambda: isinstance(app.screen, Place) and app.screen.is_mounted)
        place = app.screen
        assert isinstance(place, Place)
        for newer in (lambda: place.job("group", lambda: "new", heard.append), lambda: place.drop("group")):
            began.clear()
            go.clear()
            place.job("group", old, heard.append)
            await until(began.is_set)
            go.set()
            time.sleep(0.1)  # the app is busy meanwhile: the result waits to be delivered
            newer()
            place.job("other", lambda: "last", heard.append)
            await until(lambda: all(job.is_finished for job in app.workers))
            place.call_later(heard.append, "|")  # behind every result on its way
            await until(lambda: heard[-1:] == ["|"])
    assert [word for word in heard if word != "last"] == ["new", "|", "|"]


class Words(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static()


async def test_what_waits_for_a_drawing_is_not_done_on_a_screen_that_is_left() -> None:
    app, words = App[None](), Words()
    found: list[int] = []
    async with app.run_test() as pilot:
        await app.push_screen(words)
        once_drawn(words, lambda: found.append(len(words.query(Static))))
        await until(lambda: found)
        once_drawn(words, lambda: found.append(len(words.query(Static))))
        await app.pop_screen()
        await pilot.pause()
    assert found == [1]
