"""Asking for the texts of one field of a card, checked as they are typed, and why it is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from klineage.errors import KlineageError
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from klineage_tui.card_edits import Asked
from klineage_tui.completion import Completer
from klineage_tui.keys import shown_key
from klineage_tui.screens.dialog import FormDialog
from klineage_tui.text.sanitize import sanitize

_REASON = "reason"


@dataclass(frozen=True)
class Typed:
    """What a person typed: a text for each input, and why."""

    values: Mapping[str, str]
    reason: str


class FieldDialog(FormDialog[Typed]):
    """Dismissed with what was typed, or None. Nothing that ``wrong`` names is taken.

    wrong: raises KlineageError for values that cannot be so, with the sentence to show. problem: why what was sent
    before was refused, e.g. since somebody else has edited the card. why: whether a reason is asked for.
    """

    DEFAULT_CSS = """
    FieldDialog > Vertical { width: 96; }
    FieldDialog #field-rows { height: auto; margin-top: 1; }
    FieldDialog .label { width: 14; }
    FieldDialog #field-problem { color: $verdict-warn; height: auto; min-height: 2; max-height: 4; margin-top: 1; }
    """

    def __init__(
        self,
        title: str,
        question: str,
        asked: Sequence[Asked],
        wrong: Callable[[Mapping[str, str]], object],
        keys: dict[str, str],
        *,
        reason: str = "",
        problem: str = "",
        why: bool = True,
        confirm: str = "takes it",
    ) -> None:
        super().__init__(title, question, confirm, keys)
        self._asked, self._wrong, self._why = asked, wrong, why
        self._reason, self._problem = reason, sanitize(problem)

    def answer(self) -> ComposeResult:
        why = Asked(_REASON, self._reason, "why? (a few words, kept with the change)")
        with Vertical(id="field-rows"):
            for asked in (*self._asked, why) if self._why else self._asked:
                yield from _row(asked, select=not self._why)
        yield Static(self._problem, id="field-problem", markup=False)
        following, completes = shown_key(self._keys["next-pane"]), shown_key("right")
        yield Static(f"{following} next field   {completes} completes a word", classes="keys", markup=False)

    def on_mount(self) -> None:
        first = next((a for a in self._asked if a.name in ("text", "intent")), None)
        wanted = first or (self._asked[0] if self._asked else Asked(_REASON, "", ""))
        self.query_one(f"#field-{wanted.name}", Input).focus()

    def values(self) -> dict[str, str]:
        """What is typed now; a text that was not touched is the one that was given, byte for byte."""
        found = {}
        for asked in self._asked:
            shown = self.query_one(f"#field-{asked.name}", Input).value
            found[asked.name] = asked.value if shown == sanitize(asked.value) else shown
        return found

    @property
    def reason(self) -> str:
        return self.query_one(f"#field-{_REASON}", Input).value.strip() if self._why else ""

    def problem(self) -> str:
        """What is wrong with what is typed; empty when it can be taken."""
        try:
            self._wrong(self.values())
        except KlineageError as problem:
            return str(problem)
        return ""

    def on_input_changed(self) -> None:
        """Say what is wrong, once something was typed."""
        if self.is_mounted:
            touched = self.values() != {asked.name: asked.value for asked in self._asked}
            problem = sanitize(self.problem()) if touched else ""
            self.query_one("#field-problem", Static).update(problem or self._problem)

    def action_dialog_confirm(self) -> None:
        if problem := self.problem():
            self.query_one("#field-problem", Static).update(sanitize(problem))
            self.app.bell()
        elif self._why and not self.reason:
            self.notify("Say why, in a few words: the reason is kept with the change.", severity="warning")
            self.query_one(f"#field-{_REASON}", Input).focus()
        else:
            self.dismiss(Typed(self.values(), self.reason))


def _row(asked: Asked, *, select: bool) -> ComposeResult:
    """One input; ``select``: whether what is typed takes the place of what is there."""
    with Horizontal(classes="row"):
        yield Static(asked.name.replace("_", " "), classes="label", markup=False)
        yield Input(
            value=sanitize(asked.value),
            placeholder=asked.hint,
            suggester=Completer(asked.words, asked.paths),
            select_on_focus=select,
            id=f"field-{asked.name}",
        )
