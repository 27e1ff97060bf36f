"""Roles to colours: the only place where the line views meet the theme.

A role is the name of a theme variable; a theme that lacks it gets a default made from the colours
that every theme has. Backgrounds lie under text, everything else colours the text.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color, ColorParseError

_ALIASES = {
    "line-number": "muted",
    "diff-added-sign": "verdict-pass",
    "diff-removed-sign": "verdict-fail",
    "diff-fold": "muted",
    "cursor-mark": "accent",
    "heading": "accent",
}
_BACKGROUNDS = frozenset(
    {"diff-added", "diff-removed", "diff-added-word", "diff-removed-word", "cursor-line", "marked-line"}
)
_DEFAULTS = {
    "diff-added": "success 14%",
    "diff-removed": "error 14%",
    "diff-added-word": "success 40%",
    "diff-removed-word": "error 40%",
    "cursor-line": "accent 16%",
    "marked-line": "warning 16%",
    "verdict-pass": "success",
    "verdict-fail": "error",
    "verdict-warn": "warning",
    "verdict-info": "secondary",
    "muted": "foreground 55%",
    "lane": "foreground 40%",
    "syntax-keyword": "secondary",
    "syntax-string": "success",
    "syntax-comment": "foreground 50%",
    "syntax-number": "warning",
    "syntax-function": "primary",
    "syntax-type": "accent",
    "syntax-builtin": "secondary",
    "syntax-operator": "foreground 80%",
    "syntax-decorator": "warning",
}
_STYLES = {
    "diff-added-word": Style(bold=True),
    "diff-removed-word": Style(bold=True),
    "verdict-pass": Style(bold=True),
    "verdict-fail": Style(bold=True),
    "verdict-warn": Style(bold=True),
    "diff-added-sign": Style(bold=True),
    "diff-removed-sign": Style(bold=True),
    "heading": Style(bold=True),
    "strong": Style(bold=True),
    "syntax-comment": Style(italic=True),
}
_WITHOUT_COLOUR = {
    "diff-added-word": Style(reverse=True),
    "diff-removed-word": Style(reverse=True),
    "cursor-line": Style(bold=True),
    "marked-line": Style(underline=True),
    "selected": Style(reverse=True),
}


class Roles:
    """The styles of one theme over one background.

    plain: no colour may be told apart (NO_COLOR): weight and underline carry the difference.
    ansi:  the terminal's own sixteen colours; they cannot be tinted, so backgrounds are left out.
    """

    def __init__(
        self, variables: Mapping[str, str], background: Color, *, plain: bool = False, ansi: bool = False
    ) -> None:
        self._variables = variables
        self._background = background
        self._plain = plain
        self._ansi = ansi
        self._styles: dict[str, Style] = {"": Style.null()}

    def __getitem__(self, role: str) -> Style:
        """The style of a role; several are given as ``"one two"``, the later drawn over the earlier."""
        if role not in self._styles:
            if " " in role:
                self._styles[role] = Style.combine(self[part] for part in role.split())
            else:
                self._styles[role] = self._style(role)
        return self._styles[role]

    def _style(self, role: str) -> Style:
        shape = _STYLES.get(role, Style.null())
        if self._plain or (self._ansi and not role.endswith("-word")):
            shape += _WITHOUT_COLOUR.get(role, Style.null())
        colour = self._colour(_ALIASES.get(role, role))
        if colour is None:
            return shape
        if role not in _BACKGROUNDS:
            return shape + Style(color=colour.rich_color)
        if not self._ansi:
            return shape + Style(bgcolor=colour.rich_color)
        # One of sixteen colours under coloured text could hide it; reversed, it cannot.
        return shape + Style(color=colour.rich_color, reverse=True) if role.endswith("-word") else shape

    def _colour(self, name: str, depth: int = 0) -> Color | None:
        """The colour of a theme variable over the background, or None when there is none."""
        value = self._variables.get(name) or _DEFAULTS.get(name)
        if not value or depth > 3:
            return None
        word, _, percent = value.removeprefix("$").partition(" ")
        share = float(percent.rstrip("%")) / 100 if percent else 1.0
        if word == "auto":
            return self._background.get_contrast_text(share)
        try:
            colour = Color.parse(word)
        except ColorParseError:
            found = self._colour(word, depth + 1)
            if found is None:
                return None
            colour = found
        if colour.ansi is not None:
            return colour
        return self._background + colour.multiply_alpha(share)
