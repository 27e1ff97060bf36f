"""Library: which cards hold for a kernel, why each one matches, what the others need first; and writing them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Container

from klineage_tui.actions import bindings_for
from klineage_tui.library_search import (
    Found,
    Query,
    asked_of,
    checked_query,
    export,
    file_choice,
    kernels,
    search,
    with_kernel,
)
from klineage_tui.presentation.library import Results, heading, hit_lines, nothing_found, result_rows
from klineage_tui.screens.place import Place
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.pane import Pane
from klineage_tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from klineage.skill.library import Library
    from klineage.skill.retrieval import Hit

    from klineage_tui.card_checks import Choice
    from klineage_tui.screens.card_fields import Typed

_LOADING = "the library is still being read"
_NO_KERNEL = "any kernel"


class LibraryScreen(Place):
    """Begins with the state that the open lineage is at; enter opens a card in Cards. Needs no open lineage."""

    PLACE = "library"
    BINDINGS = [*bindings_for("library")]
    CSS_PATH = "library.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._library: Library | None = None
        self._query = Query()
        self._of_lineage: str | None = None  # the open lineage that the query was last made from
        self._found: Found | None = None
        self._rows = Results()
        self._sealed: tuple[str, ...] = ()
        self._from_top = False  # something else was asked for: the best of it first

    def compose(self) -> ComposeResult:
        yield TitleRow("Library", id="heading")
        with Container(id="panes"):
            yield Pane("CARDS", LineView(id="found-view", placeholder="Opening…"), id="found")
            yield Pane("WHY", LineView(id="hit-view", cursor=False), id="hit")
        yield ActionBar(self.PLACE, self.host.keys_in_force)

    def on_mount(self) -> None:
        self.found_view.focus()

    @property
    def found_view(self) -> LineView:
        return self.query_one("#found-view", LineView)

    @property
    def hit_view(self) -> LineView:
        return self.query_one("#hit-view", LineView)

    # -- reading ------------------------------------------------------------------------------------

    def reload_if_outdated(self) -> None:
        """It is read whenever it is shown: the index sees by itself what has changed."""
        if self.host.workspace is not None:
            self.reload()

    def reload(self) -> None:
        from klineage.skill.library import Library

        workspace, walk = self.host.workspace, self.host.walk
        assert workspace is not None
        if self._library is None:
            self._library = Library.of(workspace)
        lineage = walk.id if walk is not None else ""
        library, query, fresh = self._library, self._query, lineage != self._of_lineage
        self._of_lineage = lineage
        if fresh and lineage:
            query = self._query = with_kernel(query, lineage)

        def work() -> tuple[Found, tuple[str, ...]]:
            here = {choice.name: choice for choice in kernels(workspace, lineage)} if query.kernel else {}
            choice = (here.get(query.kernel) or file_choice(query)) if query.kernel else None
            sealed = tuple(summary.id for summary in workspace.lineages() if summary.sealed)
            return search(library, query, choice), sealed

        self.job("search", work, self._show, self._failed, busy="looking …")

    def _failed(self, sentence: str) -> None:
        self._found = Found(self._query.kernel or _NO_KERNEL, failed=sentence)
        self.redraw()

    def _show(self, answer: tuple[Found, tuple[str, ...]]) -> None:
        self._found, self._sealed = answer
        self.redraw()
        if self._from_top:
            self._from_top = False
            self.found_view.move_to(min(self._rows.selectable, default=0))

    def on_line_view_widened(self, message: LineView.Widened) -> None:
        if message.view in (self.found_view, self.hit_view):
            self.redraw()

    def redraw(self) -> None:
        """Draw what was found, the card under the cursor kept."""
        found, view = self._found, self.found_view
        if found is None:
            return
        here = self._rows.ids[view.cursor_row] if view.cursor_row < len(self._rows.ids) else ""
        self._rows = result_rows(found, max(30, view.size.width - 4))
        words = " ".join(filter(None, (self._query.words, self._query.action)))
        self.query_one("#heading", TitleRow).show(*heading(found, words, self._query.hypotheses))
        view.placeholder = nothing_found(found, self.host.keys_in_force, self._query.hypotheses)
        view.show(Lines(self._rows.lines, self._rows.selectable), keep_position=True)
        view.move_to(self._rows.ids.index(here) if here in self._rows.ids else 0, tell=False)
        if found.failed:
            shown = ""
        elif self._query.names_target:
            shown = f"{len(found.hits)} hold{'s' * (len(found.hits) == 1)}, {len(found.near)} not yet"
        else:
            every = "with these words" if words else "all of them"
            shown = f"{len(found.hits)} {every}; {self.key_of('library-search')} names a kernel"
        self.query_one("#found", Pane).entitle([("CARDS  ", ""), (shown, "$foreground")])
        self._show_hit()
        self._show_bar()

    @property
    def current(self) -> str:
        """The id of the card under the cursor, or nothing."""
        row = self.found_view.cursor_row
        return self._rows.ids[row] if row < len(self._rows.ids) else ""

    def _hit(self) -> Hit | None:
        found = self._found
        hits = (*found.hits, *found.near) if found is not None else ()
        return next((hit for hit in hits if hit.row.id == self.current), None)

    def _show_hit(self) -> None:
        hit, pane = self._hit(), self.query_one("#hit", Pane)
        cells = max(30, self.hit_view.size.width - 4)
        if hit is not None:
            pane.entitle(
                [("WHY  ", ""), (sanitize(hit.row.id), "$foreground")],
                f"{self.key_of('open')} opens the card",
            )
            asked = self._found.target if self._found is not None and self._query.names_target else ""
            self.hit_view.show(Lines(hit_lines(hit, cells, asked)))
        else:
            pane.entitle([("WHY  ", ""), (sanitize(self.current), "$foreground")])
            self.hit_view.show(Lines())

    # -- moving and asking --------------------------------------------------------------------------

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view is self.found_view:
            self._show_hit()

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        if message.view is self.found_view:
            self.action_verb("open")

    def do_open(self) -> None:
        self.host.show_card(self.current)

    def do_library_all(self) -> None:
        self._query = replace(self._query, hypotheses=not self._query.hypotheses)
        self.reload()

    def do_library_search(self) -> None:
        """Ask for words and for what a target is; a kernel that is named says the rest by itself."""
        from klineage_tui.screens.card_fields import FieldDialog

        query = self._query
        workspace = self.host.workspace
        assert workspace is not None

        def ask(found: tuple[Choice, ...]) -> None:
            names = tuple(choice.name for choice in found)

            def wrong(typed: Mapping[str, str]) -> None:
                checked_query(_typed(query, typed), names)

            dialog = FieldDialog(
                "What for?", "What is empty is not asked about.", asked_of(query, names), wrong,
                dict(self.host.keys_in_force), why=False, confirm="looks for it",
            )  # fmt: skip
            self.ask(dialog, lambda typed: self._ask(typed) if typed else None)

        lineage = self._of_lineage or ""
        self.job("kernels", lambda: kernels(workspace, lineage), ask)

    def _ask(self, typed: Typed) -> None:
        self._query, self._from_top = _typed(self._query, typed.values), True
        self.reload()

    def do_library_export(self) -> None:
        """Write the cards that were found, or all that are served, as what another tool reads."""
        from klineage_tui.screens.exporting import ExportDialog

        found, library = self._found, self._library
        assert found is not None and library is not None
        ids = tuple(hit.row.id for hit in found.hits)

        def answered(wanted: tuple[str, str] | None) -> None:
            if wanted is not None:
                form, folder = wanted
                done = lambda said: self.notify(said, timeout=8)  # noqa: E731
                self.job("export", lambda: export(library, ids, form, folder), done)

        self.app.push_screen(ExportDialog(ids, dict(self.host.keys_in_force)), answered)

    def do_lift(self) -> None:
        self.host.lift()

    def do_library_pull(self) -> None:
        self.host.pull()

    # -- what is closed, and why ------------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        if self._library is None or self._found is None:
            return _LOADING
        if action == "open":
            return "" if self.current else "there is no card to open"
        if action == "lift":
            return (
                "" if self._sealed else f"no lineage is sealed yet: {self.key_of('seal')} in Induce seals one"
            )
        if action == "library-export":
            return (
                "" if self._found.hits else "nothing that holds here was found, so there is nothing to write"
            )
        return ""

    def _show_bar(self) -> None:
        from klineage_tui.widgets.action_bar import footer_actions

        names = {action.id for action in footer_actions(self.PLACE)}
        closed = {name for name in names if self.closed(name)}
        status = "hypotheses too" if self._query.hypotheses else "admitted cards"
        self.query_one(ActionBar).show(closed, set(), status)


def _typed(query: Query, typed: Mapping[str, str]) -> Query:
    """The query as it was typed."""
    said: dict[str, Any] = {name: " ".join(value.split()) for name, value in typed.items()}
    return replace(query, **said)
