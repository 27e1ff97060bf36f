"""Editing a card, one field or the whole file: every change is one commit of the library, with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from textual.app import SuspendNotSupported

from klineage_tui.card_files import examine, file_problem, line_of
from klineage_tui.card_queue import Item
from klineage_tui.presentation.card_form import Ref
from klineage_tui.screens.cards_decisions import CardsDecisions
from klineage_tui.screens.dialog import AskReason, Confirm

if TYPE_CHECKING:
    from klineage.skill.card import Card

    from klineage_tui.card_drafts import CardDrafts
    from klineage_tui.screens.card_fields import Typed


#: Fields that no trial and no probe rests on.
_UNTESTED = frozenset({"intent", "scope", "risk"})


class CardsEdits(CardsDecisions):
    """Adds the verbs that change what a card says. A save expects the version that was on screen."""

    @property
    def _drafts(self) -> CardDrafts:
        from klineage_tui.card_drafts import CardDrafts

        assert self.host.workspace is not None
        return CardDrafts(self.host.workspace.git.place)

    # -- one field ----------------------------------------------------------------------------------

    def do_card_edit(self) -> None:
        from klineage_tui.card_edits import why_not_here

        _, card = self._here()
        if self._field.kind in ("carrier", "notes"):
            self.do_card_whole()
        elif reason := why_not_here(card, self._field):
            hint = (
                f"{self.key_of('card-add')} adds one"
                if "yet" in reason
                else f"{self.key_of('card-whole')} opens the file"
            )
            self.notify(f"{reason}; {hint}.", severity="warning")
        else:
            self._ask_field(card, self._field)

    def do_card_add(self) -> None:
        from klineage_tui.card_edits import added

        _, card = self._here()
        self._ask_field(*added(card, self._field))

    def _ask_field(
        self,
        card: Card,
        ref: Ref,
        values: Mapping[str, str] | None = None,
        reason: str = "",
        problem: str = "",
    ) -> None:
        """Ask for the texts of one field; ``card`` is what they are put into."""
        from klineage_tui.card_edits import inputs_of, with_values
        from klineage_tui.screens.card_fields import FieldDialog

        item, _ = self._here()
        asked = [replace(a, value=values[a.name]) if values else a for a in inputs_of(card, ref)]

        def wrong(typed: Mapping[str, str]) -> None:
            examine(with_values(card, ref, typed), card)

        def answered(typed: Typed | None) -> None:
            if typed is not None:
                self._take_field(item, card, ref, typed)

        title = f"{ref.kind} {ref.key}".strip()
        rests = "nothing that was tested rests" if ref.kind in _UNTESTED else "what rests"
        becomes = "" if ref.kind in _UNTESTED else " becomes stale"
        question = f"{item.id}: {rests} on the old words{becomes}."
        keys = dict(self.host.keys_in_force)
        dialog = FieldDialog(title, question, asked, wrong, keys, reason=reason, problem=problem)
        self.app.push_screen(dialog, answered)

    def _take_field(self, item: Item, card: Card, ref: Ref, typed: Typed) -> None:
        from klineage_tui.card_edits import with_values

        changed = with_values(card, ref, typed.values)
        if changed == item.card:
            self.notify("Nothing was changed.", timeout=3)
            return
        self._field = ref

        def again(problem: str) -> None:
            self._deciding = False
            self.after_reading(lambda: self._ask_again(item.id, ref, typed, problem))

        self._save(item, changed, typed.reason, again)

    def _ask_again(self, card_id: str, ref: Ref, typed: Typed, problem: str) -> None:
        """Ask once more what could not be saved, on the card as it is by now, with what was typed."""
        from klineage_tui.card_edits import added, why_not_here

        here = self._queue.current
        if here is None or here.id != card_id or here.card is None:
            self.complain(problem)
            return
        card = here.card
        if why_not_here(card, ref):  # it was to be added, or somebody has taken it out
            card, ref = added(card, ref)
        self._ask_field(card, ref, typed.values, typed.reason, problem)

    def after_reading(self, then: Callable[[], None]) -> None:
        """Read the library again, then do this."""
        raise NotImplementedError

    def do_card_remove(self) -> None:
        from klineage_tui.card_edits import removed

        item, card = self._here()
        ref = self._field
        question = f"Take {ref} out of {item.id}? Its evidence stays, and so does its history."

        def answered(reason: str | None) -> None:
            if reason:
                self._save(item, removed(card, ref), reason)

        keys = dict(self.host.keys_in_force)
        self.app.push_screen(AskReason("Take out", question, keys, confirm="takes it out"), answered)

    # -- the whole card -------------------------------------------------------------------------------

    def do_card_whole(self) -> None:
        """The file in the app's own editor, checked as it is typed; a draft of before is offered."""
        self._with_source(self._open_editor)

    def do_card_editor(self) -> None:
        self._with_source(self._outside)

    def _with_source(self, then: Callable[[Item, bytes, int], None]) -> None:
        """Read the file and its draft, ask which one is meant, and go on with the line of the field."""
        item = self._queue.current
        assert item is not None, "why_not says so"
        library, drafts = self.library, self._drafts

        def read() -> tuple[bytes, bytes | None, int]:
            source = library.source(item.id)
            return source, drafts.read(item.id), line_of(source, item.id, self._field)

        def choose(found: tuple[bytes, bytes | None, int]) -> None:
            source, draft, line = found
            if draft is None or draft == source:
                then(item, source, line)
                return
            dialog = Confirm(
                "Draft",
                f"{item.id} was being edited. Go on with that, or start again from the card?",
                "goes on",
                dict(self.host.keys_in_force),
                cancel="starts again",
            )
            self.app.push_screen(dialog, lambda yes: then(item, draft if yes else source, line))

        self.job("source", read, choose)

    def _open_editor(self, item: Item, source: bytes, line: int) -> None:
        from klineage_tui.screens.edit import EditScreen, why_not_here

        if reason := why_not_here(source):
            self.notify(f"{reason}; {self.key_of('card-editor')} opens your own editor", severity="warning")
            return
        drafts = self._drafts
        screen = EditScreen(
            partial(drafts.save, item.id),
            partial(drafts.clear, item.id),
            f"{item.id}.md",
            source,
            "what is wrong is said below",
            line,
            self.host.keys_in_force,
            check=partial(file_problem, item.id),
        )
        self.app.push_screen(screen, lambda edited: self._take_file(item, edited))

    def _outside(self, item: Item, source: bytes, line: int) -> None:
        """$EDITOR on the file; what is wrong with what comes back is kept as a draft, and said."""
        from klineage_tui.config import editor_command
        from klineage_tui.editor import edit_outside

        drafts = self._drafts
        try:
            drafts.save(item.id, source)
            edited = edit_outside(
                editor_command(self.host.config), f"{item.id}.md", source, line, self.app.suspend
            )
            drafts.save(item.id, edited)
        except KlineageError as problem:
            self.complain(str(problem))
            return
        except SuspendNotSupported:
            self.complain(f"this terminal cannot be given away; {self.key_of('card-whole')} edits here")
            return
        self.refresh()
        if wrong := file_problem(item.id, edited):
            again = f"{self.key_of('card-editor')} goes on with it."
            self.complain(f"Not taken: {wrong}. The draft is kept; {again}")
        else:
            self._take_file(item, edited)

    def _take_file(self, item: Item, edited: bytes | None) -> None:
        """Ask why, then make these bytes the card."""
        if edited is None:
            return
        library, drafts = self.library, self._drafts

        def answered(reason: str | None) -> None:
            if not reason:
                self.notify("Not taken; the draft is kept.", timeout=3)
                return

            def work() -> None:
                if library.source(item.id) != edited:
                    library.save_source(item.id, edited, reason=reason, expected=item.revision)
                drafts.clear(item.id)

            self._decide(work, f"{item.id} is saved.")

        question = f"{item.id} as you edited it: what rests on what you changed becomes stale."
        self.app.push_screen(
            AskReason("Why?", question, dict(self.host.keys_in_force), confirm="saves it"), answered
        )
