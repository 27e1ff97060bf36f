"""Lifting cards from the app: what it would come to is shown first, then written as one decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from klineage_tui.actions import bindings_for
from klineage_tui.keys import shown_key
from klineage_tui.presentation.lifting import lift_counts, lift_lines
from klineage_tui.screens.place import Place
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.skill.library import Library
    from klineage.skill.lift.shelving import Lift

_FRAME_ROWS = 9  # border, padding, title, question, keys and their margins
_WIDE = 104


class LiftDialog(ModalScreen[bool]):
    """What lifting comes to, a row or more for each optimization; dismissed with True when it is to be written."""

    BINDINGS = [*bindings_for("dialog")]
    DEFAULT_CSS = """
    LiftDialog { align: center middle; background: $background 60%; }
    LiftDialog > Vertical {
        width: 110; max-width: 94%; height: auto; max-height: 90%;
        background: $surface; border: round $accent; padding: 1 2;
    }
    LiftDialog .title { text-style: bold; }
    LiftDialog LineView { height: auto; margin-top: 1; }
    LiftDialog .keys { color: $muted; margin-top: 1; }
    """

    def __init__(self, lifts: Sequence[Lift], where: str, keys: dict[str, str]) -> None:
        super().__init__()
        self._lifts, self._where, self._keys = lifts, sanitize(where), keys
        self._writes = any(one.state in ("new", "updated") for one in lifts)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"Lift cards from {self._where}", classes="title", markup=False)
            yield Static(lift_counts(self._lifts), markup=False)
            yield LineView(cursor=False)
            yes, no = shown_key(self._keys["dialog-confirm"]), shown_key(self._keys["dialog-cancel"])
            keys = f"{yes} writes them to the library   {no} goes back" if self._writes else f"{no} goes back"
            yield Static(keys, classes="keys", markup=False)
        yield TooSmall()

    def on_mount(self) -> None:
        self.query_one(LineView).focus()

    def on_resize(self) -> None:
        view = self.query_one(LineView)
        view.styles.max_height = max(1, self.size.height * 90 // 100 - _FRAME_ROWS)
        cells = min(_WIDE, self.size.width * 94 // 100 - 6) - 2
        view.show(Lines(lift_lines(self._lifts, cells)), keep_position=True)

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        message.stop()
        self.action_dialog_confirm()

    def action_dialog_confirm(self) -> None:
        self.dismiss(self._writes)

    def action_dialog_cancel(self) -> None:
        self.dismiss(False)


def ask_lift(place: Place, workspace: Workspace, library: Library, lineages: Sequence[str]) -> None:
    """Read what lifting comes to off the screen's thread, show it, and write it after a yes."""
    names = ", ".join(lineages) if lineages else "every sealed lineage"

    def read() -> tuple[Lift, ...]:
        from klineage.skill.lift import source_of
        from klineage.skill.lift.shelving import lift

        return lift(source_of(workspace, lineages), library)

    def show(lifts: tuple[Lift, ...]) -> None:
        dialog = LiftDialog(lifts, names, dict(place.host.keys_in_force))
        place.app.push_screen(dialog, lambda yes: _put(place, library, lifts) if yes else None)

    place.notify(f"Reading the steps of {names} …", timeout=3)
    place.job("lift", read, show)


def _put(place: Place, library: Library, lifts: Sequence[Lift]) -> None:
    def work() -> None:
        from klineage.skill.lift.shelving import put

        put(library, lifts)

    def done(_: None) -> None:
        first = next(one.id for one in lifts if one.state in ("new", "updated"))
        place.host.decided()
        place.host.show_card(first)

    place.job("lift", work, done)
