"""A message of the API while it streams: what has come, and what it has used. Nothing of it is trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from klineage.ledger import Usage
from klineage.proposer.base import ProposerEvent
from klineage.proposer.folder import CallFolder
from klineage.proposer.model.faults import said

_LONGEST = 1 << 23  # characters of an answer; no model writes so much, but a server could fill the disk
_USAGE = {
    "input": "input_tokens",
    "cached": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "output": "output_tokens",
}


@dataclass
class Stream:
    """What has come of a message so far."""

    begun: bool = False
    text: list[str] = field(default_factory=list)
    size: int = 0
    stop: str = ""
    explanation: str = ""
    counts: dict[str, object] = field(default_factory=dict)

    @property
    def so_far(self) -> str:
        return "".join(self.text)

    @property
    def usage(self) -> Usage | None:
        """What the call has used; None where the API does not say, so that it costs at most its worst case."""
        counts = {"cached": 0, "cache_write": 0} | self.counts
        if {"input", "output"} <= counts.keys() and all(type(n) is int and n >= 0 for n in counts.values()):
            return Usage(**counts)  # type: ignore[arg-type]  # all of them are int
        return None


def take(event: Any, stream: Stream, folder: CallFolder) -> None:
    """Note one event of the stream. Raises ValueError for one that is not of the API's form."""
    try:
        _note(event, stream, folder)
    except (AttributeError, TypeError) as error:  # the SDK does not check what it is sent
        raise ValueError("malformed event") from error


def _note(event: Any, stream: Stream, folder: CallFolder) -> None:
    """Kinds that are not known are passed over, as the API asks."""
    kind = event.type
    if kind == "message_start":
        stream.begun = True
        _count(event.message.usage, stream)
    elif kind == "content_block_start" and event.content_block.type == "thinking":
        folder.add(ProposerEvent("status", "thinking"))
    elif kind == "content_block_delta" and event.delta.type == "text_delta":
        text = event.delta.text
        if not isinstance(text, str):
            raise TypeError(text)
        stream.text.append(text)
        stream.size += len(text)
        if stream.size > _LONGEST:
            raise ValueError("too long")
        folder.add(ProposerEvent("text", text))
    elif kind == "message_delta":
        stream.stop = str(event.delta.stop_reason or "")
        details = event.delta.stop_details
        stream.explanation = said(details.explanation) if details and details.explanation else ""
        stream.counts.pop("output", None)  # the beginning cannot know how long the answer is
        _count(event.usage, stream)


def _count(usage: Any, stream: Stream) -> None:
    """Usage is cumulative; what an event leaves out has not changed."""
    for kind, name in _USAGE.items():
        if (value := getattr(usage, name, None)) is not None:
            stream.counts[kind] = value
