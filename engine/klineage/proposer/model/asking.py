"""One call of the Messages API through its SDK. Runs in the child, and nowhere else."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2

from klineage.ledger import Usage
from klineage.proposer.base import ProposerEvent
from klineage.proposer.folder import CallFolder
from klineage.proposer.question import Outcome, Question

_CONNECT = 15.0  # seconds
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0  # seconds before a call is sent again, where the API does not say
_BUSY = (408, 409, 429, 500, 502, 503, 504, 529)
_SAID = 300  # characters of the API's own words in a sentence


class _OutOfTime(BaseException):
    """The call has taken as long as it may. No Exception, so that the SDK cannot take it for one of its own."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise _OutOfTime in this block after so many seconds, also out of a wait for the network."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise _OutOfTime

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@dataclass
class _Stream:
    """What has come of a message so far."""

    begun: bool = False
    text: list[str] = field(default_factory=list)
    stop: str = ""
    explanation: str = ""
    usage: dict[str, int] = field(default_factory=dict)

    @property
    def so_far(self) -> str:
        return "".join(self.text)


class _Again(Exception):
    """The API did not take the call; it may be sent again after ``wait`` seconds (None: it does not say)."""

    def __init__(self, what: str, wait: float | None) -> None:
        super().__init__(what)
        self.wait = wait


class _End(Exception):
    """The call is over without an answer."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.problem)
        self.outcome = outcome


def ask(folder: CallFolder, question: Question, client: dict[str, Any]) -> Outcome:
    """The outcome of a question; ``client``: base_url, timeout (seconds) and retries, as settings have them."""
    stream = _Stream()
    try:
        with _within(float(client["timeout"])):
            return _persistently(folder, question, client, stream)
    except _OutOfTime:
        problem = (
            f"{question.model} did not finish within {client['timeout']:g} seconds; "
            "raise timeout in [proposer], or lower the effort"
        )
        sent = folder.has("sent")
        return Outcome("failed", stream.so_far, problem=problem, spent="unknown" if sent else "nothing")
    except _End as end:
        return end.outcome


def _persistently(folder: CallFolder, question: Question, client: dict[str, Any], stream: _Stream) -> Outcome:
    """Send the call until it is taken, as often as the settings allow and as late as the API asks."""
    deadline = time.monotonic() + float(client["timeout"])
    api = _client(client)
    for again in range(int(client["retries"]) + 1):
        try:
            return _once(api, folder, question, stream)
        except _Again as busy:
            wait = min(_FIRST_WAIT * 2**again, _LONGEST_WAIT) if busy.wait is None else busy.wait
            tries = "once" if again == 0 else f"{again + 1} times"
            if again == client["retries"]:
                raise _End(_unsent(f"{busy}; it was asked {tries}, try again later")) from busy
            if time.monotonic() + wait >= deadline:
                raise _End(
                    _unsent(f"{busy} and asks to wait {wait:.0f} seconds, longer than the timeout")
                ) from busy
            folder.add(ProposerEvent("status", f"{busy}; again in {wait:.0f} s"))
            time.sleep(wait)
    raise AssertionError("the last try either returns or raises")


def _client(client: dict[str, Any]) -> anthropic.Anthropic:
    """The SDK's client. Keys come from the environment or from its own configuration."""
    timeout = httpx2.Timeout(float(client["timeout"]), connect=_CONNECT)
    try:
        return anthropic.Anthropic(base_url=client["base_url"] or None, timeout=timeout, max_retries=0)
    except (anthropic.AnthropicError, ValueError) as error:
        raise _End(_impossible(f"the SDK's own configuration cannot be used: {_said(error)}")) from error


def _once(api: anthropic.Anthropic, folder: CallFolder, question: Question, stream: _Stream) -> Outcome:
    folder.mark("sent")
    try:
        with api.messages.create(stream=True, **question.body) as events:
            for event in events:
                _take(event, stream, folder)
    except TypeError as error:
        if stream.begun or "authentication" not in str(error):
            raise
        raise _End(_no_key()) from error
    except anthropic.CredentialsError as error:
        raise _End(_impossible(f"the SDK found no usable key: {_said(error)}")) from error
    except anthropic.APIError as error:
        _fail(error, api, question, stream)
    except (
        httpx2.HTTPError,
        ValueError,
    ) as error:  # the stream itself is broken, or is not what it should be
        raise _End(_broken(question, stream, type(error).__name__)) from error
    if not stream.stop:
        raise _End(_broken(question, stream, "it ended early"))
    usage = Usage(
        input=stream.usage.get("input_tokens", 0),
        cached=stream.usage.get("cache_read_input_tokens", 0),
        cache_write=stream.usage.get("cache_creation_input_tokens", 0),
        output=stream.usage.get("output_tokens", 0),
    )
    return Outcome("answered", stream.so_far, stream.stop, stream.explanation, spent="exact", usage=usage)


