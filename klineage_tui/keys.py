"""Names of keys: Textual's, a person's, and those on screen."""

from __future__ import annotations

import unicodedata

# Textual names a printable key after its Unicode character, with these exceptions.
_EXCEPTIONS = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_SPECIAL = {
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def _name(character: str) -> str:
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return _EXCEPTIONS.get(name, name)


_SYMBOLS = {_name(chr(code)): chr(code) for code in range(33, 127) if not chr(code).isalnum()} | _SPECIAL


def normal_key(key: str) -> str:
    """Textual's name of a key: ``?`` becomes ``question_mark``; ``ctrl+R`` becomes ``ctrl+r``."""
    key = key.strip()
    if len(key) > 1 and "+" in key:
        return key.lower()
    if len(key) == 1 and not key.isalnum():
        return _name(key)
    return "escape" if key == "esc" else key


def normal_keys(keys: str) -> str:
    """``normal_key`` for each of a comma-separated list; an empty list stays empty."""
    return ",".join(normal_key(key) for key in split_keys(keys))


def shown_keys(keys: str) -> str:
    """Keys for a person: ``ctrl+r,U`` becomes ``ctrl+r U``, ``question_mark`` becomes ``?``."""
    return " ".join(_SYMBOLS.get(key, key) for key in split_keys(keys))


def shown_key(keys: str) -> str:
    """The first of the keys, for a footer."""
    return shown_keys(split_keys(keys)[0])


def split_keys(keys: str) -> list[str]:
    """The single keys of a comma-separated list; a lone comma is the comma key."""
    if keys.strip() == ",":
        return ["comma"]
    return [key.strip() for key in keys.split(",")]
