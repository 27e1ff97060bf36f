"""A proposer at work as rows of text: who answers, for how long, and what has come so far."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rich.cells import chop_cells

from klineage_tui.keys import shown_key
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize, sanitize_lines

#: Only the end of a long answer is drawn again and again; all of it is on disk.
SHOWN_CHARACTERS = 20_000
_TAIL = 5  # lines of an answer on a walk, whose decisions are to stay on the screen


@dataclass(frozen=True)
class AnswerView:
    """What is known of an answer while it comes. ``status``: what the proposer does now; ``elapsed``: seconds.

    steps: of a walk that goes on by itself, a row for each decision so far; None for a single question.
    """

    name: str
    hint: str = ""
    status: str = "asking"
    text: str = ""
    elapsed: float = 0.0
    keys: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[str, ...] | None = None

    def after(self, kind: str, text: str) -> AnswerView:
        """With one more event of the proposer."""
        return replace(self, text=self.text + text) if kind == "text" else replace(self, status=text)


def answer_heading(view: AnswerView) -> tuple[str, str]:
    """The pane's title at its two ends."""
    word = "ANSWER" if view.steps is None else "WALK"
    return f"{word}  {sanitize(view.name)}", f"{view.elapsed:.0f} s"


def answer_lines(view: AnswerView, width: int) -> list[Line]:
    """Status, the person's hint, what a walk has decided, the answer as far as it has come, and the way out."""
    lines: list[Line] = []
    for step in view.steps or ():
        lines += _decided(step, width)
    lines.append(compose((sanitize(view.status), "muted")))
    if view.hint:
        lines += _wrapped(f"told: {view.hint}", width, "muted")
    lines.append(compose(""))
    cut = len(view.text) > SHOWN_CHARACTERS
    if cut:
        lines.append(compose(("⋯ the beginning is not shown", "muted")))
    text = _wrapped(view.text[-SHOWN_CHARACTERS:], width, "")
    lines += text if view.steps is None else text[-_TAIL:]
    lines.append(compose(""))
    way_back = "ask" if view.steps is None else "walk"
    cancel, back = (shown_key(view.keys.get(name, "")) for name in ("cancel", way_back))
    lines.append(
        compose(
            (cancel, "heading"), (" ends it; ", "muted"), (back, "heading"), (" comes back to it", "muted")
        )
    )
    return lines


def _decided(step: str, width: int) -> list[Line]:
    """A row of a walk, broken between words; what it goes on with is set in, so that each row stands out."""
    safe = " ".join(sanitize_lines(step))
    rows = textwrap.wrap(safe, max(16, width), subsequent_indent="     ", break_on_hyphens=False)
    return [compose((row, "strong")) for row in rows]


def _wrapped(text: str, width: int, role: str) -> list[Line]:
    rows: list[Line] = []
    for line in sanitize_lines(text):
        rows += [compose((piece, role)) for piece in chop_cells(line, max(8, width)) or [""]]
    return rows
