"""Small questions on top of a place: yes or no, a typed reason, and what forms and lists share."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from klineage_tui.actions import bindings_for
from klineage_tui.keys import shown_key
from klineage_tui.screens.in_step import InStep
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.too_small import TooSmall

Answer = TypeVar("Answer")
_WIDE = 110  # cells of a dialog with a list, where there is room
_FRAME_ROWS = 8  # of it: border, padding, title, keys and their margins


class Dialog(InStep, ModalScreen[Answer]):
    """A box in the middle with a title, a question and the keys that answer it."""

    BINDINGS = [*bindings_for("dialog")]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 68; max-width: 90%; height: auto; max-height: 90%;
        background: $surface; border: round $accent; padding: 1 2;
    }
    Dialog .title { text-style: bold; }
    Dialog .keys { color: $muted; margin-top: 1; }
    Dialog Input, Dialog Input:focus {
        border: none; height: 1; padding: 0; margin-top: 1; background: $panel;
    }
    """

    def __init__(
        self, title: str, question: str, confirm: str, keys: dict[str, str], cancel: str = "goes back"
    ) -> None:
        super().__init__()
        self._title, self._question = sanitize(title), sanitize(question)
        self._confirm, self._cancel = confirm, cancel
        self._keys = keys

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield Static(self._question, classes="question", markup=False)
            yield from self.answer()
            yield Static(self.keys_line(self._confirm, self._cancel), classes="keys", markup=False)
        yield TooSmall()

    def keys_line(self, confirm: str, cancel: str) -> str:
        """What the two keys do; where there is nothing to confirm, only how to leave."""
        yes, no = shown_key(self._keys["dialog-confirm"]), shown_key(self._keys["dialog-cancel"])
        return f"{yes} {confirm}   {no} {cancel}" if confirm else f"{no} {cancel}"

    def answer(self) -> ComposeResult:
        """Widgets between the question and the keys."""
        yield from ()

    def action_dialog_cancel(self) -> None:
        self.dismiss(None)


class FormDialog(Dialog[Answer]):
    """A dialog with several inputs, a labelled row each; enter in any of them answers."""

    DEFAULT_CSS = """
    FormDialog .row { height: 1; }
    FormDialog .label { color: $muted; }
    FormDialog .row Input, FormDialog .row Input:focus { width: 1fr; margin-top: 0; }
    FormDialog .row Input:focus { background: $border-blurred; }
    """

    def action_dialog_next(self) -> None:
        self.focus_next(Input)

    def action_dialog_previous(self) -> None:
        self.focus_previous(Input)

    def on_input_submitted(self) -> None:
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        """Dismiss with what is typed, or say what is missing."""
        raise NotImplementedError


class ListDialog(Dialog[Answer]):
    """A dialog with rows that scroll, as high as they are where there is room; enter or a click on a row answers."""

    DEFAULT_CSS = """
    ListDialog > Vertical { width: 110; max-width: 94%; }
    ListDialog LineView { height: auto; margin-top: 1; }
    """

    def on_mount(self) -> None:
        self.query_one(LineView).focus()

    def on_resize(self) -> None:
        rows = _FRAME_ROWS + text_rows(self._question, self.cells) + self.rows_below()
        self.query_one(LineView).styles.max_height = max(1, self.size.height * 90 // 100 - rows)

    @property
    def cells(self) -> int:
        """The cells of a row of text."""
        return min(_WIDE, self.size.width * 94 // 100) - 6

    def rows_below(self) -> int:
        """How many rows stand between the list and the keys."""
        return 0

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        message.stop()
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        """Dismiss with what the rows answer."""
        raise NotImplementedError


def text_rows(text: str, cells: int) -> int:
    """The rows of a text that is wrapped at words."""
    return len(textwrap.wrap(text, max(16, cells), break_on_hyphens=False)) or 1


class Confirm(Dialog[bool]):
    """Yes or no; dismissed with True, or None."""

    def action_dialog_confirm(self) -> None:
        self.dismiss(True)


class AskReason(Dialog[str]):
    """A reason of a few words; an empty one is not taken."""

    def __init__(
        self,
        title: str,
        question: str,
        keys: dict[str, str],
        suggestion: str = "",
        confirm: str = "keeps it as rejected",
    ) -> None:
        super().__init__(title, question, confirm, keys)
        self._suggestion = " ".join(suggestion.split())

    def answer(self) -> ComposeResult:
        yield Input(value=self._suggestion, placeholder="why? (a few words)", select_on_focus=True)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self) -> None:
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        reason = self.query_one(Input).value.strip()
        if reason:
            self.dismiss(reason)
        else:
            self.notify("It needs a reason: type a few words.", severity="warning")
