"""Cards: go through what a library claims, with what shows it beside each claim; edit, probe, try, admit, retire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from klineage.numbers import plural

from klineage_tui.actions import bindings_for
from klineage_tui.card_ablation import cited_lineages
from klineage_tui.card_queue import Item
from klineage_tui.card_reading import (
    Loaded,
    Shown,
    about,
    evidence_of,
    load,
    problems_of,
    revision_texts,
    troubled,
)
from klineage_tui.presentation.card_evidence import claim
from klineage_tui.presentation.card_queue import nothing_yet
from klineage_tui.screens.cards_runs import CardsRuns
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import LineView

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library.history import Revision

_NAMED = 3  # fields with problems that the title names
_LOADING = "the library is still being read"
_DECISIONS = (
    "card-accept",
    "card-retire",
    "card-merge",
    "card-edit",
    "card-add",
    "card-remove",
    "card-editor",
    "card-whole",
)


class CardsScreen(CardsRuns):
    """Reading and moving; what a verb means is the engine's business. Needs no open lineage."""

    PLACE = "cards"
    BINDINGS = [*bindings_for("cards")]

    def __init__(self) -> None:
        super().__init__()
        self._loaded = Loaded()
        self._reading = True
        self._skipped: frozenset[str] = frozenset()
        self._wanted = ""  # a card that another place asked for
        self._then: Callable[[], None] | None = None  # to be done once the library is read
        self._go_on = False  # a decision was taken: the next card comes by itself
        self._problems: dict[str, Mapping[str, Sequence[str]]] = {}  # revision -> what lint says of it

    # -- reading ------------------------------------------------------------------------------------

    def reload_if_outdated(self) -> None:
        """Another place, or the command line, may have written: it is read whenever it is shown, and only what is new is parsed.

        While a decision is being written, what is read may lack it: then it is read afterwards.
        """
        if self.host.workspace is not None and not self._deciding:
            self.reload()

    def reload(self) -> None:
        from klineage.skill.library import Library

        workspace = self.host.workspace
        assert workspace is not None
        if self._library is None:
            self._library = Library.of(workspace)
        library, skipped = self._library, self._skipped
        here = self._wanted or (self._queue.current.id if self._queue.current else "")
        self.job(
            "cards",
            lambda: load(library, workspace, skipped, here),
            self._show_loaded,
            self._unreadable,
            busy="reading …" if self._reading else "",
        )

    def _unreadable(self, sentence: str) -> None:
        self._reading = self._deciding = False
        self.queue_view.placeholder = sentence
        self.complain(sentence)

    def _show_loaded(self, loaded: Loaded) -> None:
        self._take_cursors()
        here = self._queue.current.id if self._queue.current else ""
        self._loaded, self._queue = loaded, loaded.queue.on(self._wanted or here)
        self._reading = self._deciding = False
        self._wanted = ""
        if self._go_on:
            self._queue = self._queue.next_needed()
            self._go_on = False
        self._draw()
        then, self._then = self._then, None
        if then is not None:
            then()

    def redraw(self) -> None:
        if self._reading:
            return
        self._take_cursors()
        row = self.form_view.cursor_row
        if row != self._form.row_of(self._field):
            self._field = self._form.refs[row] or self._field
        self._draw()

    def _take_cursors(self) -> None:
        """What is drawn again puts the cursors where the place knows them to be, and the reader may be further by now."""
        self._queue = self._queue.at(self.queue_view.cursor_row)

    def _draw(self) -> None:
        self.show_queue(self._queue, nothing_yet(self.host.keys_in_force, self._loaded.sealed))
        self._show_current()

    def show_id(self, card_id: str) -> None:
        """Show a card; called by other places before they come here."""
        self._wanted = card_id
        self._queue = self._queue.on(card_id)

    def _show_current(self) -> None:
        item = self._queue.current
        self.show_card(item, self._answers_of(item), self._places_of(item), self._said_of(item))
        if self._last is not None:
            self.show_test()
        if item is not None and item.card is not None and item.revision not in self._problems:
            self._ask_lint(item)
        self._show_bar()

    def _ask_lint(self, item: Item) -> None:
        """What lint says of the current card; only the latest request counts."""
        card = item.card
        assert card is not None
        others = [other.card for other in self._queue.items if other.card is not None and other.id != item.id]

        def show(found: Mapping[str, Sequence[str]]) -> None:
            self._problems[item.revision] = found
            if self._queue.current is item:
                self.entitle_card(self._title_right(item))
                if self._last is None:
                    self.show_behind(self._said_of(item))

        self.job("lint", lambda: problems_of(card, others), show)

    def _said_of(self, item: Item | None) -> tuple[str, ...]:
        """The problems of the field under the cursor."""
        if item is None:
            return ()
        return about(self._problems.get(item.revision, {}), self._field.kind, self._field.key)

    def _checked_on(self) -> str:
        item = self._queue.current
        return "" if item is None else self._title_right(item)

    def _title_right(self, item: Item) -> str:
        """On what kernel it was checked, and how many problems lint names, and where: the cursor there shows them."""
        problems = self._problems.get(item.revision, {})
        number, fields = sum(map(len, problems.values())), troubled(problems)
        named = sanitize(", ".join(fields[:_NAMED])) + ", …" * (len(fields) > _NAMED)
        lint = f"lint: {plural(number, 'problem')} at {named}" if number else ""
        return "  ".join(filter(None, (self._target_name(item), lint)))

    # -- moving -------------------------------------------------------------------------------------

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view is self.queue_view:
            self._queue = self._queue.at(message.row)
            self.forget_test()
            self._show_current()
            self.entitle_place(self._queue)
        elif message.view is self.form_view:
            ref = self._form.refs[message.row] if message.row < len(self._form.refs) else None
            if ref is not None:
                self._field = ref
                self.reveal_field(message.row)
                self.forget_test()
                if self._last is None:
                    self.show_behind(self._said_of(self._queue.current))
                self._show_bar()

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        view = message.view
        if view is self.queue_view:
            self.choose_tab(0)
        elif view is self.form_view:
            self._open_field()
        elif view is self.behind_view and self.evidence_here is not None:
            self._open_evidence()

    def _open_field(self) -> None:
        """Enter on a field: to the only piece of evidence at once, else to the list of them."""
        self.forget_test()
        self.show_behind(self._said_of(self._queue.current))
        rows = sorted(self._behind.selectable)
        if len(rows) == 1:
            self.behind_view.move_to(rows[0], tell=False)
            self._open_evidence()
        else:
            self.choose_tab(1)

    def _open_evidence(self) -> None:
        from klineage_tui.screens.card_evidence import EvidenceScreen

        _, card = self._here()
        evidence, workspace, library = self.evidence_here, self.host.workspace, self.library
        assert evidence is not None and workspace is not None
        field = self._field
        place = field.kind in ("precondition", "anchor", "requires", "provides", "conflicts")

        def show(found: Shown) -> None:
            keys, layout = dict(self.host.keys_in_force), self.host.diff_layout
            screen = EvidenceScreen(found, claim(card, field), keys, place=place, layout=layout)  # type: ignore[arg-type]
            self.ask(screen, lambda commit: self._to_history(evidence.lineage, commit) if commit else None)

        self.job("evidence", lambda: evidence_of(library, workspace, card, evidence), show)

    def _to_history(self, lineage: str, commit: str) -> None:
        self.host.show_step(lineage, commit)

    def do_card_skip(self) -> None:
        """Leave it for later, or take it up again."""
        item = self._queue.current
        assert item is not None, "why_not says so"
        self._skipped = self._skipped ^ {item.id}
        self._go_on = item.id in self._skipped
        self.reload()

    def do_card_next(self) -> None:
        self._queue = self._queue.next_needed()
        self.forget_test()
        self._draw()

    def after_reading(self, then: Callable[[], None]) -> None:
        self._then = then
        self.reload()

    def go_on(self) -> None:
        self._go_on = True

    def do_card_revisions(self) -> None:
        from klineage_tui.screens.card_lists import RevisionsScreen, revision_line

        item, library = self._queue.current, self.library
        assert item is not None, "why_not says so"

        def show(revisions: Sequence[Revision]) -> None:
            rows = [revision_line(f"{r.when:%Y-%m-%d %H:%M}", r.who, r.title, r.reason) for r in revisions]
            read = partial(revision_texts, library, item.id, revisions)
            self.ask(RevisionsScreen(item.id, rows, read, dict(self.host.keys_in_force)), lambda _: None)

        self.job("revisions", lambda: library.history(item.id), show)

    # -- what is closed, and why ------------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        item = self._queue.current
        if action == "card-cancel":
            return "" if self._run is not None else "nothing is running"
        if self._library is None or self._reading:
            return _LOADING
        if self._deciding and action in (*_DECISIONS, "card-undo", "card-redo"):
            return "the last decision is still being written"
        if action == "card-undo":
            return "" if self._loaded.undo else "no decision to take back"
        if action == "card-redo":
            return "" if self._loaded.redo else "nothing was undone"
        if action == "card-next":
            return "" if self._queue.needed else "no card needs you"
        if action == "lift":
            return (
                ""
                if self._loaded.sealed
                else f"no lineage is sealed yet: {self.key_of('seal')} in Induce seals one"
            )
        if action == "library-pull":
            return ""
        if item is None:
            return "there is no card yet"
        if self._run is not None and self._run.subject == item.id and action in _DECISIONS:
            return f"it is being tested, and would change under the test; {self.key_of('card-cancel')} stops that"
        if action in ("card-editor", "card-skip", "card-revisions"):
            return ""
        if item.card is None:
            return f"it cannot be read; {self.key_of('card-editor')} opens the file"
        return self._why_not_here(action, item)

    def _why_not_here(self, action: str, item: Item) -> str:
        from klineage_tui.card_queue import counts, trials

        card = item.card
        assert card is not None
        if action == "card-accept":
            if card.status == "admitted":
                return "it is admitted already"
            if card.status == "retired":
                return f"it is retired; {self.key_of('card-whole')} changes its status"
            shown = any(counts(v, item.marks) for v in trials(card))
            return (
                ""
                if shown
                else f"no held-out kernel shows what it says now; {self.key_of('card-try')} tries it on one"
            )
        if action == "card-retire":
            return "it is retired already" if card.status == "retired" else ""
        if action == "ablation":
            found = cited_lineages(card, self._field, self._loaded.sealed)
            return "" if found else "no lineage that it was lifted from is sealed here"
        if action == "card-merge":
            return "" if self.mergeable(item) else self._why_not_merged(card)
        if action == "card-remove":
            from klineage_tui.card_edits import why_not_removed

            return why_not_removed(card, self._field)
        return self.why_not_test(action, card)

    def _why_not_merged(self, card: Card) -> str:
        """Why no other card can be merged into this one: what a merge with the likeliest would say."""
        from klineage.skill.library.curating import why_not_united

        if card.status == "retired":
            return f"it is retired: {card.retired or 'no reason is given'}"
        wanted = (card.surface, card.action)
        others = [o.card for o in self._queue.items if o.card is not None and o.id != card.id]
        alike = [o for o in others if (o.surface, o.action) == wanted and o.status != "retired"]
        if alike:
            return why_not_united(card, alike[0])
        return f"there is no other card of {card.action} for {card.surface}"

    def _show_bar(self) -> None:
        from klineage_tui.widgets.action_bar import footer_actions

        names = {action.id for action in footer_actions(self.PLACE)}
        closed = {name for name in names if self.closed(name)}
        hidden = set() if self._run is not None else {"card-cancel"}
        self.query_one(ActionBar).show(closed, hidden, "")

    def action_verb(self, action: str) -> None:
        if action == "card-cancel" and self._run is None:
            return  # escape with nothing to stop needs no answer
        super().action_verb(action)

    def do_ablation(self) -> None:
        """Go to the lineage that the field under the cursor rests on, after a question where there are several."""
        from klineage_tui.screens.card_lists import Choose, choice_line, choice_names

        _, card = self._here()
        found = cited_lineages(card, self._field, self._loaded.sealed)
        if len(found) == 1:
            self.host.show_ablation(*found[0])
            return
        names = choice_names([lineage for lineage, _ in found])
        notes = {(e.lineage, e.commit): e.note for e in card.evidence if e.kind == "transition"}
        rows = [(each, choice_line(name, notes[each])) for each, name in zip(found, names, strict=True)]
        dialog = Choose("Ablation", "Of which lineage?", rows, "shows it", dict(self.host.keys_in_force))
        self.app.push_screen(dialog, lambda each: self.host.show_ablation(*each) if each else None)

    def do_lift(self) -> None:
        self.host.lift()

    def do_library_pull(self) -> None:
        self.host.pull()
