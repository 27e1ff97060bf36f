"""Themes: shipped ones are complete and readable; a person's broken one is named, not fatal."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from textual.color import Color
from textual.theme import Theme

from klineage_tui.themes import DIFF, SYNTAX, VERDICTS, load_themes, shipped_folder

SHIPPED = {theme.name: theme for theme in load_themes().themes}


def test_the_four_are_shipped() -> None:
    assert {"klineage-dark", "klineage-light", "high-contrast", "ansi"} <= set(SHIPPED)
    assert not SHIPPED["klineage-light"].dark
    assert SHIPPED["ansi"].ansi


def _pairs(theme: Theme) -> list[tuple[str, str]]:
    """What is drawn on what: text and verdicts on every ground, code also on every diff colour."""
    words = ("foreground", "muted", "accent", *VERDICTS)
    return [
        *product(words, ("background", "surface", "panel")),
        *product(SYNTAX, ("background", *DIFF)),
        *product(("foreground", "muted"), DIFF[:2]),
    ]


def contrast(text: str, background: str) -> float:
    """The WCAG 2 contrast ratio of two RGB colours, 1 to 21."""
    darker, lighter = sorted(_luminance(Color.parse(color)) for color in (text, background))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", [name for name, theme in SHIPPED.items() if not theme.ansi])
def test_contrast(name: str) -> None:
    theme = SHIPPED[name]
    colours = {**theme.variables, "foreground": theme.foreground, "background": theme.background}
    colours |= {"surface": theme.surface, "panel": theme.panel}
    least = 7.0 if name == "high-contrast" else 4.5
    weak = {
        (text, ground): round(ratio, 2)
        for text, ground in _pairs(theme)
        if (ratio := contrast(str(colours[text]), str(colours[ground]))) < least
    }
    assert not weak


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('muted = "', 'mutant = "', "variables.mutant"),
        ('diff-added = "#10281a"', 'diff-added = "greenish"', "variables.diff-added"),
        ('background = "#13151a"\nsurface', "surface", "colors.background"),
        ("dark = true", "dark = 1", "dark"),
        ('name = "klineage-dark"', "name = 3", "name"),
        ("[variables]", "[variables", "cannot be read"),
    ],
)
def test_a_broken_theme_is_named_and_the_rest_loads(tmp_path: Path, old: str, new: str, key: str) -> None:
    text = (shipped_folder() / "klineage-dark.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "mine.toml").write_text(text.replace(old, new), encoding="utf-8")
    themes = load_themes(tmp_path)
    assert set(themes.names()) == set(SHIPPED)
    (problem,) = themes.problems
    assert str(tmp_path / "mine.toml") in problem
    assert key in problem


def test_a_user_theme_is_added(tmp_path: Path) -> None:
    text = (shipped_folder() / "klineage-light.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text.replace("klineage-light", "mine"), encoding="utf-8")
    themes = load_themes(tmp_path)
    assert themes.names()[-1] == "mine"
    assert not themes.problems
