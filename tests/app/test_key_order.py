"""Keys that come faster than they are handled are handled as if they had come slowly."""

from __future__ import annotations

import asyncio
import random

import pytest
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from klineage_tui.key_order import KeysInOrder

from .driving import until

LETTERS = "abcdefgh"
KEYS = [*LETTERS, "backspace", "ctrl+u", "tab", "left", "home"]
END = "z"


class Form(KeysInOrder[None]):
    """Two inputs, some levels below the app."""

    def compose(self) -> ComposeResult:
        with Vertical(), Vertical(), Vertical():
            yield Input(id="first", select_on_focus=False)
            yield Input(id="second", select_on_focus=False)


def _key(name: str) -> events.Key:
    return events.Key(name, name if len(name) == 1 else None)


def _expected(keys: list[str]) -> list[str]:
    """What the two inputs hold when every key has been handled before the next one."""
    values, cursors, at = ["", ""], [0, 0], 0
    for key in keys:
        before, behind = values[at][: cursors[at]], values[at][cursors[at] :]
        if key == "tab":
            at = 1 - at
            continue
        if key in ("left", "home"):
            cursors[at] = max(0, len(before) - 1) if key == "left" else 0
            continue
        kept = {"backspace": before[:-1], "ctrl+u": ""}.get(key, before + key)
        values[at], cursors[at] = kept + behind, len(kept)
    return values


@pytest.mark.parametrize("seed", range(6))
def test_fast_keys_are_handled_one_after_another(seed: int) -> None:
    chosen = random.Random(seed)
    keys = [*(chosen.choice(KEYS) for _ in range(60)), END]

    async def run() -> list[str]:
        app = Form()
        async with app.run_test():
            fields = [app.query_one("#first", Input), app.query_one("#second", Input)]
            await until(lambda: app.focused is fields[0])
            for key in keys:
                app.post_message(_key(key))
            await until(lambda: any(END in field.value for field in fields))
            return [field.value for field in fields]

    assert asyncio.run(run()) == _expected(keys), f"seed {seed}: {keys}"


def test_a_key_for_a_widget_that_is_gone_holds_up_none() -> None:
    async def run() -> None:
        app = Form()
        async with app.run_test():
            first, second = app.query_one("#first", Input), app.query_one("#second", Input)
            await until(lambda: app.focused is first)
            app.post_message(_key("a"))
            await first.remove()
            await until(lambda: app.focused is second)
            app.post_message(_key("b"))
            await until(lambda: second.value.endswith("b"))

    asyncio.run(run())


def test_what_is_pasted_waits_for_the_keys_before_it() -> None:
    async def run() -> None:
        app = Form()
        async with app.run_test():
            first = app.query_one("#first", Input)
            await until(lambda: app.focused is first)
            for event in (*map(_key, "old"), _key("ctrl+u"), events.Paste("new"), _key(END)):
                app.post_message(event)
            await until(lambda: first.value.endswith(END))
            assert first.value == "new" + END

    asyncio.run(run())


class Question(ModalScreen[str]):
    """It takes its time until it has the focus."""

    AUTO_FOCUS = ""

    def compose(self) -> ComposeResult:
        with Vertical(), Vertical(), Vertical():
            yield Input()

    async def on_mount(self) -> None:
        await asyncio.sleep(0.1)
        self.query_one(Input).focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self.dismiss(message.value)


class Asks(Form):
    """ctrl+t asks; what is answered is kept."""

    BINDINGS = [("ctrl+t", "ask", "ask")]

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str | None] = []

    def action_ask(self) -> None:
        self.push_screen(Question(), self.answers.append)


def test_keys_go_into_a_dialog_and_past_it_before_it_is_drawn() -> None:
    async def run() -> None:
        app = Asks()
        async with app.run_test():
            first = app.query_one("#first", Input)
            await until(lambda: app.focused is first)
            for name in ("a", "ctrl+t", "b", "c", "enter", "d", "ctrl+t", "enter", END):
                app.post_message(_key(name))
            await until(lambda: first.value.endswith(END))
            assert (first.value, app.answers) == ("ad" + END, ["bc", ""])

    asyncio.run(run())