def _take(event: Any, stream: _Stream, folder: CallFolder) -> None:
    """Note one event of the stream; kinds that are not known are passed over, as the API asks."""
    kind = event.type
    if kind == "message_start":
        stream.begun = True
        _count(event.message.usage, stream)
    elif kind == "content_block_start" and event.content_block.type == "thinking":
        folder.add(ProposerEvent("status", "thinking"))
    elif kind == "content_block_delta" and event.delta.type == "text_delta":
        stream.text.append(event.delta.text)
        folder.add(ProposerEvent("text", event.delta.text))
    elif kind == "message_delta":
        stream.stop = event.delta.stop_reason or ""
        details = event.delta.stop_details
        stream.explanation = _said(details.explanation) if details and details.explanation else ""
        _count(event.usage, stream)


def _count(usage: Any, stream: _Stream) -> None:
    """Usage is cumulative; what an event leaves out has not changed."""
    for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"):
        if (value := getattr(usage, name, None)) is not None:
            stream.usage[name] = int(value)


def _fail(error: anthropic.APIError, api: anthropic.Anthropic, question: Question, stream: _Stream) -> None:
    """Raise _Again for what may be better next time, _End for everything else."""
    address = urlsplit(str(api.base_url))
    host = (
        f"{address.hostname}:{address.port}" if address.port else str(address.hostname)
    )  # never user:password
    if isinstance(error, anthropic.APIStatusError):
        busy = error.status_code in _BUSY or error.type in (
            "overloaded_error",
            "rate_limit_error",
            "api_error",
        )
        if stream.begun:
            raise _End(_broken(question, stream, str(error.type or "error"))) from error
        if busy:
            raise _Again(f"{host} is busy ({error.type or error.status_code})", _asked_wait(error)) from error
        raise _End(_impossible(_refusal(error, host, question.model))) from error
    if isinstance(error, anthropic.APIConnectionError) and not stream.begun:
        if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
            why = f"cannot reach {host}: check the network, and base_url in [proposer] or ANTHROPIC_BASE_URL"
            raise _End(_impossible(why)) from error
        if isinstance(
            error.__cause__, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.InvalidURL
        ):
            why = f"the request to {host} cannot be sent: ANTHROPIC_API_KEY or the address holds a character that it may not"
            raise _End(_impossible(why)) from error
    raise _End(_broken(question, stream, "the connection was lost")) from error


def _refusal(error: anthropic.APIStatusError, host: str, model: str) -> str:
    """What the API holds against the request, and what a person can do."""
    status = error.status_code
    if status == 401:
        return f"{host} does not accept the key (401): check ANTHROPIC_API_KEY, or the profile of the SDK"
    if status == 402:
        return f"{host} wants to be paid first (402): {_said(error.api_message)}"
    if status == 403:
        return f"this key may not use {model} at {host} (403): {_said(error.api_message)}"
    if status == 404:
        return f"{host} knows no model {model!r} (404): set model in [proposer], or ask --proposer model:ID"
    if status == 413:
        return f"the kernel is too long for one request to {host} (413)"
    return f"{host} refused the request ({status}): {_said(error.api_message) or 'it does not say why'}"


def _asked_wait(error: anthropic.APIStatusError) -> float | None:
    """Seconds that the API asks to wait, by its header (a number or a date); None where it does not say."""
    said = error.response.headers.get("retry-after", "")
    try:
        wait = float(said)
    except ValueError:
        try:
            wait = parsedate_to_datetime(said).timestamp() - time.time()
        except ValueError:
            return None
    return max(wait, 0.0) if wait < 1e6 else None


def _said(words: object) -> str:
    return " ".join(str(words or "").split())[:_SAID]


def _no_key() -> Outcome:
    return _impossible(
        "there is no API key: export ANTHROPIC_API_KEY, or set up a profile of the SDK; --proposer rules needs none"
    )


def _impossible(problem: str) -> Outcome:
    return Outcome("impossible", problem=problem, spent="nothing")


def _unsent(problem: str) -> Outcome:
    return Outcome("failed", problem=problem, spent="nothing")


def _broken(question: Question, stream: _Stream, why: str) -> Outcome:
    problem = f"the answer of {question.model} broke off: {why}"
    return Outcome("failed", stream.so_far, problem=problem, spent="unknown")
