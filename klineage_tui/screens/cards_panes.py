"""The Cards place as drawn: queue, card, and what stands behind a field. Nothing is read and nothing decided here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from klineage.numbers import plural
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from klineage_tui.card_queue import CardQueue, Item
from klineage_tui.presentation.card_evidence import Behind, behind
from klineage_tui.presentation.card_form import Form, Ref, broken_form, card_form
from klineage_tui.presentation.card_queue import card_heading, cut_why, queue_counts, queue_lines, why_lines
from klineage_tui.screens.side_tabs import SideTabs
from klineage_tui.text.line import Line
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.pane import Pane, TabRow
from klineage_tui.widgets.title_row import TitleRow

if TYPE_CHECKING:
    from klineage.skill.card import Evidence

    from klineage_tui.presentation.card_form import Parts


class CardsPanes(SideTabs):
    """Geometry and drawing. Wide: the queue beside the card; narrow: above tabs."""

    CSS_PATH = "cards.tcss"
    PANES = ("queue", "card", "behind")

    def __init__(self) -> None:
        super().__init__()
        self._form = Form()
        self._behind = Behind()
        self._field = Ref("intent")  # what the form's cursor is on; kept from card to card
        self._shown: Item | None = None

    def compose(self) -> ComposeResult:
        yield TitleRow("Cards", id="heading")
        with Container(id="panes"):
            yield LineView(id="queue", placeholder="Opening…")
            with Vertical(id="side", classes="-tab-card"):
                yield TabRow(("Card", "Behind"))
                yield Pane(
                    "CARD",
                    LineView(id="card-why", cursor=False),
                    LineView(id="form"),
                    id="card",
                )
                yield Pane(
                    "BEHIND", LineView(id="behind-view"), LineView(id="run-view", cursor=False), id="behind"
                )
        yield ActionBar(self.PLACE, self.host.keys_in_force)

    def on_mount(self) -> None:
        self.query_one("#card-why").can_focus = False
        self.query_one("#run-view").display = False
        self.queue_view.focus()

    # -- parts --------------------------------------------------------------------------------------

    @property
    def queue_view(self) -> LineView:
        return self.query_one("#queue", LineView)

    @property
    def form_view(self) -> LineView:
        return self.query_one("#form", LineView)

    @property
    def behind_view(self) -> LineView:
        return self.query_one("#behind-view", LineView)

    @property
    def run_view(self) -> LineView:
        return self.query_one("#run-view", LineView)

    @property
    def evidence_here(self) -> Evidence | None:
        """The evidence under the cursor of the lower pane."""
        row = self.behind_view.cursor_row
        return self._behind.opens[row] if row < len(self._behind.opens) else None

    # -- drawing ------------------------------------------------------------------------------------

    def show_queue(self, queue: CardQueue, placeholder: str) -> None:
        """Every card in one row, the cursor on the current one."""
        view = self.queue_view
        view.placeholder = placeholder
        view.show(Lines(queue_lines(queue, max(20, view.size.width - 3))), keep_position=True)
        view.move_to(queue.position, tell=False)
        self.entitle_place(queue)

    def entitle_place(self, queue: CardQueue) -> None:
        self.query_one("#heading", TitleRow).show(card_heading(queue.current), queue_counts(queue))

    def entitle_card(self, right: str) -> None:
        """Name the current card above its form, with ``right`` at the other end."""
        item = self._shown
        if item is not None and item.card is not None:
            self.query_one("#card", Pane).entitle([("CARD  ", ""), (sanitize(item.id), "$foreground")], right)

    def show_card(
        self, item: Item | None, answers: Mapping[str, Parts], places: str, problems: Sequence[str]
    ) -> None:
        """The current card, its field under the cursor kept; a card that cannot be read says where it is wrong."""
        self._shown = item
        why = self.query_one("#card-why", LineView)
        form, pane = self.form_view, self.query_one("#card", Pane)
        if item is None:
            pane.entitle("CARD")
            why.show(Lines())
            self._form = Form()
            form.show(Lines())
            self.show_behind(())
            return
        cells = max(40, form.size.width - 4)
        why.show(Lines(why_lines(item, self.host.keys_in_force, cells)))
        if item.card is None:
            pane.entitle([("CARD  ", ""), ("cannot be read", "$verdict-fail")])
            self._form = broken_form(item.why, cells)
        else:
            self.entitle_card(self._checked_on())
            self._form = card_form(item.card, item.marks, cells, answers, places)
        form.show(Lines(self._form.lines, self._form.selectable), keep_position=True)
        form.move_to(self._form.row_of(self._field), tell=False)
        self.show_behind(problems)

    def _checked_on(self) -> str:
        """On what the preconditions were evaluated, for the title of the card."""
        return ""

    def reveal_field(self, row: int) -> None:
        """Bring every row of the field under the cursor into view, as far as they fit."""
        view, refs = self.form_view, self._form.refs
        last = row
        while last + 1 < len(refs) and refs[last + 1] == refs[row]:
            last += 1
        height = view.scrollable_content_region.height
        if last > view.scroll_offset.y + height - 1 and last - row < height:
            view.scroll_to(y=last - height + 1, animate=False, force=True)

    def show_behind(self, problems: Sequence[str]) -> None:
        """The evidence of the field under the cursor, in place of a test that has ended."""
        item, pane, view = self._shown, self.query_one("#behind", Pane), self.behind_view
        self.run_view.display, view.display = False, True
        self.remove_class("-testing")
        if item is None or item.card is None:
            self._behind = Behind()
            pane.entitle("BEHIND")
            view.show(Lines())
            return
        cut = cut_why(item, self.host.keys_in_force, max(40, self.form_view.size.width - 4))
        self._behind = behind(item.card, self._field, item.marks, self.lower_cells, problems, cut)
        number = len(self._behind.selectable)
        pane.entitle(
            [("BEHIND  ", ""), (str(self._field), "$foreground")],
            f"{plural(number, 'piece')} of evidence, enter opens one" if number else "",
        )
        view.show(Lines(self._behind.lines, self._behind.selectable or None))

    def show_run(self, title: Sequence[tuple[str, str]], right: str, lines: Sequence[Line]) -> None:
        """A probe or a trial that runs, or has just ended, in place of the evidence."""
        had_focus = self.behind_view.has_focus
        self.behind_view.display, self.run_view.display = False, True
        self.add_class("-testing")
        if had_focus:
            self.run_view.focus()
        self.query_one("#behind", Pane).entitle(title, right)
        self.run_view.show(Lines(list(lines)), keep_position=True)

    @property
    def lower_cells(self) -> int:
        """The cells of a row of the lower pane, which has no size of its own while it is a hidden tab."""
        return max(30, self.query_one("#side").size.width - 6)

    def on_line_view_widened(self, message: LineView.Widened) -> None:
        if message.view in (self.form_view, self.queue_view):
            self.redraw()

    def redraw(self) -> None:
        """Draw again what depends on the width."""

    # -- panes and tabs -----------------------------------------------------------------------------

    def view_of(self, pane: str) -> LineView:
        if pane == "behind":
            return self.run_view if self.run_view.display else self.behind_view
        return self.form_view if pane == "card" else self.queue_view
