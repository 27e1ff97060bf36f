"""How far a walk goes on by itself: by whom, with what words, and when it stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from klineage_tui.keys import shown_key
from klineage_tui.proposers import Choice, failures_in_a_row
from klineage_tui.screens.choosing import Choices
from klineage_tui.screens.dialog import FormDialog

if TYPE_CHECKING:
    from klineage.walk import WalkLimits

_FIELDS = (
    ("steps", "stop after so many accepted steps; nothing: no limit"),
    ("minutes", "begin nothing new after so many; nothing: no limit"),
    ("best of", "candidates a step; nothing: 1"),
    ("hint", "a word to who proposes, or nothing"),
)


@dataclass(frozen=True)
class Order:
    """What a person orders. ``steps``, ``minutes``: None for no limit; ``best_of``: candidates a step."""

    name: str
    hint: str = ""
    steps: int | None = None
    minutes: float | None = None
    best_of: int = 1

    @property
    def limits(self) -> WalkLimits:
        from klineage.walk import WalkLimits

        return WalkLimits(
            self.steps, failures_in_a_row(self.name), None if self.minutes is None else 60 * self.minutes
        )


class WalkOn(FormDialog[Order]):
    """Up and down choose who proposes, tab goes through the limits; dismissed with the order, or None."""

    DEFAULT_CSS = """
    WalkOn > Vertical { padding: 0 2; max-height: 100%; }
    WalkOn #choices { margin-top: 1; margin-bottom: 1; }
    WalkOn .label { width: 9; }
    WalkOn .keys { margin-top: 0; }
    WalkOn #walk-keys { margin-top: 1; }
    """

    def __init__(
        self, choices: Sequence[Choice], spent: str, keys: dict[str, str], last: Order | None = None
    ) -> None:
        question = "Propose, gate, and take what passes, step by step."
        super().__init__("Walk by itself", f"{question} {spent}".strip(), "walks", keys)
        self._choices, self._last = choices, last

    def answer(self) -> ComposeResult:
        yield Choices(self._choices, self._last.name if self._last is not None else "", id="choices")
        for field, placeholder in _FIELDS:
            with Horizontal(classes="row"):
                yield Static(field, classes="label", markup=False)
                yield Input(value=self._before(field), placeholder=placeholder, id=_id(field))
        up, down = (shown_key(self._keys[f"dialog-{way}"]) for way in ("previous", "next"))
        following = shown_key(self._keys["next-pane"])
        text = f"{up} and {down} choose who proposes   {following} next field"
        yield Static(text, classes="keys", id="walk-keys", markup=False)

    def _before(self, field: str) -> str:
        """What was ordered last time, as text."""
        if self._last is None:
            return ""
        said = {"steps": self._last.steps, "minutes": self._last.minutes, "hint": self._last.hint}
        said["best of"] = self._last.best_of if self._last.best_of > 1 else None
        return f"{said[field]:g}" if isinstance(said[field], float) else str(said[field] or "")

    def on_mount(self) -> None:
        self.query_one(f"#{_id('steps')}", Input).focus()

    def action_dialog_next(self) -> None:
        self.query_one(Choices).go(1)

    def action_dialog_previous(self) -> None:
        self.query_one(Choices).go(-1)

    def _typed(self, field: str) -> str:
        return self.query_one(f"#{_id(field)}", Input).value.strip()

    def action_dialog_confirm(self) -> None:
        order, problem = ordered(
            self.query_one(Choices).chosen, {field: self._typed(field) for field, _ in _FIELDS}
        )
        if order is None:
            self.notify(problem, severity="warning")
        else:
            self.dismiss(order)


def _id(field: str) -> str:
    return f"walk-{field.replace(' ', '-')}"


def ordered(name: str, typed: dict[str, str]) -> tuple[Order | None, str]:
    """The order that was typed, or None and one sentence that says what is wrong with it."""
    counts: dict[str, int | None] = {}
    for field in ("steps", "best of"):
        text = typed[field]
        if text and not (text.isascii() and text.isdigit() and int(text) > 0):
            return None, f"{field}: a whole number of at least 1, not “{text}”."
        counts[field] = int(text) if text else None
    minutes = None
    if typed["minutes"]:
        try:
            minutes = float(typed["minutes"])
        except ValueError:
            minutes = 0.0
        if not 0 < minutes < 1e6:
            return None, f"minutes: a number above 0, not “{typed['minutes']}”."
    return Order(name, typed["hint"], counts["steps"], minutes, counts["best of"] or 1), ""
