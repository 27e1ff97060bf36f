"""Signals that the app answers: to end it leaves the terminal usable, to continue it starts nothing twice."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klineage_tui.app import KlineageApp


def watch(app: KlineageApp) -> None:
    """Call it on the app's own thread, once its driver exists. Tests without a terminal are left alone."""
    if app.is_headless:
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, app.ended_by, number.name, 128 + number)

    def continued(number: int, frame: FrameType | None) -> None:
        # Textual begins to read keys on every SIGCONT, also after a plain SIGSTOP and while it leaves a
        # terminal that was closed: a second reader takes half of the keys, and its thread never ends.
        if getattr(app._driver, "_must_signal_resume", False) and callable(textual_continues):
            textual_continues(number, frame)
        elif app.is_running:
            app.refresh(layout=True)

    textual_continues = signal.signal(signal.SIGCONT, continued)
