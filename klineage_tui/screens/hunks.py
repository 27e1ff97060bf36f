"""Choosing the changes of a proposal that are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.screen import ModalScreen

from klineage_tui.actions import bindings_for
from klineage_tui.screens.in_step import InStep
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.hunk_view import HunkView
from klineage_tui.widgets.title_row import TitleRow
from klineage_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.lineage import Op


class HunkScreen(InStep, ModalScreen[frozenset[int] | None]):
    """Dismissed with the numbers of the changes that are taken, some of them, or None when the person leaves."""

    BINDINGS = [*bindings_for("hunks")]
    DEFAULT_CSS = """
    HunkScreen { background: $background; }
    HunkScreen #hunks-title { background: $surface; color: $foreground; }
    HunkScreen HunkView { height: 1fr; padding: 0 1; }
    """

    def __init__(self, head: Kernel, new: bytes, ops: Sequence[Op], title: str, keys: dict[str, str]) -> None:
        super().__init__()
        self._head, self._new, self._ops = head, new, ops
        self._title = sanitize(title)
        self._keys = keys

    def compose(self) -> ComposeResult:
        yield TitleRow(id="hunks-title")
        yield HunkView(id="hunks")
        yield ActionBar("hunks", self._keys)
        yield TooSmall()

    def on_mount(self) -> None:
        view = self.query_one(HunkView)
        new = self._new.decode("utf-8", errors="replace")
        view.show_diff(self._head.text, new, self._ops, self._head.filename)
        view.focus()
        self._say()

    def _say(self) -> None:
        view = self.query_one(HunkView)
        left = [("CHANGES  ", "bold"), (self._title, "")]
        self.query_one("#hunks-title", TitleRow).show(left, f"{len(view.chosen)} of {view.count} taken")

    def action_hunk_toggle(self) -> None:
        self.query_one(HunkView).toggle()
        self._say()

    def action_hunk_all(self) -> None:
        self.query_one(HunkView).toggle_all()
        self._say()

    def action_hunks_take(self) -> None:
        view = self.query_one(HunkView)
        if not view.chosen:
            self.notify("No change is taken; choose at least one.", severity="warning")
        elif len(view.chosen) == view.count:
            self.notify("Every change is taken, so the proposal stays as it is.", timeout=3)
            self.dismiss(None)
        else:
            self.dismiss(view.chosen)

    def action_hunks_leave(self) -> None:
        self.dismiss(None)

    def on_action_bar_chosen(self, message: ActionBar.Chosen) -> None:
        self.run_worker(self.run_action(message.action.replace("-", "_")))
