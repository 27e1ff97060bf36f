"""A titled part of a place, and the row of tabs that replaces side-by-side panes on narrow terminals."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from klineage_tui.widgets.title_row import Parts, TitleRow


class Pane(Vertical):
    """A title row above one or more views. The title is dim, and in the accent while the focus is inside."""

    def __init__(self, title: str, *views: Widget, id: str) -> None:
        super().__init__(id=id, classes="pane")
        self._title = TitleRow(title)
        self._views = views

    def compose(self) -> ComposeResult:
        yield self._title
        yield from self._views

    def entitle(self, left: str | Parts, right: str = "") -> None:
        self._title.show(left, right)

    @property
    def title_text(self) -> str:
        return self._title.text


class TabRow(Widget):
    """The names of the panes in one row; a click chooses one."""

    DEFAULT_CSS = """
    TabRow { height: 1; padding: 0 1; color: $muted; background: $surface; }
    """

    class Chosen(Message):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self._names = names
        self._active = 0

    def choose(self, index: int) -> None:
        self._active = index
        self.refresh()

    def render(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        for index, name in enumerate(self._names):
            parts += [(name, "$accent bold underline" if index == self._active else "$muted"), "   "]
        return Content.assemble(*parts[:-1])

    def on_click(self, event: events.Click) -> None:
        column = 1
        for index, name in enumerate(self._names):
            if column <= event.x < column + len(name):
                self.post_message(self.Chosen(index))
                return
            column += len(name) + 3
