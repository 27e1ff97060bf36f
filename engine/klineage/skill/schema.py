"""The published JSON schema of a card's front matter, made from the data classes that read it.

``python -m klineage.skill.schema`` prints it; ``docs/card.schema.json`` is that text. An editor that knows YAML schemas can
check a card while it is typed. The schema is of the data after YAML has been read: klineage itself takes every
text as it is written, ``33`` as well as ``"33"``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from klineage.skill.card import SCHEMA, Card
from klineage.skill.format.reading import front_shape, shape

DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: Keys that name entries within a card, and the card's id, as patterns.
_PATTERNS = {"key": r"^\S+$", "id": r"^(triton|cuda|c)\.[a-z0-9]+(-[a-z0-9]+)*$"}


def schema() -> dict[str, Any]:
    """The schema as plain data. Its definitions carry the docstrings' words for each field."""
    definitions: dict[str, Any] = {}
    front = front_shape()
    properties = {name: _field(name, hint, definitions) for name, hint in front.hints.items()}
    properties["schema"] = {"const": SCHEMA, "description": "the version of this format"}
    properties["id"] |= {"maxLength": 64}
    return {
        "$schema": DIALECT,
        "title": "SkillCard",
        "description": "The front matter of a SkillCard, one Markdown file an optimization.",
        "type": "object",
        "properties": _described(properties, Card),
        "required": list(front.required),
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }


def text() -> str:
    """The schema as the file that is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _field(name: str, hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    found = _of(hint, definitions)
    if name in _PATTERNS and hint is str:
        return {**found, "pattern": _PATTERNS[name]}
    return found


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin in (Union, UnionType):
        inner = next(argument for argument in arguments if argument is not NoneType)
        return {"anyOf": [_of(inner, definitions), {"type": "null"}]}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint, definitions)
    return {"type": {str: "string", float: "number", int: "integer", bool: "boolean"}[hint]}


def _record(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        known = shape(kind)
        properties = {name: _field(name, hint, definitions) for name, hint in known.hints.items()}
        definitions[kind.__name__] |= {
            "description": (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "`"),
            "type": "object",
            "properties": _described(properties, kind),
            "required": list(known.required),
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _described(properties: dict[str, Any], kind: type) -> dict[str, Any]:
    """The properties with what the class's docstring says of each, and the defaults."""
    words = _words(kind)
    defaults = {field.name: field.default for field in fields(kind)}
    for name, found in properties.items():
        if name in words:
            found["description"] = words[name]
        if isinstance(default := defaults.get(name), str | int | float) and name != "schema":
            found["default"] = default
    return properties


def _words(kind: type) -> dict[str, str]:
    """``name: what it is`` lines of a docstring; lines that are indented further belong to the one above."""
    found: dict[str, str] = {}
    name = ""
    for line in (inspect.getdoc(kind) or "").splitlines():
        if began := re.match(r"([a-z_]+(?:/[a-z_]+)*): +(\S.*)", line):
            name = began[1]
            found[name] = began[2]
        elif name and line.startswith("  "):
            found[name] += f" {line.strip()}"
        else:
            name = ""
    flat = {part: said.replace("``", "`") for names, said in found.items() for part in names.split("/")}
    return {name: said for name, said in flat.items() if name in {field.name for field in fields(kind)}}


if __name__ == "__main__":
    print(text(), end="")
