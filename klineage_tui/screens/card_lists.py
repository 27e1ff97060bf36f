"""Lists on top of the Cards place: a target to choose, and the revisions of a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from klineage.errors import KlineageError
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

from klineage_tui.actions import bindings_for
from klineage_tui.keys import shown_key
from klineage_tui.screens.dialog import ListDialog, text_rows
from klineage_tui.screens.in_step import InStep
from klineage_tui.text.columns import clip, pad, widest, width
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.title_row import TitleRow
from klineage_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from klineage.lineage import Op

T = TypeVar("T")
_NAME = 62  # cells of a name in a list
_WHOLE_ROWS = 4  # at most, for all of a row that is cut


class Choose(ListDialog[T | None], Generic[T]):
    """One of several things, each with a row that says what it is; dismissed with it, or None.

    Where rows are cut, all of the one under the cursor stands below them: its text, or that of ``wholes``.
    """

    DEFAULT_CSS = """
    Choose #choose-whole { color: $muted; }
    """

    def __init__(
        self,
        title: str,
        question: str,
        rows: Sequence[tuple[T, Line]],
        confirm: str,
        keys: dict[str, str],
        wholes: Sequence[str] = (),
    ) -> None:
        super().__init__(title, question, confirm, keys)
        self._rows = rows
        self._wholes = [
            sanitize(" ".join(text.split())) for text in wholes or (line.text for _, line in rows)
        ]

    def answer(self) -> ComposeResult:
        yield LineView(Lines([line for _, line in self._rows]))
        yield Static(id="choose-whole", markup=False)

    def on_mount(self) -> None:
        view = self.query_one(LineView)
        view.show(view.document)

    def rows_below(self) -> int:
        if all(width(line.text) <= self.cells - 2 and "…" not in line.text for _, line in self._rows):
            return 0
        return min(_WHOLE_ROWS, max(text_rows(text, self.cells) for text in self._wholes))

    def on_resize(self) -> None:
        below = self.query_one("#choose-whole", Static)
        below.styles.height, below.display = self.rows_below(), self.rows_below() > 0
        self.on_line_view_moved()

    def on_line_view_moved(self) -> None:
        row = self.query_one(LineView).cursor_row
        self.query_one("#choose-whole", Static).update(self._wholes[row] if row < len(self._wholes) else "")

    def action_dialog_confirm(self) -> None:
        for view in self.query(LineView):  # none yet, where a key is faster than the first paint
            row = view.cursor_row
            self.dismiss(self._rows[row][0] if row < len(self._rows) else None)


class RevisionsScreen(InStep, ModalScreen[None]):
    """The revisions of a card, newest first, above what the one under the cursor changed in the file.

    read: the file before and after the revision of a row, and the operations between their lines; in a thread.
    """

    BINDINGS = [*bindings_for("dialog")]
    DEFAULT_CSS = """
    RevisionsScreen { background: $background; }
    RevisionsScreen TitleRow { background: $surface; color: $foreground; }
    RevisionsScreen #revisions { height: 1fr; max-height: 12; }
    RevisionsScreen DiffView { height: 2fr; }
    """

    def __init__(
        self,
        card_id: str,
        rows: Sequence[Line],
        read: Callable[[int], tuple[str, str, Sequence[Op]]],
        keys: dict[str, str],
    ) -> None:
        super().__init__()
        self._card_id, self._rows, self._read, self._keys = sanitize(card_id), rows, read, keys

    def compose(self) -> ComposeResult:
        yield TitleRow(id="revisions-title")
        yield LineView(Lines(self._rows), id="revisions")
        yield DiffView(placeholder="Reading…", id="revision-diff")
        yield TooSmall()

    def on_mount(self) -> None:
        left = [("REVISIONS  ", "bold"), (self._card_id, "")]
        leave = f"{shown_key(self._keys['dialog-cancel'])} goes back"
        self.query_one("#revisions-title", TitleRow).show(left, f"{len(self._rows)}, newest first; {leave}")
        self.query_one("#revisions").focus()
        self._load(0)

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view.id == "revisions":
            self._load(message.row)

    def _load(self, row: int) -> None:
        def work() -> None:
            try:
                found = self._read(row)
            except KlineageError as problem:
                self.app.call_from_thread(self.notify, str(problem), severity="error", timeout=10)
            else:
                self.app.call_from_thread(self._show, row, found)

        self.run_worker(work, group="revision", exclusive=True, thread=True, exit_on_error=False)

    def _show(self, row: int, found: tuple[str, str, Sequence[Op]]) -> None:
        if self.is_attached and self.query_one("#revisions", LineView).cursor_row == row:
            before, after, ops = found
            self.query_one(DiffView).show_diff(before, after, ops, "card.md")

    def action_dialog_confirm(self) -> None:
        self.dismiss(None)

    def action_dialog_cancel(self) -> None:
        self.dismiss(None)


def revision_line(when: str, who: str, title: str, reason: str) -> Line:
    """One revision: when, by whom, what, and why."""
    return compose(
        (f"{when}  ", "muted"),
        (f"{sanitize(who)}  ", "accent"),
        sanitize(title),
        (f"  {sanitize(' '.join(reason.split()))}" if reason else "", "muted"),
    )


def choice_line(name: str, about: str) -> Line:
    """One of several things: its name, and what it is."""
    return compose((name, "strong"), ("  " + sanitize(about), "muted"))


def choice_names(names: Sequence[str]) -> list[str]:
    """Names as one column, as wide as the widest of them, but not wider than most lists."""
    safe = [clip(sanitize(name), _NAME) for name in names]
    cells = widest(safe)
    return [pad(name, cells) for name in safe]
