"""The latencies of a lineage as bars.

view = Waterfall(id="waterfall")
view.show_steps(steps, select=commit)
view.step                       # the state under the cursor
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events

from klineage_tui.presentation.waterfall import waterfall_lines
from klineage_tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from klineage.lineage import Step


class Waterfall(LineView):
    """See the module's text."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._steps: Sequence[Step] = ()

    def show_steps(self, steps: Sequence[Step], *, select: str = "") -> None:
        """Show the states, with the cursor on the commit ``select`` when it is one of them."""
        self._steps = steps
        self._draw(keep_position=False)
        self.select(select)

    def select(self, commit: str) -> None:
        """Put the cursor on a state, if it is one of those shown."""
        for index, step in enumerate(self._steps):
            if step.commit == commit:
                self.move_to(self._first + index, tell=False)

    @property
    def step(self) -> Step | None:
        return self._steps[self.cursor_row - self._first] if self._steps else None

    @property
    def _first(self) -> int:
        return len(self.document) - len(self._steps)

    def _draw(self, *, keep_position: bool) -> None:
        if not self._steps:
            self.show(Lines())
            return
        lines = waterfall_lines(self._steps, self.scrollable_content_region.width - 1)
        states = frozenset(range(len(lines) - len(self._steps), len(lines)))
        self.show(Lines(lines, states), keep_position=keep_position)

    def on_resize(self, event: events.Resize) -> None:
        self._draw(keep_position=True)
