"""What a person may set about the proposers that cost something: the ``[proposer]`` table of config.toml."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Literal, get_args
from urllib.parse import urlsplit

from klineage.errors import KlineageError

Effort = Literal["", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
NO_BUDGET = "none"
DEFAULT_MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True)
class Settings:
    """How models are asked and commands are run. Keys are never part of it: they are the SDK's own business.

    model:      the model that ``--proposer model`` means.
    effort:     how hard it thinks; empty leaves that to the model.
    base_url:   where the API is; empty leaves that to the SDK (``ANTHROPIC_BASE_URL``, else Anthropic's own).
    max_tokens: the longest answer, thinking included; it bounds what a call can cost.
    timeout:    seconds that one model call may take, waiting for an overloaded API included.
    retries:    how often a call that the API did not take is sent again.
    commands:   a name for ``--proposer command:NAME`` -> its command line.
    command_timeout: seconds that one run of a command may take.
    budget:     dollars that the calls of one lineage may cost when the app asks; None for no limit.
    """

    model: str = DEFAULT_MODEL
    effort: Effort = "medium"
    base_url: str = ""
    max_tokens: int = 32_000
    timeout: float = 600.0
    retries: int = 4
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    command_timeout: float = 1800.0
    budget: Decimal | None = Decimal(10)


KEYS = tuple(Settings.__dataclass_fields__)


def settings_from(table: Mapping[str, object]) -> Settings:
    """The settings of a parsed ``[proposer]`` table. Raises KlineageError naming the key that is not understood."""
    for key in table:
        if key not in KEYS:
            raise KlineageError(f"unknown key '{key}' in [proposer]; known are {', '.join(KEYS)}")
    default = Settings()
    return Settings(
        model=check_model(_text(table, "model", default.model)),
        effort=_effort(table),
        base_url=_base_url(_text(table, "base_url", "")),
        max_tokens=int(_number(table, "max_tokens", default.max_tokens, 1_000, whole=True)),
        timeout=_number(table, "timeout", default.timeout, 1),
        retries=int(_number(table, "retries", default.retries, 0, whole=True)),
        commands=_commands(table),
        command_timeout=_number(table, "command_timeout", default.command_timeout, 1),
        budget=_budget(table) if "budget" in table else default.budget,
    )


def check_model(model: str) -> str:
    """The id of a model, as it may stand in a request, a commit and a file name's neighbourhood.

    Raises KlineageError for what no API calls a model.
    """
    if (
        not model
        or len(model) > 200
        or not model.isascii()
        or not model.isprintable()
        or set(model) & set(" ;,")
    ):
        raise KlineageError(f"{model!r} is no id of a model; write one such as {DEFAULT_MODEL}")
    return model


def _text(table: Mapping[str, object], key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise KlineageError(f"'{key}' in [proposer] must be text, not {value!r}")
    return value


def _effort(table: Mapping[str, object]) -> Effort:
    value = _text(table, "effort", Settings().effort)
    if value not in EFFORTS:
        known = ", ".join(repr(effort) for effort in EFFORTS)
        raise KlineageError(f"'effort' in [proposer] is {value!r}; it can be {known}")
    return value


def _number(
    table: Mapping[str, object], key: str, default: float, least: float, *, whole: bool = False
) -> float:
    value = table.get(key, default)
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value < 1e9:
        kind = "a whole number" if whole else "a number"
        raise KlineageError(f"'{key}' in [proposer] is {value!r}; it must be {kind} of at least {least:g}")
    return value


def _budget(table: Mapping[str, object]) -> Decimal | None:
    from klineage.ledger import parse_dollars

    value = table["budget"]
    if value == NO_BUDGET:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise KlineageError(
            f"'budget' in [proposer] is {value!r}; write dollars, such as 10, or '{NO_BUDGET}'"
        )
    return parse_dollars(str(value), "'budget' in [proposer]")


def _base_url(url: str) -> str:
    """An address without secrets in it, since it may be shown and recorded."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that is not closed, a port that is no number
        sound = False
    if not sound:
        raise KlineageError(
            f"'base_url' in [proposer] is {url!r}; write an address such as https://api.example.org"
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise KlineageError(
            "'base_url' in [proposer] must hold an address only; keys belong into ANTHROPIC_API_KEY, never into a file"
        )
    return url


def _commands(table: Mapping[str, object]) -> Mapping[str, tuple[str, ...]]:
    found = table.get("commands", {})
    if not isinstance(found, dict):
        raise KlineageError("'commands' in [proposer] must be a table of name = command line")
    return MappingProxyType({str(name): _command(str(name), line) for name, line in found.items()})


def _command(name: str, line: object) -> tuple[str, ...]:
    if not isinstance(line, str):
        raise KlineageError(f"the command '{name}' in [proposer.commands] must be text, not {line!r}")
    try:
        words = tuple(shlex.split(line))
    except ValueError as problem:
        raise KlineageError(f"the command '{name}' in [proposer.commands]: {problem}") from problem
    if not words:
        raise KlineageError(f"the command '{name}' in [proposer.commands] is empty; write a command line")
    return words
