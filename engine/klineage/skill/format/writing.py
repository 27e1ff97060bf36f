"""A card's structured part as YAML: one way to write each value, plain where YAML cannot mistake it for anything else."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from klineage.errors import KlineageError
from klineage.skill.card import SCHEMA, Card, Contract, Scope, check_id

WIDTH = 100

#: Fields that a person should see even where there is nothing in them.
_SHOWN = frozenset((
    "id", "intent", "action", "surface", "status", "locus", "scope", "contract", "preconditions", "effects", "risks", "evidence",
    "verification",
))  # fmt: skip

#: What is short enough to read on one line: features of a contract, settings of a probe.
SETTINGS = "settings"
_ON_ONE_LINE = ("requires", "provides", "conflicts", SETTINGS)

_PLAIN = re.compile(r"[A-Za-z_(][^\x00-\x1f]*")
_PLAIN_IN_FLOW = re.compile(r"[A-Za-z_(][^\x00-\x1f,:?\[\]{}]*")
_HASH = re.compile(r"(?!0[box])[0-9][0-9a-f]*[a-df][0-9a-f]*")  # with a digit that no number has
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_TAKEN = frozenset(("true", "false", "yes", "no", "on", "off", "null"))
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0"}


def front(card: Card) -> dict[str, Any]:
    """The structured part as plain data (dict, list, str, bool, int, float), in the order in which it is written.

    What is at its default is left out, except for the fields that a person should see are empty.
    Raises KlineageError for what could not be read back: a number that is none, an id of another surface, two entries
    of one key.
    """
    _check(card)
    data = _plain(card)
    evidence = data.pop("carrier", {}).get("evidence")
    data.pop("anchor", None)
    data.pop("notes", None)
    if evidence:
        data["carrier"] = {"evidence": evidence}
    return {"schema": SCHEMA, **data}


def _check(card: Card) -> None:
    check_id(card.id)
    if card.id.partition(".")[0] != card.surface:
        raise KlineageError(
            f"{card.id} names a card of another surface than {card.surface}; change one of them"
        )
    for name in ("preconditions", "evidence", "verification"):
        for key, times in Counter(entry.key for entry in getattr(card, name)).items():
            if times > 1 or not re.fullmatch(r"\S+", key):
                raise KlineageError(
                    f"{card.id} cannot be written: the key {key!r} of its {name} must be one word, and unique"
                )


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        data = {}
        for field in fields(value):
            held = getattr(value, field.name)
            shown = isinstance(value, Scope | Contract) or (isinstance(value, Card) and field.name in _SHOWN)
            if shown or not _at_default(field, held):
                data[field.name] = _plain(held)
        return data
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(held) for held in value]
    if isinstance(value, float) and math.isnan(value):
        raise KlineageError("a card cannot hold a number that is not one (nan); leave the effect out")
    return value


def _at_default(field: Any, held: Any) -> bool:
    if field.default is not MISSING:
        return bool(held == field.default and type(held) is type(field.default))
    return field.default_factory is not MISSING and bool(held == field.default_factory())


def block(data: Mapping[str, Any], indent: int = 0, loose: bool = False) -> list[str]:
    """The lines of a mapping, each indented by ``indent`` spaces. ``loose``: as for ``scalar``."""
    lines: list[str] = []
    for name, value in data.items():
        first, *rest = field_lines(name, value, indent, loose)
        lines += [f"{' ' * indent}{text(name)}:{first}", *rest]
    return lines


def field_lines(name: str, value: Any, indent: int, loose: bool = False) -> list[str]:
    """What follows ``name:``: the rest of its line, then whole lines. ``indent`` is that of the name."""
    if not isinstance(value, Mapping | list):
        return [f" {scalar(value, loose=loose)}"]
    one = flow(value, name == SETTINGS)
    fits = len(one) + indent + len(name) + 2 <= WIDTH
    if not value or (fits and (_all_scalars(value) if isinstance(value, list) else name in _ON_ONE_LINE)):
        return [f" {one}"]
    if isinstance(value, Mapping):
        return ["", *block(value, indent + 2, name == SETTINGS)]
    return ["", *(line for item in value for line in item_lines(name, item, indent + 2))]


def item_lines(name: str, item: Any, indent: int) -> list[str]:
    """One entry of the list ``name``; ``indent`` is that of its dash."""
    dash = f"{' ' * indent}- "
    if not isinstance(item, Mapping):
        return [f"{dash}{scalar(item)}"]
    one = flow(item)
    if name in _ON_ONE_LINE and len(one) + indent + 2 <= WIDTH:
        return [f"{dash}{one}"]
    lines = block(item, indent + 2)
    return [dash + lines[0][indent + 2 :], *lines[1:]]


def flow(value: Any, loose: bool = False) -> str:
    """The value on one line, in brackets and braces."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{text(k, True)}: {flow(v, loose or k == SETTINGS)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(flow(held) for held in value) + "]"
    return scalar(value, in_flow=True, loose=loose)


def scalar(value: Any, in_flow: bool = False, loose: bool = False) -> str:
    """A single value. ``loose``: a text that looks like a number stays bare, as people write settings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if loose and _NUMBER.fullmatch(value):
        return str(value)
    return text(value, in_flow)


def _number(value: float) -> str:
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    written = repr(value)
    return written if "e" not in written or "." in written else written.replace("e", ".0e")


def text(value: str, in_flow: bool = False) -> str:
    """The text bare where every reader of YAML takes it for this text, else in double quotes."""
    if _HASH.fullmatch(value):
        return value
    form = _PLAIN_IN_FLOW if in_flow else _PLAIN
    if (
        form.fullmatch(value)
        and value.isprintable()
        and value.lower() not in _TAKEN
        and ": " not in value
        and " #" not in value
        and value[-1] not in ": "
    ):
        return value
    return quoted(value)


def quoted(value: str) -> str:
    """The text in double quotes; whatever cannot be seen is written as its number."""
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _all_scalars(values: list[Any]) -> bool:
    return not any(isinstance(value, Mapping | list) for value in values)
