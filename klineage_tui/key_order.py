"""Keys are handled in the order in which they are pressed, each once the one before has been handled."""

from __future__ import annotations

from collections import deque

from textual import events
from textual.app import App, ReturnType
from textual.dom import DOMNode


class KeysInOrder(App[ReturnType]):
    """An app in which no key overtakes another.

    Textual gives a printable key to the focused widget, but runs the binding of any other key once it has bubbled up
    to the app, and a priority binding before the widget has seen the keys in front of it. While the program is busy,
    a letter after ctrl+u would be deleted by it, and ctrl+s would save without the letter before. What a key makes a
    widget say arrives later still: a letter after the enter that closes a dialog would be typed into the dialog.
    """

    _handling = False  # whether the last key is still on its way

    def __init__(self) -> None:
        super().__init__()
        self._keys: deque[events.Key | events.Paste] = deque()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._keys.append(event)
            await self._take_keys()
        else:
            await super().on_event(event)

    async def _take_keys(self) -> None:
        while self._keys and not self._handling:
            target = self.focused or self.screen
            way = [*target.ancestors_with_self]
            self._handling = True
            await super().on_event(self._keys.popleft())
            await self._follow(deque([*way, *way]))

    async def _follow(self, way: deque[DOMNode]) -> None:
        """Go through the queues that the key goes through, up to the app, and then behind what it made them say."""
        while way:
            # A widget that has left the screen says no more.
            if way.popleft().call_later(self._follow, way):
                return
        self._handling = False
        await self._take_keys()
