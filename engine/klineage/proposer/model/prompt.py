"""The prompts, which are files, and the text that is put into them, which is never trusted."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from klineage.proposer.question import digest
from klineage.proposer.vocabulary import ACTIONS

_FOLDER = Path(__file__).with_name("prompts")
NAMES = ("system", "backward", "forward")
HIDDEN_TOKENS = 2_000  # what an API may add to a prompt by itself; no text has more tokens than bytes

_STRING = {"type": "string"}
_STRINGS = {"type": "array", "items": _STRING}


def closed_object(**properties: Any) -> dict[str, Any]:
    """The schema of an object with exactly these properties, as structured output wants it."""
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


#: The form of an answer, for structured output. The reasoning comes before the code.
SCHEMA: dict[str, Any] = closed_object(
    decision={"type": "string", "enum": ["propose", "nothing"]},
    rationale=_STRING,
    title=_STRING,
    action=_STRING,
    locus=_STRING,
    removes=_STRINGS,
    settings={"type": "array", "items": closed_object(name=_STRING, value=_STRING)},
    preconditions=_STRINGS,
    source=_STRING,
    edits={"type": "array", "items": closed_object(search=_STRING, replace=_STRING)},
)


@functools.cache
def prompt(name: str) -> str:
    """The text of ``prompts/<name>.md``."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8")


@functools.cache
def system() -> str:
    """What every request begins with, the same for all kernels."""
    actions = "\n".join(f"- `{word}`: {meaning}" for word, meaning in ACTIONS.items())
    return prompt("system").replace("{actions}", actions)


@functools.cache
def prompt_hash() -> str:
    """12 hex digits over everything that is constant in what a model is told: prompts, vocabulary, schema."""
    return digest([system(), *(prompt(name) for name in NAMES), SCHEMA])[:12]


def fill(name: str, **values: str) -> str:
    """A prompt with its gaps filled; what is filled in is not looked at again."""
    parts = prompt(name).split("{")
    filled = [parts[0]]
    for part in parts[1:]:
        gap, _, rest = part.partition("}")
        filled.append(values[gap] + rest)
    return "".join(filled)


def fenced(what: str, text: str) -> str:
    """``text`` as data, between two lines with a number that is nowhere in it.

    The number follows from the text, so that the same question is the same to the last byte.
    """
    number = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    while number in text:  # nobody can plan for it, but nothing hangs on that
        number = hashlib.sha256(number.encode()).hexdigest()[:32]
    return f"<<<{number} {what}\n{text}\n>>>{number}"


def listed(items: Iterable[object], empty: str) -> str:
    """One item a line, or ``empty``."""
    return "\n".join(str(item) for item in items) or empty


def json_lines(records: Iterable[dict[str, Any]]) -> str:
    """One object a line, so that no line end inside a text can begin another."""
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
