"""Editing a proposal, here or in the person's own editor; the draft is on disk before anything risky."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from textual.app import SuspendNotSupported

from klineage_tui.proposals import Queue
from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.induce_panes import InducePanes
from klineage_tui.widgets.diff_view import DiffView

if TYPE_CHECKING:
    from klineage.lineage import Draft
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk, WalkState


class InduceEdits(InducePanes):
    """Adds the verbs ``edit`` and ``editor``. An edit makes the gate result stale at once."""

    _queue: Queue = Queue()
    _state: WalkState | None = None

    def show_queue(self) -> None:
        """Draw the current proposal again."""
        raise NotImplementedError

    def _subject(self) -> tuple[Walk, bytes, str, Candidate | None]:
        """What would be edited: the proposal, or the kernel itself when none is left; and its title."""
        walk, state, current = self.host.walk, self._state, self._queue.current
        assert walk is not None and state is not None
        if current is None:
            return walk, state.kernel.source, "", None
        return walk, current.candidate.source, current.candidate.title, current.candidate

    def do_edit(self) -> None:
        walk, source, title, base = self._subject()

        def choose(draft: Draft | None) -> None:
            if draft is None or draft.title != title or draft.data == source:
                self._open_editor(walk, source, title, base)
                return
            dialog = Confirm(
                "Draft",
                f"“{title}” was being edited. Go on with that, or start again from the proposal?",
                "goes on",
                dict(self.host.keys_in_force),
                cancel="starts again",
            )
            self.app.push_screen(
                dialog, lambda yes: self._open_editor(walk, draft.data if yes else source, title, base)
            )

        self.job("draft", walk.draft, choose)

    def _open_editor(self, walk: Walk, source: bytes, title: str, base: Candidate | None) -> None:
        from klineage_tui.screens.edit import EditScreen, why_not_here

        state = self._state
        assert state is not None
        if reason := why_not_here(source):
            self.notify(f"{reason}; {self.key_of('editor')} opens your own editor", severity="warning")
            return
        line = self._line()
        screen = EditScreen(walk, state.kernel.filename, source, title, line, self.host.keys_in_force)
        self.app.push_screen(screen, lambda edited: self._take(edited, title, base))

    def do_editor(self) -> None:
        from klineage_tui.config import editor_command

        walk, source, title, base = self._subject()
        try:
            command = editor_command(self.host.config)
        except KlineageError as problem:
            self.complain(str(problem))
            return
        # The draft first: whatever the editor or the terminal does, these bytes are kept.
        self.job("draft", lambda: walk.save_draft(source, title), lambda _: self._outside(command, base))

    def _outside(self, command: list[str], base: Candidate | None) -> None:
        from klineage_tui.editor import edit_outside

        walk, source, title, _ = self._subject()
        state = self._state
        assert state is not None
        try:
            edited = edit_outside(command, state.kernel.filename, source, self._line(), self.app.suspend)
        except KlineageError as problem:
            self.complain(str(problem))
            return
        except SuspendNotSupported:
            self.complain(f"this terminal cannot be given away; {self.key_of('edit')} edits here")
            return
        self.refresh()
        if edited == source:
            self.job("draft", walk.clear_draft, lambda _: self.notify("Nothing was changed.", timeout=3))
        else:
            save = partial(walk.save_draft, edited, title)
            self.job("draft", save, lambda _: self._take(edited, title, base))

    def _line(self) -> int:
        """The new line under the cursor of the diff, counted from 1."""
        old, new = self.query_one(DiffView).line_numbers
        return new or old or 1

    def _take(self, edited: bytes | None, title: str, base: Candidate | None) -> None:
        """Make the edited bytes the current proposal; its gate result is stale from now on."""
        walk, state = self.host.walk, self._state
        if edited is None or walk is None or state is None:
            return

        def show(candidate: Candidate) -> None:
            self._queue = self._queue.edited(candidate, state.kernel_of(candidate).hash)
            self.show_queue()

        self.job("edit", lambda: walk.edited(edited, title=title, base=base), show)

    def offer_draft(self, draft: Draft) -> None:
        """Ask whether to go on with the draft of an earlier session; it stays on disk if not."""
        title = draft.title or "a kernel edited by hand"
        question = f"There is an unfinished edit of “{title}”. Go on with it?"
        dialog = Confirm(
            "Draft", question, "goes on with it", dict(self.host.keys_in_force), cancel="keeps it for later"
        )
        self.app.push_screen(dialog, lambda yes: self._resume(draft) if yes else None)

    def _resume(self, draft: Draft) -> None:
        proposals = self._queue.proposals
        position = next((i for i, p in enumerate(proposals) if p.candidate.title == draft.title), None)
        if position is not None:
            self._queue = self._queue.at(position)
            self.show_queue()
        base = None if position is None else proposals[position].candidate
        self._take(draft.data, draft.title, base)
