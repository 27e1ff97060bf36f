"""One piece of a card's evidence: what the step changed, at the card's own place, and why; or what the gate said."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.screen import ModalScreen

from klineage_tui.actions import bindings_for
from klineage_tui.presentation.details import reason_lines
from klineage_tui.presentation.gate import GateView, gate_lines
from klineage_tui.presentation.walk import step_name
from klineage_tui.screens.in_step import InStep
from klineage_tui.screens.place import once_drawn
from klineage_tui.text.columns import width
from klineage_tui.text.line import Line
from klineage_tui.text.sanitize import sanitize
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.diff_view import DiffView, LayoutMode
from klineage_tui.widgets.lines import Lines, LineView
from klineage_tui.widgets.source_view import SourceView
from klineage_tui.widgets.title_row import TitleRow
from klineage_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.skill.anchors import Place

    from klineage_tui.card_reading import Shown

_LONG = 12  # lines of a place beyond which its first one is marked alone


class EvidenceScreen(InStep, ModalScreen[str | None]):
    """Dismissed with a commit that is to be shown in History, or None.

    claim: the sentence of the field that cites this evidence. place: whether the card's place is shown first, and not
    the first change.
    """

    BINDINGS = [*bindings_for("evidence")]
    DEFAULT_CSS = """
    EvidenceScreen { background: $background; }
    EvidenceScreen #evidence-title { background: $surface; color: $foreground; }
    EvidenceScreen #evidence-claim { background: $surface; color: $muted; }
    EvidenceScreen DiffView, EvidenceScreen SourceView { height: 3fr; }
    EvidenceScreen #evidence-why { height: 2fr; padding: 0 1; border-top: solid $border-blurred; }
    """

    def __init__(
        self, shown: Shown, claim: str, keys: dict[str, str], *, place: bool, layout: LayoutMode = "auto"
    ) -> None:
        super().__init__()
        self._shown, self._claim, self._keys = shown, sanitize(" ".join(claim.split())), keys
        self._place, self._layout = place, layout

    def compose(self) -> ComposeResult:
        yield TitleRow(id="evidence-title")
        yield TitleRow(self._claim, id="evidence-claim")
        if self._shown.before is not None:
            yield DiffView(layout_mode=self._layout, placeholder="Nothing differs.", id="evidence-diff")
        elif self._shown.after is not None:
            yield SourceView(id="evidence-source")
        yield LineView(cursor=False, id="evidence-why")
        yield ActionBar("evidence", self._keys)
        yield TooSmall()

    def on_mount(self) -> None:
        shown = self._shown
        evidence = shown.evidence
        left = [
            (f"{sanitize(evidence.key)}  ", "bold"),
            (f"{evidence.kind}  ", "$muted"),
            (self._where(), ""),
        ]
        self.query_one("#evidence-title", TitleRow).show(left, self._found())
        if shown.before is not None and shown.after is not None:
            self._show_diff(shown.before, shown.after)
        elif shown.after is not None:
            view = self.query_one(SourceView)
            view.show_source(shown.after.text, shown.after.filename)
            view.mark(frozenset(line - 1 for line in self._lines()))
            view.focus()
        else:
            self.query_one("#evidence-why").focus()
        self._fit()

    def _show_diff(self, before: Kernel, after: Kernel) -> None:
        view = self.query_one(DiffView)
        view.show_diff(before.text, after.text, self._shown.ops, after.filename)
        lines = self._lines()
        view.mark_old_lines(frozenset(lines))
        if lines and self._place:
            self.call_after_refresh(view.go_to_old_line, lines[0])
        view.focus()

    def _lines(self) -> list[int]:
        """The lines of the places that the card's anchor finds, counted from 1; of a long place, the first."""
        return [line for place in self._shown.places for line in _marked_lines(place)]

    def _where(self) -> str:
        """The step, with its lineage and its subject; of a report alone, its note."""
        evidence, step = self._shown.evidence, self._shown.step
        if step is None:
            return sanitize(" ".join(evidence.note.split()))
        return sanitize(f"{evidence.lineage} {step_name(step)}: {step.subject}")

    def _cut(self, cells: int) -> list[Line]:
        """What the two rows at the top have no room for."""
        taken = len(self._shown.evidence.key) + len(self._shown.evidence.kind) + 6 + len(self._found())
        lines = []
        for text, room in ((self._where(), cells - taken), (self._claim, cells)):
            if width(text) > room:
                lines += [Line(row) for row in textwrap.wrap(text, cells, break_on_hyphens=False)]
        return [*lines, Line("")] if lines else []

    def _found(self) -> str:
        places = self._shown.places
        if not places:
            return ""
        at = ", ".join(str(place.line) for place in places[:3]) + (", …" if len(places) > 3 else "")
        return f"its anchor: line{'s' * (len(places) > 1)} {at} before"

    def on_resize(self) -> None:
        once_drawn(self, self._fit)

    def _fit(self) -> None:
        why = self.query_one("#evidence-why", LineView)
        cells = max(30, self.size.width - 4)
        shown = self._shown
        lines = self._cut(cells)
        if shown.report is not None and (shown.evidence.report or shown.step is None or not shown.step.gate):
            lines += [*gate_lines(GateView("current", shown.report), cells), Line("")]
        if shown.step is not None:
            lines += reason_lines(shown.step, cells)
        why.show(Lines(lines), keep_position=True)

    def action_evidence_history(self) -> None:
        step = self._shown.step
        if step is None:
            self.notify("This evidence is a report of its own; no lineage has it.", severity="warning")
        elif not self._shown.here:
            name = self._shown.evidence.lineage
            self.notify(
                f"{name} came with the cards; klineage bundle open brings it in here.", severity="warning"
            )
        else:
            self.dismiss(step.commit)

    def action_help(self) -> None:
        from klineage_tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen("evidence", self._keys))

    def action_evidence_leave(self) -> None:
        self.dismiss(None)

    def on_action_bar_chosen(self, message: ActionBar.Chosen) -> None:
        self.run_worker(self.run_action(message.action.replace("-", "_")))


def _marked_lines(place: Place) -> range:
    last = place.last_line if place.last_line - place.line < _LONG else place.line
    return range(place.line, last + 1)
