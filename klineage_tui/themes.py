"""Themes: one TOML file each, shipped ones and a person's own; a broken file is reported, not fatal."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError
from textual.color import Color, ColorParseError
from textual.theme import Theme

COLORS = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
    "success",
    "warning",
    "error",
)
REQUIRED_COLORS = ("primary", "foreground", "background", "surface", "panel", "success", "warning", "error")
SYNTAX = tuple(
    f"syntax-{name}"
    for name in (
        "keyword",
        "string",
        "comment",
        "number",
        "function",
        "type",
        "builtin",
        "operator",
        "decorator",
    )
)
VERDICTS = ("verdict-pass", "verdict-fail", "verdict-warn", "verdict-info")
DIFF = ("diff-added", "diff-removed", "diff-added-word", "diff-removed-word")
VARIABLES = ("accent", "muted", "lane", *DIFF, *VERDICTS, *SYNTAX)
DEFAULT = "klineage-dark"

_PACKAGE = Path(__file__).resolve().parent
_STYLES = {"none", "bold", "dim", "italic", "underline", "reverse", "strike"}


@dataclass(frozen=True)
class Themes:
    """The themes that can be chosen, in the order of their files, and one sentence for each broken file."""

    themes: tuple[Theme, ...]
    problems: tuple[str, ...]

    def names(self) -> list[str]:
        return [theme.name for theme in self.themes]


def shipped_folder() -> Path:
    """The folder of shipped themes, in a wheel or in a checkout. Raises KlineageError when there is none."""
    for folder in (_PACKAGE / "_shipped" / "themes", _PACKAGE.parent / "themes"):
        if folder.is_dir():
            return folder
    raise KlineageError("this installation has no themes/ folder; install klineage-tui again")


def load_themes(user: Path | None = None) -> Themes:
    """The shipped themes, the default one first, then those in ``user``, which may replace a shipped one.

    Raises KlineageError when a shipped theme is broken.
    """
    shipped = [read_theme(path) for path in sorted(shipped_folder().glob("*.toml"))]
    found = {theme.name: theme for theme in sorted(shipped, key=lambda t: t.name != DEFAULT)}
    problems = []
    for path in _user_files(user):
        try:
            theme = read_theme(path)
        except KlineageError as problem:
            problems.append(str(problem))
        else:
            found[theme.name] = theme
    return Themes(tuple(found.values()), tuple(problems))


def _user_files(folder: Path | None) -> Iterable[Path]:
    return sorted(folder.glob("*.toml")) if folder is not None and folder.is_dir() else ()


def read_theme(path: Path) -> Theme:
    """One theme file. Raises KlineageError naming the file and the key that is wrong."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise KlineageError(f"theme {path}: cannot be read: {problem}") from problem
    return parse_theme(data, str(path))


def parse_theme(data: dict[str, object], where: str) -> Theme:
    """A theme from the parsed TOML of the file ``where``."""
    for key in data:
        if key not in ("name", "dark", "ansi", "colors", "variables"):
            raise _wrong(where, key, "is not known (name, dark, ansi, [colors] and [variables] are)")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise _wrong(where, "name", "must be a word")
    colors = _colors(data, "colors", COLORS, REQUIRED_COLORS, where)
    variables = _colors(data, "variables", (*VARIABLES, *_textual_variables()), VARIABLES, where)
    return Theme(
        name=name,
        dark=_flag(data, "dark", True, where),
        ansi=_flag(data, "ansi", False, where),
        variables=variables,
        primary=colors.pop("primary"),
        **colors,  # type: ignore[arg-type]
    )


def _textual_variables() -> set[str]:
    return set(Theme(name="any", primary="#808080").to_color_system().generate())


def _flag(data: dict[str, object], key: str, default: bool, where: str) -> bool:
    value = data.get(key, default)
    if not isinstance(value, bool):
        raise _wrong(where, key, "must be true or false")
    return value


def _colors(
    data: dict[str, object], table: str, known: Iterable[str], required: Iterable[str], where: str
) -> dict[str, str]:
    section = data.get(table, {})
    if not isinstance(section, dict):
        raise _wrong(where, table, "must be a table")
    known = set(known)
    for key, value in section.items():
        if key not in known:
            raise _wrong(where, f"{table}.{key}", "is not known")
        if not isinstance(value, str) or not _is_valid(key, value):
            raise _wrong(where, f"{table}.{key}", f"is not a colour: {value!r}")
    for key in required:
        if key not in section:
            raise _wrong(where, f"{table}.{key}", "is missing")
    return dict(section)


def _is_valid(key: str, value: str) -> bool:
    if "style" in key:
        return set(value.replace("not ", "").split()) <= _STYLES
    try:
        Color.parse(value)
    except ColorParseError:
        return False
    return True


def _wrong(where: str, key: str, what: str) -> KlineageError:
    return KlineageError(f"theme {where}: '{key}' {what}")
