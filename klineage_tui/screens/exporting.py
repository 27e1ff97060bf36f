"""Asking in what form cards are written, and where."""

from __future__ import annotations

from collections.abc import Sequence

from klineage.numbers import plural
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from klineage_tui.completion import Completer
from klineage_tui.screens.dialog import FormDialog

FORMS = {
    "one": "one Agent Skill for all of them, a reference file for each card",
    "family": "one Agent Skill for each workload",
    "each": "one Agent Skill for each card",
    "jsonl": "training records: one JSON object a line, with where each comes from",
}


class ExportDialog(FormDialog[tuple[str, str]]):
    """Dismissed with (form, folder or file), or None."""

    DEFAULT_CSS = """
    ExportDialog > Vertical { width: 84; }
    ExportDialog .row { margin-top: 1; }
    ExportDialog .label { width: 9; }
    ExportDialog #export-hint { padding-left: 9; color: $muted; height: auto; min-height: 2; }
    """

    def __init__(self, ids: Sequence[str], keys: dict[str, str]) -> None:
        holding = f"the {plural(len(ids), 'card')} that hold{'s' * (len(ids) == 1)} here"
        question = f"Write {holding}. The form is {', '.join([*FORMS][:-1])} or {[*FORMS][-1]}."
        super().__init__("Export", question, "writes them", keys)

    def answer(self) -> ComposeResult:
        for name, value, hint in (
            ("form", "one", ", ".join(FORMS)),
            ("to", "", "a folder such as .claude/skills, or FILE.jsonl"),
        ):
            with Horizontal(classes="row"):
                yield Static(name, classes="label", markup=False)
                suggester = Completer(list(FORMS)) if name == "form" else Completer(suffixes=(".jsonl",))
                yield Input(value=value, placeholder=hint, suggester=suggester, id=f"export-{name}")
        yield Static(FORMS["one"], id="export-hint", markup=False)

    def on_mount(self) -> None:
        self.query_one("#export-form", Input).focus()

    def _value(self, field: str) -> str:
        return self.query_one(f"#export-{field}", Input).value.strip()

    def on_input_changed(self) -> None:
        hint = FORMS.get(self._value("form"), f"there are {', '.join(FORMS)}")
        self.query_one("#export-hint", Static).update(hint)

    def action_dialog_confirm(self) -> None:
        form, to = self._value("form"), self._value("to")
        if form not in FORMS:
            self.notify(f"There is no form {form!r}; there are {', '.join(FORMS)}.", severity="warning")
        elif not to:
            self.notify("Say where: a folder, or a file for training records.", severity="warning")
            self.query_one("#export-to", Input).focus()
        else:
            self.dismiss((form, to))
