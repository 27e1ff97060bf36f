"""Ending a question, or leaving it: an import that costs nothing, since the app needs it before it paints."""

from __future__ import annotations

import threading


class Cancel(threading.Event):
    """A ``cancel`` that can also say that klineage is left: then a paid call is not ended, but finishes by itself."""

    leaving = False

    def leave(self) -> None:
        """Stop at once, as after a kill; what a paid call answers is offered next time."""
        self.leaving = True
        self.set()
