"""A place of three panes: one, and beside it two above each other, which are tabs on narrow terminals."""

from __future__ import annotations

from typing import ClassVar

from textual.widget import Widget

from klineage_tui.screens.place import Place
from klineage_tui.widgets.pane import TabRow


class SideTabs(Place):
    """The focus goes round the panes, and a tab is chosen by its number.

    Subclasses set ``PANES``, the ids of the three with the one alone first, compose the other two into ``#side`` under
    a ``TabRow``, and say which view of a pane takes the focus. The style sheet shows the pane P where ``#side`` has
    the class ``-tab-P``.
    """

    PANES: ClassVar[tuple[str, str, str]]

    def view_of(self, pane: str) -> Widget:
        """What takes the focus in a pane."""
        raise NotImplementedError

    def next_pane(self, step: int) -> None:
        focused = next((n for n, name in enumerate(self.PANES) if self.has_focus_in(name)), 0)
        index = (focused + step) % len(self.PANES)
        if index == 0:
            self.view_of(self.PANES[0]).focus()
        else:
            self.choose_tab(index - 1)

    def has_focus_in(self, pane: str) -> bool:
        found = self.query_one(f"#{pane}")
        return found.has_focus or found.has_focus_within

    def choose_tab(self, index: int, *, focus: bool = True) -> None:
        """The first (0) or the second pane of the side: the shown tab where it is narrow, the focus everywhere."""
        side = self.query_one("#side")
        for number, pane in enumerate(self.PANES[1:]):
            side.set_class(number == index, f"-tab-{pane}")
        self.query_one(TabRow).choose(index)
        if focus:
            self.view_of(self.PANES[index + 1]).focus()

    def on_tab_row_chosen(self, message: TabRow.Chosen) -> None:
        self.choose_tab(message.index)
