"""Ablation: what each optimization of a sealed lineage is worth first, in order and last, and which pays only after another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message

from klineage_tui.actions import bindings_for
from klineage_tui.card_ablation import Matrix, measure, read, record, take_offer
from klineage_tui.presentation.ablation_matrix import offer_words
from klineage_tui.presentation.gate import GateView
from klineage_tui.screens.ablation_panes import AblationPanes
from klineage_tui.screens.dialog import AskReason
from klineage_tui.screens.runs import Run, RunProgress
from klineage_tui.screens.trusting import trusting
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.lines import LineView

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.skill.ablation import Row
    from klineage.skill.library import Library

_LOADING = "the lineage is still being read"


class RowFound(Message):
    """A running ablation knows one more row; posted from its thread."""

    def __init__(self, run: Run, row: Row) -> None:
        super().__init__()
        self.run, self.row = run, row


class AblationScreen(AblationPanes):
    """The matrix of one lineage above everything that is known of the step under the cursor. It is measured from here,
    also while another place is shown; escape stops that, or goes back."""

    PLACE = "ablation"
    BINDINGS = [*bindings_for("ablation")]

    def __init__(self) -> None:
        super().__init__()
        self._lineage = ""
        self._back = "cards"  # the place that asked
        self._wanted = ""  # the commit that it asked for
        self._matrix: Matrix | None = None
        self._library: Library | None = None
        self._run: Run | None = None  # the one that runs
        self._last: Run | None = None  # the one that is shown

    # -- reading ------------------------------------------------------------------------------------

    def show_lineage(self, lineage: str, commit: str, back: str) -> None:
        """Show a lineage, the cursor on one of its steps; called by other places before they come here."""
        if self._run is not None and lineage != self._lineage:
            self.notify(
                f"{self._lineage} is being measured; {self.key_of('ablation-leave')} stops it",
                severity="warning",
            )
            return
        if lineage != self._lineage:
            self._matrix = self._last = None
        self._lineage, self._wanted, self._back = lineage, commit, back

    def reload_if_outdated(self) -> None:
        """It is read whenever it is shown: cards and steps may have changed."""
        if self.host.workspace is not None and self._lineage and self._run is None:
            self.reload()

    def reload(self) -> None:
        from klineage.skill.library import Library

        workspace, lineage = self.host.workspace, self._lineage
        assert workspace is not None
        if self._library is None:
            self._library = Library.of(workspace)
        library = self._library
        if self._matrix is None and self.query("#matrix-view"):
            self.show_nothing(lineage, "Reading…")
        self.job("matrix", lambda: read(workspace, library, lineage), self._show, self._unreadable)

    def _unreadable(self, sentence: str) -> None:
        self._matrix = None
        self.show_nothing(self._lineage, sentence)
        self._show_bar()

    def _show(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self.redraw()

    def redraw(self) -> None:
        """Draw the matrix, the step under the cursor kept."""
        if self._matrix is not None:
            here = self._wanted or (self._row.commit if self._row is not None else "")
            self._wanted = ""
            self.show_matrix(self._matrix, here)
            self._show_here()

    @property
    def _row(self) -> Row | None:
        """The row under the cursor; the first line is the header."""
        rows = self._matrix.ablation.rows if self._matrix is not None else ()
        at = self.matrix_view.cursor_row - 1
        return rows[at] if 0 <= at < len(rows) else None

    def _show_here(self) -> None:
        """What runs, or the step under the cursor; and what can be done with it."""
        if self._last is not None:
            self.show_run(self._last)
        elif self._matrix is not None and self._row is not None:
            self.show_row(self._matrix, self._row)
        self._show_bar()

    def on_line_view_widened(self, message: LineView.Widened) -> None:
        if message.view is self.matrix_view:
            self.redraw()

    def on_line_view_moved(self, message: LineView.Moved) -> None:
        if message.view is self.matrix_view:
            if self._run is None:
                self._last = None
            self._show_here()

    def on_line_view_opened(self, message: LineView.Opened) -> None:
        if message.view is self.matrix_view:
            self.action_verb("open")

    # -- measuring ----------------------------------------------------------------------------------

    def do_ablation_measure(self) -> None:
        """Gate every step in its places, after a question where the code is somebody else's."""
        trusting(self, [self._lineage], self._measure)

    def _measure(self) -> None:
        workspace, lineage = self.host.workspace, self._lineage
        assert workspace is not None
        self.drop("matrix")  # what was being read knows nothing of the rows to come
        run = self._run = self._last = Run(lineage, f"ABLATE {lineage}")

        def tell(event: GateEvent | str) -> None:
            self.post_message(RunProgress(run, event))

        def found(row: Row) -> None:
            self.post_message(RowFound(run, row))

        def work() -> str:
            return measure(workspace, lineage, tell, tell, found, run.cancel)

        self.job("ablation", work, lambda said: self._ended(run, said), lambda said: self._failed(run, said))
        self._ticker = self.set_interval(0.2, self._tick)
        self._show_here()

    def on_run_progress(self, message: RunProgress) -> None:
        message.run.heard(message.event)
        if message.run is self._run:
            self._tick()

    def on_row_found(self, message: RowFound) -> None:
        """A measured row takes the place of what was known of it."""
        if message.run is self._run and self._matrix is not None:
            found = self._matrix.ablation
            rows = tuple(message.row if row.commit == message.row.commit else row for row in found.rows)
            self._matrix = replace(self._matrix, ablation=replace(found, rows=rows))
            self.redraw()

    def _ended(self, run: Run, said: str) -> None:
        self._finish(run, said)
        if self.app.screen is not self:
            self.app.notify(f"{run.subject}: {said}", timeout=6)
        self.reload()

    def _failed(self, run: Run, said: str) -> None:
        stopped = "stopped; what was gated is remembered, and the next one goes on from there"
        self._finish(run, stopped if run.cancel.is_set() else said)
        if not run.cancel.is_set():
            self.complain(said)
        self.reload()

    def _finish(self, run: Run, said: str) -> None:
        run.end(said)
        run.view = GateView()  # the last gate of many says nothing of the whole
        self._run = None
        self._ticker.stop()
        self._show_here()

    def _tick(self) -> None:
        if self._last is not None:
            self.show_run(self._last)

    def do_ablation_leave(self) -> None:
        if self._run is not None:
            self._run.cancel.set()
            self._tick()
        else:
            self.host.go(self._back)

    def on_unmount(self) -> None:
        if self._run is not None:
            self._run.cancel.set()

    # -- what follows from it -----------------------------------------------------------------------

    def do_ablation_record(self) -> None:
        """Write what each step is worth first and last into the cards that were lifted from it."""
        matrix, library = self._matrix, self._library
        assert matrix is not None and library is not None, "why_not says so"

        def done(ids: tuple[str, ...]) -> None:
            none = "Nothing here is shown to be better than its noise, first or last."
            self.notify(f"Written into {', '.join(ids)}." if ids else none, timeout=8)
            self.host.decided()

        self.job("decision", lambda: record(library, matrix.ablation), done)

    def do_ablation_offer(self) -> None:
        """Let the card of this step require what it stands on, with a reason."""
        matrix, row, library = self._matrix, self._row, self._library
        assert matrix is not None and row is not None and library is not None, "why_not says so"
        offer, card = matrix.offers[row.number], matrix.card_of(row)

        def answered(reason: str | None) -> None:
            if reason:
                self.job("decision", lambda: take_offer(library, card, offer, reason), done)

        def done(_: None) -> None:
            self.notify(f"{card} requires {', '.join(offer.prior_actions)}.", timeout=6)
            self.host.decided()
            self.reload()

        keys = dict(self.host.keys_in_force)
        dialog = AskReason(
            "Require", f"{card}: {offer_words(offer)}.", keys, offer.why, "takes it into the card"
        )
        self.app.push_screen(dialog, answered)

    def do_ablation_history(self) -> None:
        row = self._row
        assert row is not None, "why_not says so"
        self.host.show_step(self._lineage, row.commit)

    def do_open(self) -> None:
        assert self._matrix is not None and self._row is not None, "why_not says so"
        self.host.show_card(self._matrix.card_of(self._row))

    # -- what is closed, and why --------------------------------------------------------------------

    def why_not(self, action: str) -> str:
        matrix, row = self._matrix, self._row
        if action == "ablation-leave":
            return ""
        if matrix is None or row is None:
            return _LOADING if not self.matrix_view.placeholder else self.matrix_view.placeholder
        if action in ("open", "ablation-history"):
            return "" if action != "open" or matrix.card_of(row) else f"no card was lifted from {row.name}"
        if self._run is not None:
            return f"{self._lineage} is being measured; {self.key_of('ablation-leave')} stops it"
        if action == "ablation-record" and not matrix.measured:
            return f"that is what its cards say already; {self.key_of('ablation-measure')} measures it"
        if action == "ablation-record" and not matrix.cards:
            return "no card here was lifted from this lineage"
        if action == "ablation-offer" and row.needs and row.number not in matrix.offers:
            return f"{matrix.card_of(row)} requires what it stands on already"
        if action == "ablation-offer" and row.number not in matrix.offers:
            ask = "" if matrix.measured else f"; {self.key_of('ablation-measure')} finds out"
            return f"nothing is known that {row.name} stands on{ask}"
        if action == "ablation-offer" and not matrix.card_of(row):
            return f"no card was lifted from {row.name}"
        return ""

    def _show_bar(self) -> None:
        from klineage_tui.widgets.action_bar import footer_actions

        closed = {action.id for action in footer_actions(self.PLACE) if self.closed(action.id)}
        self.query_one(ActionBar).show(closed, set(), "measuring" if self._run is not None else "")
