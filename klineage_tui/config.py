"""The person's configuration: one TOML file. A key that is not known is an error that names the file."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from klineage.errors import KlineageError
from klineage.proposer.settings import Settings, settings_from

from klineage_tui.actions import PRESETS, Preset, keymap

Layout = Literal["auto", "unified", "split"]
LAYOUTS: tuple[Layout, ...] = ("auto", "unified", "split")


@dataclass(frozen=True)
class Config:
    """What the configuration file may say; every field has a default.

    theme:     the theme at the start; empty means the one chosen last.
    keys:      the preset of keys.
    editor:    the command of the external editor; empty means $VISUAL, then $EDITOR.
    layout:    of diffs; ``auto`` is side by side where it fits.
    host:      where to gate, as ssh takes it; empty means here. host_python: the Python there.
    proposer:  how models are asked and commands are run.
    overrides: action id -> keys.
    """

    theme: str = ""
    keys: Preset = "default"
    editor: str = ""
    layout: Layout = "auto"
    host: str = ""
    host_python: str = ""
    proposer: Settings = field(default_factory=Settings)
    overrides: Mapping[str, str] = field(default_factory=dict)

    def keymap(self) -> dict[str, str]:
        """Action id -> keys in force. Raises KlineageError on a conflict."""
        return keymap(self.keys, self.overrides)


def config_folder() -> Path:
    """Where ``config.toml`` and ``themes/`` of this person are."""
    from platformdirs import user_config_path

    return user_config_path("klineage")


def config_file() -> Path:
    return config_folder() / "config.toml"


def load_config(path: Path | None = None) -> Config:
    """The configuration, or the defaults when there is no file.

    Raises KlineageError, naming the file, for anything in it that is not understood.
    """
    path = path or config_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as problem:
        raise KlineageError(f"{path}: cannot be read: {problem}") from problem
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise KlineageError(f"{path}: not valid TOML: {problem}") from problem
    try:
        return _parse(data)
    except KlineageError as problem:
        raise KlineageError(f"{path}: {problem}") from problem


def _parse(data: Mapping[str, object]) -> Config:
    known = ("theme", "keys", "editor", "layout", "host", "host_python", "proposer", "overrides")
    for key in data:
        if key not in known:
            raise KlineageError(f"unknown key '{key}'; known are {', '.join(known)}")
    editor = _text(data, "editor")
    try:
        shlex.split(editor)
    except ValueError as problem:
        raise KlineageError(f"editor: {problem}") from problem
    config = Config(
        theme=_text(data, "theme"),
        keys=cast(Preset, _choice(data, "keys", PRESETS)),
        editor=editor,
        layout=cast(Layout, _choice(data, "layout", LAYOUTS)),
        host=_text(data, "host"),
        host_python=_text(data, "host_python"),
        proposer=settings_from(_table(data, "proposer")),
        overrides=_overrides(data),
    )
    config.keymap()
    return config


def _text(data: Mapping[str, object], key: str, default: str = "") -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise KlineageError(f"'{key}' must be text, not {value!r}")
    return value


def _choice(data: Mapping[str, object], key: str, choices: tuple[str, ...]) -> str:
    value = _text(data, key, choices[0])
    if value not in choices:
        raise KlineageError(f"'{key}' is {value!r}; it can be {' or '.join(choices)}")
    return value


def _table(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    section = data.get(key, {})
    if not isinstance(section, dict):
        raise KlineageError(f"'{key}' must be a table of keys: [{key}]")
    return section


def _overrides(data: Mapping[str, object]) -> dict[str, str]:
    section = data.get("overrides", {})
    if not isinstance(section, dict):
        raise KlineageError("'overrides' must be a table of action = key")
    return {key: _text(section, key) for key in section}


def editor_command(config: Config, environment: Mapping[str, str] | None = None) -> list[str]:
    """The external editor as an argument list: the configuration, $VISUAL, $EDITOR, in this order.

    Raises KlineageError when none is set, or what is set is no command line.
    """
    environment = os.environ if environment is None else environment
    for text in (config.editor, environment.get("VISUAL", ""), environment.get("EDITOR", "")):
        if text.strip():
            try:
                return shlex.split(text)
            except ValueError as problem:
                raise KlineageError(f"the editor {text!r} is no command: {problem}") from problem
    raise KlineageError("no editor is set; export EDITOR=vim, or press e to edit here")
