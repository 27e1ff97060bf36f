"""Work that takes minutes and can be stopped: how far it is, its outcome, and both as rows."""

from __future__ import annotations

import textwrap
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message

from klineage_tui.presentation.card_words import sentence
from klineage_tui.presentation.gate import GateView, gate_lines
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import seconds

if TYPE_CHECKING:
    from klineage.gate import GateEvent

_SAID = 3  # sentences above the stages of the gate that runs now


class RunProgress(Message):
    """A run said something; posted from its thread."""

    def __init__(self, run: Run, event: GateEvent | str) -> None:
        super().__init__()
        self.run = run
        self.event = event


class Run:
    """One probe, trial or ablation: of what, how far, and how to stop it.

    subject: the id of the card or of the lineage. title: a word in capitals, then of what.
    """

    def __init__(self, subject: str, title: str) -> None:
        self.subject, self.title = subject, title
        self.cancel = threading.Event()
        self.started = time.monotonic()
        self.ended = 0.0
        self.view = GateView("running")
        self.said: list[str] = []
        self.outcome = ""

    def heard(self, event: GateEvent | str) -> None:
        """Take one message of the thread: a sentence, or the progress of a gate."""
        if isinstance(event, str):
            self.said.append(event)
            self.view = GateView("running")  # what comes next is another gate
        else:
            self.view = self.view.after(event)

    def end(self, outcome: str) -> None:
        """It is over, and this is what came of it, in a sentence."""
        self.outcome, self.ended = outcome, time.monotonic()
        self.view = replace(self.view, status="none", running="", detail="")

    @property
    def running(self) -> bool:
        return not self.ended

    @property
    def elapsed(self) -> float:
        """Seconds since the start, until the end."""
        return (self.ended or time.monotonic()) - self.started

    def heading(self) -> tuple[list[tuple[str, str]], str]:
        """What is shown above it, at the left and at the right."""
        word, _, rest = self.title.partition(" ")
        left = [(f"{word}  ", "$accent" if self.running else ""), (sentence(rest), "$foreground")]
        return left, f"{'running' if self.running else 'took'} {seconds(self.elapsed)}"

    def lines(self, cells: int, stop_key: str) -> list[Line]:
        """Its last sentences and the stages of the gate that runs, or its outcome; ``cells`` wide."""
        view = replace(self.view, keys={})
        stages = gate_lines(view, cells) if view.stages or view.running else []
        if not self.running:
            return [*_wrapped(self.outcome, cells, "strong"), *stages]
        said = [line for text in self.said[-_SAID:] for line in _wrapped(text, cells, "muted")]
        stopping = "stopping …" if self.cancel.is_set() else f"{stop_key} stops it"
        return [*said, *stages, compose((stopping, "muted"))]


def _wrapped(text: str, cells: int, role: str) -> list[Line]:
    return [compose((row, role)) for row in textwrap.wrap(sentence(text), cells, break_on_hyphens=False)]
