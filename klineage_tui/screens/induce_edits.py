"""Editing a proposal, here or in the person's own editor, or taking a part of it; then naming what it became.

The draft is on disk before anything risky.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from textual.app import SuspendNotSupported

from klineage_tui.proposals import Queue
from klineage_tui.screens.dialog import Confirm
from klineage_tui.screens.induce_panes import InducePanes
from klineage_tui.widgets.diff_view import DiffView

if TYPE_CHECKING:
    from klineage.lineage import Draft, Op
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk, WalkState

    from klineage_tui.screens.naming import Said, Seen


class InduceEdits(InducePanes):
    """Adds the verbs ``edit``, ``editor``, ``changes`` and ``name``. An edit makes the gate result stale at once."""

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
        keep = partial(walk.save_draft, title=title)
        keys = self.host.keys_in_force
        screen = EditScreen(keep, walk.clear_draft, state.kernel.filename, source, title, line, keys)
        self.app.push_screen(screen, lambda edited: self._take(edited, base))

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
            self.job("draft", save, lambda _: self._take(edited, base))

    def _line(self) -> int:
        """The new line under the cursor of the diff, counted from 1."""
        old, new = self.query_one(DiffView).line_numbers
        return new or old or 1

    def do_changes(self) -> None:
        """Choose which changes of the proposal are taken."""
        from klineage.lineage import line_ops

        from klineage_tui.screens.hunks import HunkScreen

        state, current = self._state, self._queue.current
        assert state is not None and current is not None
        head, candidate = state.kernel, current.candidate

        def choose(ops: Sequence[Op]) -> None:
            screen = HunkScreen(head, candidate.source, ops, candidate.title, dict(self.host.keys_in_force))
            self.app.push_screen(screen, lambda chosen: self._take_part(candidate, chosen))

        self.job("hunks", lambda: line_ops(head.source, candidate.source), choose)

    def _take_part(self, base: Candidate, chosen: frozenset[int] | None) -> None:
        walk = self.host.walk
        if chosen is None or walk is None:
            return

        def name(part: Candidate) -> None:
            save = partial(walk.save_draft, part.source, base.title)
            self.job("draft", save, lambda _: self._take(part.source, base))

        self.job("edit", lambda: walk.part(base, chosen), name)

    def do_name(self) -> None:
        """Name a step of the person's own again."""
        current = self._queue.current
        assert current is not None
        candidate = current.candidate
        self._ask_name(candidate.source, candidate)

    def _take(self, edited: bytes | None, base: Candidate | None) -> None:
        """Ask what the edited bytes are called, then make them the current proposal."""
        if edited is not None and self.host.walk is not None and self._state is not None:
            self._ask_name(edited, base)

    def _ask_name(
        self, source: bytes, base: Candidate | None, said: Said | None = None, problem: str = ""
    ) -> None:
        """The dialog, prefilled with what the detectors see, or with what was said before and what is wrong with it."""
        from klineage_tui.screens.naming import NameStep

        state = self._state
        assert state is not None

        def ask(offered: tuple[Said, Seen]) -> None:
            suggestion, seen = offered
            dialog = NameStep(said or suggestion, seen, dict(self.host.keys_in_force), problem)
            self.app.push_screen(dialog, lambda answer: self._named(source, base, answer))

        self.job("naming", lambda: _offered(state, source, base), ask)

    def _named(self, source: bytes, base: Candidate | None, said: Said | None) -> None:
        """Make a person's bytes the current proposal under their name; its gate result is stale from now on."""
        walk, state = self.host.walk, self._state
        if walk is None or state is None:
            return
        if said is None:
            current = self._queue.current
            if current is None or current.candidate.source != source:
                self.notify("Not taken; the draft is kept.", timeout=3)
            return

        def work() -> Candidate:
            return walk.edited(
                source,
                base=base,
                title=said.title,
                action=said.action,
                removes=said.removes,
                new_word=said.new_word,
            )

        def show(candidate: Candidate) -> None:
            self._queue = self._queue.edited(candidate, state.kernel_of(candidate).hash)
            self.show_queue()

        self.job("edit", work, show, lambda problem: self._ask_name(source, base, said, problem))

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
        self._take(draft.data, base)


def _offered(state: WalkState, source: bytes, base: Candidate | None) -> tuple[Said, Seen]:
    """What the naming of an edit begins with. Raises KlineageError when nothing was changed."""
    from klineage.walk import naming

    from klineage_tui.screens.naming import Said, Seen

    head, words = state.kernel, state.words
    if source == head.source:
        raise KlineageError("the edited kernel is the same as the current one; change something first")
    edited = replace(head, source=source)
    step = naming.suggestion(head, edited, base, words)
    names = tuple(dict.fromkeys(feature.name for feature in step.removes))
    gone, come = naming.gone(head, edited, words), naming.come(head, edited, words)
    return Said(step.action, step.title, names), Seen(tuple(map(str, gone)), tuple(map(str, come)))
