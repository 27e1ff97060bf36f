"""Editing a kernel or a card in the app. The draft is saved when typing pauses, and before leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from klineage.errors import KlineageError
from textual.app import ComposeResult
from textual.document._document import Document
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Static

from klineage_tui.actions import bindings_for
from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.in_step import InStep
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.code_area import CodeArea
from klineage_tui.widgets.title_row import TitleRow
from klineage_tui.widgets.too_small import TooSmall

_IDLE = 0.4  # seconds without a key after which the draft is saved


def why_not_here(source: bytes) -> str:
    """Why these bytes cannot be edited in the app without changing others; empty when they can."""
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as problem:
        return f"byte {problem.start} is not UTF-8"
    if Document(text).text != text:
        return "its line endings are mixed, and editing here would change them all"
    return ""


class EditScreen(InStep, ModalScreen[bytes | None]):
    """Dismissed with the edited bytes, or None when the person leaves (the draft stays) or discards.

    keep, forget: save the draft, and drop it; both are called in a thread and may raise KlineageError.
    check: what is wrong with the bytes, in a sentence with the line, or nothing; wrong ones are not taken.
    """

    BINDINGS = [*bindings_for("editor")]
    DEFAULT_CSS = """
    EditScreen { background: $background; }
    EditScreen #edit-title { background: $surface; color: $foreground; }
    EditScreen CodeArea { height: 1fr; }
    EditScreen #edit-problem { height: auto; max-height: 3; padding: 0 1; background: $surface; color: $verdict-warn; }
    """

    def __init__(
        self,
        keep: Callable[[bytes], None],
        forget: Callable[[], None],
        filename: str,
        source: bytes,
        title: str,
        line: int,
        keys: dict[str, str],
        check: Callable[[bytes], str] | None = None,
    ) -> None:
        super().__init__()
        self._keep, self._forget, self._check = keep, forget, check
        self._filename = filename
        self._source = source
        self._title = title
        self._line = line
        self._keys = keys
        self._timer: Timer | None = None
        self._saved = source

    def compose(self) -> ComposeResult:
        yield TitleRow(id="edit-title")
        yield CodeArea(self._source.decode("utf-8"), self._filename)
        yield Static(id="edit-problem", markup=False)
        yield ActionBar("editor", self._keys)
        yield TooSmall()

    def on_mount(self) -> None:
        area = self.query_one(CodeArea)
        area.move_cursor((self._line - 1, 0), center=True)
        area.focus()
        self.query_one("#edit-problem").display = False
        self._say("not changed yet")
        self._examine(self._source)

    def _say(self, state: str) -> None:
        left = [("EDIT  ", "bold"), (self._filename, ""), (f"  {self._title}", "$muted")]
        self.query_one("#edit-title", TitleRow).show(left, state)

    @property
    def _bytes(self) -> bytes:
        return self.query_one(CodeArea).text.encode("utf-8")

    def on_text_area_changed(self) -> None:
        if self._bytes == self._saved:
            return
        self._say("draft …")
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_IDLE, self._save_soon)

    def _save_soon(self) -> None:
        data = self._bytes
        self.run_worker(
            lambda: self._save(data), group="draft", exclusive=True, thread=True, exit_on_error=False
        )

    def _save(self, data: bytes) -> None:
        """In a thread: write the draft, then say so, and what is wrong with it."""
        try:
            self._keep(data)
        except KlineageError as problem:
            self.app.call_from_thread(self._say, f"draft NOT saved: {problem}")
        else:
            self.app.call_from_thread(self._was_saved, data)

    def _was_saved(self, data: bytes) -> None:
        self._saved = data
        if self.is_attached and data == self._bytes:
            self._say("draft saved")
            self._examine(data)

    def _examine(self, data: bytes) -> str:
        """Show what is wrong with these bytes; returns it."""
        problem = self._check(data) if self._check is not None else ""
        line = self.query_one("#edit-problem", Static)
        line.display = bool(problem)
        line.update(sanitize(problem))
        return problem

    async def action_editor_done(self) -> None:
        changed = self._bytes != self._source
        if changed and self._examine(self._bytes):
            self.notify("It is not taken with what is wrong below.", severity="warning")
            return
        await self._leave(self._bytes if changed else None)

    async def action_editor_leave(self) -> None:
        await self._leave(None)

    async def _leave(self, result: bytes | None) -> None:
        """Leave when the draft is on disk. Where it cannot be written, only bytes that are taken may go."""
        data = self._bytes
        if self._timer is not None:
            self._timer.stop()
        if data != self._saved:
            try:
                await asyncio.to_thread(self._keep, data)
            except KlineageError as problem:
                self.notify(f"The draft is not saved: {problem}", severity="error")
                if result is None:
                    return
        self.dismiss(result)

    def action_editor_discard(self) -> None:
        question = "Throw this edit away? Everything stays as it was."
        self.app.push_screen(Confirm("Discard", question, "throws it away", self._keys), self._discard)

    def _discard(self, yes: bool | None) -> None:
        if yes:
            self.run_worker(self._forget, group="draft", thread=True, exit_on_error=False)
            self.dismiss(None)

    def on_action_bar_chosen(self, message: ActionBar.Chosen) -> None:
        self.run_worker(self.run_action(message.action.replace("-", "_")))
