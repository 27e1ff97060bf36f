"""Who is to propose, of those who can: one of a few lines, chosen by going up and down."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from klineage_tui.proposers import Choice
from klineage_tui.text.sanitize import sanitize

_SHOWN = 5  # choices at a time


class Choices(Static):
    """The proposers, a mark at the chosen one, and the word about it."""

    def __init__(self, choices: Sequence[Choice], chosen: str = "", *, id: str) -> None:
        """``chosen`` is the name of the one to begin with; the first, if there is none of that name."""
        super().__init__(id=id, markup=False)
        self._choices = choices
        self._row = next((row for row, choice in enumerate(choices) if choice.name == chosen), 0)

    def on_mount(self) -> None:
        self.go(0)

    @property
    def chosen(self) -> str:
        return self._choices[self._row].name

    def go(self, rows: int) -> None:
        """Choose one further down, or up; behind the last comes the first."""
        self._row = (self._row + rows) % len(self._choices)
        self.update(chosen_of(self._choices, self._row))


def chosen_of(choices: Sequence[Choice], chosen: int) -> Content:
    """Who can be asked, one a line, with a mark at the chosen one and the word about it below.

    Of many, those around the chosen one: the keys below are to stay on the screen.
    """
    first = max(0, min(chosen - _SHOWN // 2, len(choices) - _SHOWN))
    parts: list[tuple[str, str]] = []
    for row, choice in enumerate(choices[first : first + _SHOWN], start=first):
        here = row == chosen
        parts += [
            ("▌" if here else " ", "$accent"),
            (f"{sanitize(choice.name)}\n", "bold" if here else ""),
        ]
    parts.append((f"  {sanitize(choices[chosen].note)}", "$muted"))
    return Content.assemble(*parts)
