"""The last row: what can be done here, which of it is closed now, and how much is left to decide."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from klineage_tui.actions import SCREENS, Action, actions_of
from klineage_tui.keys import shown_key


@dataclass(frozen=True)
class Item:
    """One action in the bar, and the columns it occupies."""

    action: str
    key: str
    title: str
    enabled: bool
    start: int

    @property
    def end(self) -> int:
        return self.start + cell_len(self.key) + 1 + cell_len(self.title)


def footer_actions(place: str) -> list[Action]:
    """The actions of a place (and of everywhere) that have a position in the footer, in its order."""
    everywhere = actions_of("app") if place in SCREENS else ()  # on top of a place the app's keys do nothing
    shown = {action.id: action for action in (*actions_of(place), *everywhere)}
    return sorted(
        (action for action in shown.values() if action.footer is not None),
        key=lambda action: (action.footer, action.id),
    )


def layout(
    actions: list[Action], keys: dict[str, str], disabled: set[str], hidden: set[str], width: int
) -> list[Item]:
    """The items that fit into ``width`` cells, two apart; the last action (help) always keeps its room.

    Where most of those that fit are closed now, because nothing is left to decide, they make room for the open ones.
    """
    wanted = [action for action in actions if action.id not in hidden]
    items = _row(wanted, keys, disabled, width)
    if len(items) < len(wanted) and 2 * sum(not item.enabled for item in items) >= len(items):
        return _row([*(a for a in wanted[:-1] if a.id not in disabled), wanted[-1]], keys, disabled, width)
    return items


def _row(actions: list[Action], keys: dict[str, str], disabled: set[str], width: int) -> list[Item]:
    """As many of the actions as fit, in their order, and the last."""
    if not actions:
        return []
    *others, last = actions
    reserve = cell_len(shown_key(keys[last.id])) + 1 + cell_len(last.title)
    items: list[Item] = []
    column = 1
    for action in others:
        item = Item(action.id, shown_key(keys[action.id]), action.title, action.id not in disabled, column)
        if item.end + 2 + reserve > width:
            break
        items.append(item)
        column = item.end + 2
    items.append(Item(last.id, shown_key(keys[last.id]), last.title, last.id not in disabled, column))
    return items


class ActionBar(Widget):
    """Draws the footer from the registry; a click on an item does it."""

    DEFAULT_CSS = """
    ActionBar { height: 1; dock: bottom; background: $surface; color: $muted; }
    """
    COMPONENT_CLASSES = {"action-bar--key", "action-bar--title"}

    class Chosen(Message):
        """An item was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, place: str, keys: dict[str, str]) -> None:
        super().__init__()
        self._actions = footer_actions(place)
        self._keys = keys
        self._disabled: set[str] = set()
        self._hidden: set[str] = set()
        self._status = self._busy = ""

    def show(self, disabled: set[str], hidden: set[str], status: str) -> None:
        """Dim the disabled actions, leave the hidden ones out, and put ``status`` at the right."""
        if (disabled, hidden, status) != (self._disabled, self._hidden, self._status):
            self._disabled, self._hidden, self._status = disabled, hidden, status
            self.refresh()

    def show_busy(self, words: str) -> None:
        """In place of the status: what is being worked at; empty when nothing is."""
        if words != self._busy:
            self._busy = words
            self.refresh()

    def _items(self) -> list[Item]:
        said = self._busy or self._status
        room = self.size.width - (cell_len(said) + 2 if said else 0)
        return layout(self._actions, self._keys, self._disabled, self._hidden, room)

    def render(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        column = 0
        for item in self._items():
            parts.append(" " * (item.start - column))
            parts.append((item.key, "$accent bold" if item.enabled else "$lane"))
            parts.append((" " + item.title, "$foreground" if item.enabled else "$lane"))
            column = item.end
        if said := self._busy or self._status:
            parts.append(" " * max(1, self.size.width - column - cell_len(said) - 1))
            parts.append((said, "$accent" if self._busy else "$muted"))
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        for item in self._items():
            if item.start <= event.x < item.end:
                self.post_message(self.Chosen(item.action))
                return
