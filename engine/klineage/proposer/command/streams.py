"""What a command writes while it works, as progress to show and as facts about its cost. All of it is foreign."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Protocol

from klineage.ledger import Usage
from klineage.proposer.base import ProposerEvent
from klineage.proposer.secrets import redacted

_SHOWN = 4_000  # characters of one piece of an answer


@dataclass
class Facts:
    """What a command itself says that it used; None where it does not say.

    failed: its own sentence for why it gave up.
    """

    dollars: Decimal | None = None
    usage: Usage | None = None
    failed: str = ""


class Stream(Protocol):
    """Understands the lines of one run."""

    @property
    def facts(self) -> Facts: ...

    def read(self, line: str) -> list[ProposerEvent]:
        """What one line of standard output says."""
        ...


@dataclass
class PlainStream:
    """A command of which nothing is known: its lines are shown as they are."""

    facts: Facts = field(default_factory=Facts)

    def read(self, line: str) -> list[ProposerEvent]:
        return [ProposerEvent("text", line[:_SHOWN] + "\n")]


@dataclass
class ClaudeStream:
    """``claude -p --output-format stream-json``: messages with the usage of each, then one result with usage and dollars.

    Until the result comes, what the messages say adds up: it is all that is known of a run that is ended before.
    """

    facts: Facts = field(default_factory=Facts)
    _messages: dict[str, Usage] = field(default_factory=dict)  # the last word on each, by its id

    def read(self, line: str) -> list[ProposerEvent]:
        record = _record(line)
        if record is None:
            return PlainStream().read(line)
        if record.get("type") == "assistant":
            self._add(_mapping(record.get("message")) or {})
            return [event for block in _blocks(record) if (event := _block_event(block))]
        if record.get("type") == "result":
            self._result(record)
        return []

    def _add(self, message: Mapping[str, object]) -> None:
        usage = _mapping(message.get("usage"))
        if usage is not None:
            self._messages[str(message.get("id", len(self._messages)))] = _used(usage)
            self.facts.usage = sum(self._messages.values(), Usage())

    def _result(self, record: Mapping[str, object]) -> None:
        self.facts.dollars = _dollars(record.get("total_cost_usd"))
        usage = _mapping(record.get("usage"))
        if usage is not None:
            self.facts.usage = _used(usage)
        if record.get("is_error") is True or str(record.get("subtype", "success")) != "success":
            self.facts.failed = _sentence(record.get("result") or record.get("subtype"))


@dataclass
class CodexStream:
    """``codex exec --json``: items of a turn, its usage at the end, no dollars."""

    facts: Facts = field(default_factory=Facts)

    def read(self, line: str) -> list[ProposerEvent]:
        record = _record(line)
        if record is None:
            return PlainStream().read(line)
        kind = record.get("type")
        if kind == "item.completed":
            return _item_events(_mapping(record.get("item")) or {})
        if kind == "turn.completed":
            self._used(_mapping(record.get("usage")) or {})
        elif kind == "turn.failed":
            self.facts.failed = _sentence((_mapping(record.get("error")) or {}).get("message"))
        elif kind == "error":
            return [ProposerEvent("status", _sentence(record.get("message")))]
        return []

    def _used(self, usage: Mapping[str, object]) -> None:
        """Its count of the prompt includes what came from the cache; turns add up."""
        prompt, cached = _count(usage, "input_tokens"), _count(usage, "cached_input_tokens")
        used = Usage(input=max(prompt - cached, 0), cached=cached, output=_count(usage, "output_tokens"))
        self.facts.usage = (self.facts.usage or Usage()) + used


def _used(usage: Mapping[str, object]) -> Usage:
    """What an object of the Messages API says of tokens."""
    return Usage(
        input=_count(usage, "input_tokens"),
        cached=_count(usage, "cache_read_input_tokens"),
        cache_write=_count(usage, "cache_creation_input_tokens"),
        output=_count(usage, "output_tokens"),
    )


def _block_event(block: Mapping[str, object]) -> ProposerEvent | None:
    if block.get("type") == "text":
        return ProposerEvent("text", str(block.get("text", ""))[:_SHOWN] + "\n")
    if block.get("type") == "tool_use":
        about = _mapping(block.get("input")) or {}
        what = next((str(about[key]) for key in ("file_path", "command", "pattern") if key in about), "")
        return ProposerEvent("status", f"{block.get('name', 'a tool')} {what}".strip()[:200])
    return None


def _item_events(item: Mapping[str, object]) -> list[ProposerEvent]:
    kind = item.get("type")
    if kind in ("agent_message", "reasoning"):
        return [ProposerEvent("text", str(item.get("text", ""))[:_SHOWN] + "\n")]
    if kind == "command_execution":
        return [ProposerEvent("status", f"ran {item.get('command', '')}"[:200])]
    if kind == "file_change":
        return [ProposerEvent("status", "changed files")]
    return []


def _record(line: str) -> Mapping[str, object] | None:
    try:
        return _mapping(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _mapping(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) else None


def _blocks(record: Mapping[str, object]) -> list[Mapping[str, object]]:
    content = (_mapping(record.get("message")) or {}).get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _count(usage: Mapping[str, object], name: str) -> int:
    value = usage.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _dollars(value: object) -> Decimal | None:
    """An amount that a tool reports; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def _sentence(value: object) -> str:
    return " ".join(redacted(str(value or "no reason given")).split())[:300]
