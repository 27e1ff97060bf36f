"""A text area for kernels: the languages, queries and colours of the read-only views."""

from __future__ import annotations

from importlib import import_module

from rich.style import Style
from textual.widgets import TextArea
from textual.widgets.text_area import TextAreaTheme

from klineage_tui.text.highlight import language_of
from klineage_tui.themes import SYNTAX
from klineage_tui.widgets.roles import Roles

_PLAIN_FROM = 500  # lines: colouring a longer text makes typing slow


class CodeArea(TextArea):
    """Editing one kernel; plain without a grammar for its suffix, and beyond 500 lines."""

    DEFAULT_CSS = """
    CodeArea, CodeArea:focus { border: none; padding: 0; background: $background; }
    CodeArea .text-area--cursor { background: $accent; color: $background; }
    CodeArea .text-area--gutter { color: $muted; background: $background; }
    CodeArea .text-area--cursor-gutter { color: $accent; background: $background; }
    CodeArea .text-area--cursor-line { background: $panel; }
    """

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, show_line_numbers=True, tab_behavior="indent", soft_wrap=False)
        self._filename = filename
        self._rows = text.count("\n")

    def on_mount(self) -> None:
        self._recolour()
        self.watch(self.app, "theme", self._recolour, init=False)
        language = language_of(self._filename)
        if language in ("python", "c") and self._rows < _PLAIN_FROM:
            from tree_sitter import Language

            from klineage_tui.text import queries

            grammar = Language(import_module(f"tree_sitter_{language}").language())
            self.register_language(language, grammar, queries.PYTHON if language == "python" else queries.C)
            self.language = language

    def _recolour(self) -> None:
        _, background = self.background_colors
        app = self.app
        roles = Roles(app.theme_variables, background, plain=app.no_color, ansi=app.native_ansi_color)
        styles = {name.removeprefix("syntax-"): roles[name] for name in SYNTAX}
        name = f"klineage-{app.theme}"
        self.register_theme(TextAreaTheme(name, syntax_styles={**styles, "plain": Style()}))
        self.theme = name
