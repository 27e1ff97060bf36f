"""One call of the Messages API through its SDK. Runs in the child, and nowhere else."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import anthropic
import httpx2

from klineage.proposer.base import ProposerEvent
from klineage.proposer.folder import CallFolder
from klineage.proposer.model.faults import WRONG_ADDRESS, asked_wait, host_of, refusal, said
from klineage.proposer.model.stream import Stream, take
from klineage.proposer.question import Outcome, Question

_CONNECT = 15.0  # seconds
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0  # seconds before a call is sent again, where the API does not say
_BUSY = (408, 409, 429, 500, 502, 503, 504, 529)


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
    stream = Stream()
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


def _persistently(folder: CallFolder, question: Question, client: dict[str, Any], stream: Stream) -> Outcome:
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
    """The SDK's client. Keys come from the environment or from its own configuration.

    No redirect is followed: the key would go with it, to whomever a wrong address names.
    """
    timeout = httpx2.Timeout(float(client["timeout"]), connect=_CONNECT)
    try:
        return anthropic.Anthropic(
            base_url=client["base_url"] or None,
            timeout=timeout,
            max_retries=0,
            http_client=anthropic.DefaultHttpxClient(follow_redirects=False),
        )
    except httpx2.InvalidURL as error:
        raise _End(_impossible(f"{WRONG_ADDRESS} is no address")) from error
    except (anthropic.AnthropicError, ValueError) as error:
        raise _End(_impossible(f"the SDK's own configuration cannot be used: {said(error)}")) from error


def _once(api: anthropic.Anthropic, folder: CallFolder, question: Question, stream: Stream) -> Outcome:
    folder.mark("sent")
    try:
        with api.messages.create(stream=True, **question.body) as events:
            kind = events.response.headers.get("content-type", "nothing").partition(";")[0]
            for event in events:
                take(event, stream, folder)
                if event.type == "message_stop":
                    break  # a proxy may keep the connection open
    except TypeError as error:
        if stream.begun or "authentication" not in str(error):
            raise
        raise _End(_no_key()) from error
    except anthropic.CredentialsError as error:
        raise _End(_impossible(f"the SDK found no usable key: {said(error)}")) from error
    except anthropic.APIError as error:
        _fail(error, api, question, stream)
    except httpx2.InvalidURL as error:
        raise _End(_impossible(f"{WRONG_ADDRESS} is no address")) from error
    except httpx2.HTTPError as error:
        raise _End(_broken(question, stream, type(error).__name__)) from error
    except ValueError as error:
        raise _End(_broken(question, stream, "it is malformed, or endless")) from error
    if not stream.begun and kind != "text/event-stream":
        problem = f"{host_of(str(api.base_url))} is no Messages API (it answers with {said(kind)}): check {WRONG_ADDRESS}"
        raise _End(Outcome("impossible", problem=problem, spent="unknown"))
    if not stream.stop:
        raise _End(_broken(question, stream, "it ended early"))
    answer = Outcome("answered", stream.so_far, stream.stop, stream.explanation)
    usage = stream.usage
    return replace(answer, spent="unknown") if usage is None else replace(answer, spent="exact", usage=usage)


def _fail(error: anthropic.APIError, api: anthropic.Anthropic, question: Question, stream: Stream) -> None:
    """Raise _Again for what may be better next time, _End for everything else."""
    host = host_of(str(api.base_url))
    if isinstance(error, anthropic.APIStatusError):
        busy = error.status_code in _BUSY or error.type in (
            "overloaded_error",
            "rate_limit_error",
            "api_error",
        )
        if stream.begun:
            raise _End(_broken(question, stream, said(error.type or "error"))) from error
        if busy:
            why = said(error.type or error.status_code)
            raise _Again(
                f"{host} is busy ({why})", asked_wait(error.response.headers.get("retry-after", ""))
            ) from error
        raise _End(
            _impossible(refusal(error.status_code, error.api_message or "", host, question.model))
        ) from error
    if isinstance(error, anthropic.APIConnectionError) and not stream.begun:
        if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
            raise _End(_impossible(f"cannot reach {host}: check the network, and {WRONG_ADDRESS}")) from error
        if isinstance(error.__cause__, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | UnicodeError):
            why = f"the request to {host} cannot be sent: ANTHROPIC_API_KEY or the address holds a character that it may not"
            raise _End(_impossible(why)) from error
    raise _End(_broken(question, stream, "the connection was lost")) from error


def _no_key() -> Outcome:
    return _impossible(
        "there is no API key: export ANTHROPIC_API_KEY, or set up a profile of the SDK; the rules need none"
    )


def _impossible(problem: str) -> Outcome:
    return Outcome("impossible", problem=problem, spent="nothing")


def _unsent(problem: str) -> Outcome:
    return Outcome("failed", problem=problem, spent="nothing")


def _broken(question: Question, stream: Stream, why: str) -> Outcome:
    problem = f"the answer of {question.model} broke off: {why}"
    return Outcome("failed", stream.so_far, problem=problem, spent="unknown")
