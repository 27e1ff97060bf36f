"""What both forms of the authors' cards have in common, and how their fields are read with the file named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from klineage.errors import KlineageError

Generation = Literal["SKILL.md", "JSON with a body", "JSON of the nine fields"]


@dataclass(frozen=True)
class Foreign:
    """One of their cards, field by field, in their words."""

    generation: Generation
    name: str
    intent: str
    preconditions: tuple[str, ...]
    cases: tuple[str, ...]
    languages: tuple[str, ...]
    platforms: tuple[str, ...]
    prior: tuple[str, ...] = ()
    action: str = ""
    anchor: str = ""
    before: str = ""
    after: str = ""
    risks: tuple[str, ...] = ()
    requires: tuple[Mapping[str, Any], ...] = ()
    provides: tuple[Mapping[str, Any], ...] = ()
    conflicts: tuple[Mapping[str, Any], ...] = ()
    notes: str = ""


def text(value: Any, key: str, where: str) -> str:
    """A text that is not empty. Raises KlineageError with ``where`` for anything else."""
    if not isinstance(value, str) or not value.strip():
        raise KlineageError(f"{where}: {key} must be a text")
    return " ".join(value.split())


def texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    """A list of texts; a single text is a list of one."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise KlineageError(f"{where}: {key} must be a list of texts")
    return tuple(text(one, key, where) for one in value)


def scope(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    """cases, languages, platforms and prior_actions, without what does not stand there."""
    if not isinstance(value, Mapping):
        raise KlineageError(f"{where}: scope must have cases, languages and platforms")
    unknown = set(value) - {"cases", "languages", "platforms", "prior_actions"}
    if unknown:
        raise KlineageError(
            f"{where}: scope has {', '.join(sorted(map(str, unknown)))}, which neither of the authors' forms has"
        )
    return {str(key): texts(entry, f"scope.{key}", where) for key, entry in value.items() if entry}


def unlike(keys: set[str], where: str, known: Mapping[str, frozenset[str]]) -> KlineageError:
    """The error for a card of neither form: which form it is nearest to, and what it lacks or has too much."""
    nearest = min(known, key=lambda name: len(known[name] ^ keys))
    missing, extra = sorted(known[nearest] - keys), sorted(keys - known[nearest])
    parts = ([f"lacks {', '.join(missing)}"] if missing else []) + (
        [f"has {', '.join(extra)}"] if extra else []
    )
    return KlineageError(
        f"{where}: this is none of the authors' forms; beside their {nearest} it {' and '.join(parts)}"
    )
