"""Whom to ask for a proposal, and what to tell them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.widgets import Input, Static

from klineage_tui.keys import shown_key
from klineage_tui.proposers import Choice
from klineage_tui.screens.choosing import Choices
from klineage_tui.screens.dialog import Dialog


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
        self._choices, self._chosen, self._hint = choices, chosen, hint

    def answer(self) -> ComposeResult:
        yield Choices(self._choices, self._chosen, id="choices")
        yield Input(value=self._hint, placeholder="a hint, or nothing: what to take out, what to leave alone")
        if len(self._choices) > 1:
            up, down = (shown_key(self._keys[f"dialog-{way}"]) for way in ("previous", "next"))
            yield Static(f"{up} and {down} choose who is asked", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def action_dialog_next(self) -> None:
        self.query_one(Choices).go(1)

    def action_dialog_previous(self) -> None:
        self.query_one(Choices).go(-1)

    def on_input_submitted(self) -> None:
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        self.dismiss((self.query_one(Choices).chosen, self.query_one(Input).value.strip()))
