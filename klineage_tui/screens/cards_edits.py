"""Editing and deciding on a card: every change is one commit of the library, with its reason, and can be undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from klineage.errors import KlineageError
from textual.app import SuspendNotSupported

from klineage_tui.card_queue import CardQueue, Item, counts, trials
from klineage_tui.keys import shown_key
from klineage_tui.presentation.card_form import Ref
from klineage_tui.screens.cards_panes import CardsPanes
from klineage_tui.screens.dialog import AskReason, Confirm

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library import Library

    from klineage_tui.card_drafts import CardDrafts
    from klineage_tui.screens.card_fields import Typed


class CardsEdits(CardsPanes):
    """Adds the verbs that change a card. A save expects the version that was on screen."""

    _queue: CardQueue = CardQueue()
    _library: Library | None = None

    def __init__(self) -> None:
        super().__init__()
        self._deciding = False

    @property
    def library(self) -> Library:
        assert self._library is not None, "verbs run only while a library is open"
        return self._library

    @property
    def _drafts(self) -> CardDrafts:
        from klineage_tui.card_drafts import CardDrafts

        assert self.host.workspace is not None
        return CardDrafts(self.host.workspace.git.place)

    def _here(self) -> tuple[Item, Card]:
        item = self._queue.current
        assert item is not None and item.card is not None, "why_not says so"
        return item, item.card

    def key_of(self, action: str) -> str:
        return shown_key(self.host.keys_in_force[action])

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
            _examine(with_values(card, ref, typed))

        def answered(typed: Typed | None) -> None:
            if typed is not None:
                self._take_field(item, card, ref, typed)

        title = f"{ref.kind} {ref.key}".strip()
        question = f"{item.id}: what rests on the old words becomes stale."
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

    # -- deciding -------------------------------------------------------------------------------------

    def do_card_accept(self) -> None:
        """Admit: the person's own word, on a trial that is there."""
        item, card = self._here()
        shown = [v for v in trials(card) if counts(v, item.marks)][-1]
        self._save(
            item, replace(card, status="admitted"), f"{shown.key} shows it on {shown.target}", next_after=True
        )

    def do_card_retire(self) -> None:
        item, card = self._here()
        question = f"Take {item.id} out of use? It is kept, with its history, and served to nobody."

        def answered(reason: str | None) -> None:
            if reason:
                self._save(item, replace(card, status="retired", retired=reason), reason, next_after=True)

        keys = dict(self.host.keys_in_force)
        self.app.push_screen(AskReason("Retire", question, keys, confirm="retires it"), answered)

    def do_card_undo(self) -> None:
        library = self.library
        self._decide(library.undo, "Taken back: {}")

    def do_card_redo(self) -> None:
        library = self.library
        self._decide(library.redo, "Taken again: {}")

    def _save(
        self,
        item: Item,
        card: Card,
        reason: str,
        failed: Callable[[str], None] | None = None,
        *,
        next_after: bool = False,
    ) -> None:
        library = self.library

        def work() -> None:
            library.save(card, reason=reason, expected=item.revision)

        self._decide(work, "", failed, next_after=next_after)

    def _decide(
        self,
        work: Callable[[], object],
        said: str,
        failed: Callable[[str], None] | None = None,
        *,
        next_after: bool = False,
    ) -> None:
        """One decision at a time, off the screen's thread; then everything is read again."""
        self._deciding = True

        def done(what: object) -> None:
            if said:
                self.notify(said.format(what), timeout=4)
            if next_after:
                self.go_on()
            self.host.decided()
            self.reload_if_outdated()

        def broken(sentence: str) -> None:
            self._deciding = False
            self.complain(sentence)
            self.reload()

        self.job("decision", work, done, failed or broken)

    def go_on(self) -> None:
        """Go to the next card that needs a person, as soon as the library is read again."""
        raise NotImplementedError


def _examine(card: Card) -> None:
    """Raise KlineageError for what can be seen to be wrong with a card before it is saved."""
    from klineage.skill.file import render

    if card.anchor.query:
        from klineage.skill.anchors import compiled_query

        compiled_query(card.surface, card.anchor.query)
    render(card)


def file_problem(card_id: str, data: bytes) -> str:
    """What is wrong with a card's file, by line; empty when it can be taken."""
    from klineage.skill.file import parse

    try:
        _examine(parse(data, f"{card_id}.md"))
    except KlineageError as problem:
        return str(problem)
    return ""


def line_of(source: bytes, card_id: str, ref: Ref) -> int:
    """The line of a field in the card's file, counted from 1; the first where the file does not say."""
    from klineage.skill.file import lines

    name = {"precondition": "preconditions", "effect": "effects", "risk": "risks"}.get(ref.kind, ref.kind)
    wanted = f"{name}.{ref.key}" if ref.key else name
    with suppress(KlineageError):  # a broken file opens at its top, where it says what is wrong
        found = lines(source, f"{card_id}.md")
        inside = [line for field, line in found.items() if field == wanted or field.startswith(f"{wanted}.")]
        return min(inside, default=1)
    return broken_line(source, card_id)


def broken_line(source: bytes, card_id: str) -> int:
    """The line that a file cannot be read at, from the sentence that says so."""
    said = file_problem(card_id, source)
    _, _, rest = said.partition(f"{card_id}.md:")
    number = rest.partition(":")[0]
    return int(number) if number.isdecimal() else 1
