"""Keys are handled in the order in which they are pressed, each once the one before has been handled."""

from __future__ import annotations

from collections import deque

from textual import events
from textual.app import App, ReturnType
from textual.message import Message
from textual.widget import Widget


class Handled(Message, namespace="key_order"):
    """Follows a key through the same queues, from the focused widget up to the app."""


class KeysInOrder(App[ReturnType]):
    """An app in which no key overtakes another.

    Textual gives a printable key to the focused widget, but runs the binding of any other key once it has bubbled up
    to the app, and a priority binding before the widget has seen the keys in front of it. While the program is busy,
    a letter after ctrl+u would be deleted by it, and ctrl+s would save without the letter before.
    """

    _key_at: Widget | None = None  # where the key went that is not handled yet

    def __init__(self) -> None:
        super().__init__()
        self._keys: deque[events.Key | events.Paste] = deque()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._keys.append(event)
            await self._take_keys()
        else:
            await super().on_event(event)

    async def on_key_order_handled(self) -> None:
        self._key_at = None
        await self._take_keys()

    async def _take_keys(self) -> None:
        # A widget that has left the screen says no more.
        while self._keys and not (self._key_at and self._key_at.is_attached):
            event = self._keys.popleft()
            target = self.focused or self.screen
            await super().on_event(event)
            self._key_at = target if event.is_forwarded and target.post_message(Handled()) else None
