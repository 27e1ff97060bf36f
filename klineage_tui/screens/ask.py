"""Whom to ask for a proposal, and what to tell them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from klineage_tui.keys import shown_key
from klineage_tui.proposers import Choice
from klineage_tui.screens.dialog import Dialog
from klineage_tui.text.sanitize import sanitize

_SHOWN = 5  # choices at a time


class AskProposer(Dialog[tuple[str, str]]):
    """Up and down choose who is asked, what is typed is the hint; dismissed with (name, hint), or None."""

    DEFAULT_CSS = """
    AskProposer #choices { margin-top: 1; }
    """

    def __init__(
        self, choices: Sequence[Choice], spent: str, keys: dict[str, str], *, chosen: str = "", hint: str = ""
    ) -> None:
        question = "One simplification more, from somebody who can think."
        super().__init__("Ask for a proposal", f"{question} {spent}".strip(), "asks", keys)
        self._choices, self._hint = choices, hint
        self._row = next((row for row, choice in enumerate(choices) if choice.name == chosen), 0)

    def answer(self) -> ComposeResult:
        yield Static(id="choices", markup=False)
        yield Input(value=self._hint, placeholder="a hint, or nothing: what to take out, what to leave alone")
        if len(self._choices) > 1:
            up, down = (shown_key(self._keys[f"dialog-{way}"]) for way in ("previous", "next"))
            yield Static(f"{up} and {down} choose who is asked", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._show()

    def _show(self) -> None:
        self.query_one("#choices", Static).update(chosen_of(self._choices, self._row))

    def action_dialog_next(self) -> None:
        self._row = (self._row + 1) % len(self._choices)
        self._show()

    def action_dialog_previous(self) -> None:
        self._row = (self._row - 1) % len(self._choices)
        self._show()

    def on_input_submitted(self) -> None:
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        self.dismiss((self._choices[self._row].name, self.query_one(Input).value.strip()))


def chosen_of(choices: Sequence[Choice], chosen: int) -> Content:
    """Who can be asked, one a line, with a mark at the chosen one and the word about it below.

    Of many, those around the chosen one: the keys below are to stay on the screen.
    """
    first = max(0, min(chosen - _SHOWN // 2, len(choices) - _SHOWN))
    parts: list[tuple[str, str]] = []
    for row, choice in enumerate(choices[first : first + _SHOWN], start=first):
        here = row == chosen
        parts += [
            ("▌" if here else " ", "$accent"),
            (f"{sanitize(choice.name)}\n", "bold" if here else ""),
        ]
    parts.append((f"  {sanitize(choices[chosen].note)}", "$muted"))
    return Content.assemble(*parts)
