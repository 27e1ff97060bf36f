"""Every key of the place that was on screen, from the registry."""

from __future__ import annotations

import textwrap

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from klineage_tui.actions import PLACES, SCREENS, actions_of, bindings_for
from klineage_tui.keys import shown_keys
from klineage_tui.screens.in_step import InStep
from klineage_tui.text.columns import pad
from klineage_tui.text.line import Line, compose
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.too_small import TooSmall

_KEY_CELLS = 14
_FRAME_ROWS = 6  # border, padding, and the last row with its margin


def help_lines(place: str, keys: dict[str, str], cells: int = 90) -> list[Line]:
    """The keys of a place, of everywhere and of views, under headings; wrapped in ``cells`` cells."""
    lines: list[Line] = []
    for part in (place, "app", "view") if place in SCREENS else (place, "view"):
        lines.append(compose((PLACES[part], "heading")))
        for action in actions_of(part):
            command = f"   klineage {action.verb}" if action.verb else ""
            words = textwrap.wrap(action.description, max(16, cells - _KEY_CELLS - 2))
            # The command stands in the last row, or in one of its own where there is no room for it.
            if len(words[-1]) + len(command) > cells - _KEY_CELLS - 2:
                words, command = [*words, ""], command.strip()
            for number, text in enumerate(words):
                key = shown_keys(keys[action.id]) if number == 0 else ""
                told = command if number == len(words) - 1 else ""
                lines.append(compose(("  " + pad(key, _KEY_CELLS), "accent"), text, (told, "muted")))
        lines.append(Line(""))
    return lines[:-1]


class HelpScreen(InStep, ModalScreen[None]):
    """Scrolls; any of escape, ? and q leaves."""

    BINDINGS = [*bindings_for("dialog"), ("question_mark,q", "dialog_cancel", "close")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen > Vertical {
        width: 100; max-width: 94%; height: auto; max-height: 92%;
        background: $surface; border: round $accent; padding: 1 2;
    }
    HelpScreen LineView { height: auto; }
    HelpScreen .keys { color: $muted; margin-top: 1; }
    """

    def __init__(self, place: str, keys: dict[str, str]) -> None:
        super().__init__()
        self._place, self._keys = place, keys

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineView(cursor=False)
            yield Static(
                "esc closes   ↓ and space: more   klineage NAME: the same in a shell",
                classes="keys",
                markup=False,
            )
        yield TooSmall()

    def on_mount(self) -> None:
        self.query_one(LineView).focus()

    def on_resize(self) -> None:
        """Leave room for the frame and for the row that says how to close it."""
        view, cells = self.query_one(LineView), min(100, self.size.width * 94 // 100) - 7
        view.styles.max_height = max(1, self.size.height * 92 // 100 - _FRAME_ROWS)
        view.show(Lines(help_lines(self._place, self._keys, cells)), keep_position=True)

    def action_dialog_confirm(self) -> None:
        self.dismiss(None)

    def action_dialog_cancel(self) -> None:
        self.dismiss(None)
