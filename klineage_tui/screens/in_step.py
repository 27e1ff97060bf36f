"""Screens that keep step with the terminal, however fast its size changes."""

from __future__ import annotations

from textual import events, on
from textual.message_pump import MessagePump


class InStep(MessagePump):
    """Makes a screen be laid out for the size that the terminal has, and never for one that it had before.

    Textual lays a screen out for whatever size a resize names, and a screen whose size changes tells itself so by one
    more resize. Of two sizes in its queue, which a quick hand and a busy machine are enough for, each brings back the
    other: the screen flickers between them for ever, and no key is heard.
    """

    @on(events.Resize)
    def keep_step(self, event: events.Resize) -> None:
        if event.size != self.app.size:
            event.prevent_default()
