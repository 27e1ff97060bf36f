"""One call through the real SDK to a server that does what the API does on a bad day."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.ledger import Usage
from klineage.proposer.base import Task
from klineage.proposer.folder import CallFolder
from klineage.proposer.model.request import question_of
from klineage.proposer.question import Outcome
from klineage.proposer.secrets import redacted
from klineage.proposer.settings import Settings

from ...messages_server import KEY, Events, Fail, MessagesServer, Reply, Served, slowly

ask: Any = pytest.importorskip("klineage.proposer.model.asking", reason="needs the SDK").ask

CLIENT: dict[str, Any] = {"base_url": "", "timeout": 30.0, "retries": 2}
Call = Callable[..., tuple[Outcome, CallFolder]]


@pytest.fixture
def call(tmp_path: Path, task: Callable[..., Task]) -> Call:
    """``call(**client)``: the outcome of one call, and the folder that it was written to."""

    def make(**client: Any) -> tuple[Outcome, CallFolder]:
        question = question_of(task(), "rows-c", "claude-sonnet-5-5", Settings())
        folder = CallFolder(tmp_path / ".git" / "klineage" / "calls" / "1")
        os.close(folder.create(question, CLIENT | client))
        return ask(folder, question, folder.client()), folder

    return make


def said(folder: CallFolder, kind: str) -> list[str]:
    return [event.text for event in folder.events(0)[0] if event.kind == kind]


def usage(served: Served) -> Usage:
    return Usage(served.input, served.cache_read, served.cache_write, served.output)


def test_an_answer_streams_and_its_usage_is_the_servers(messages: MessagesServer, call: Call) -> None:
    messages.say(Reply("the answer, in pieces", piece=5, thinking="hm"))
    outcome, folder = call()
    assert (outcome.status, outcome.text, outcome.stop) == ("answered", "the answer, in pieces", "end_turn")
    assert "".join(said(folder, "text")) == outcome.text
    assert len(said(folder, "text")) == 5
    assert "thinking" in said(folder, "status")
    assert outcome.spent == "exact"
    assert outcome.usage == usage(messages.served)
    assert outcome.usage.cache_write > 0
    body = messages.requests[0].body
    assert body["stream"] is True
    assert body["output_config"]["format"]["type"] == "json_schema"


def test_a_busy_api_is_asked_again_when_it_says(messages: MessagesServer, call: Call) -> None:
    messages.say(Fail(529, retry_after=0.01), Fail(429, retry_after=0.02), Reply("yes"))
    outcome, folder = call()
    assert outcome.text == "yes"
    statuses = said(folder, "status")
    assert "overloaded_error" in statuses[0]
    assert "rate_limit_error" in statuses[1]
    assert outcome.usage == usage(messages.served)
    assert messages.served.calls == 1


@pytest.mark.parametrize(
    ("fails", "client", "says"),
    [
        ([Fail(500, retry_after=0.01)] * 3, {}, "asked 3 times, try again later"),
        ([Fail(529)], {"retries": 0}, "asked once, try again later"),
        ([Fail(429, retry_after=7200)], {}, "asks to wait 7200 seconds, longer than the timeout"),
        ([Fail(503, raw=b"<html>busy</html>", retry_after=0)] * 3, {}, "is busy"),
    ],
)
def test_a_busy_api_is_not_waited_for_for_ever(
    messages: MessagesServer, call: Call, fails: list[Fail], client: dict[str, Any], says: str
) -> None:
    messages.say(*fails)
    outcome, _ = call(**client)
    assert (outcome.status, outcome.spent) == ("failed", "nothing")
    assert says in outcome.problem
    assert len(messages.requests) == len(fails)


@pytest.mark.parametrize(
    ("fail", "says"),
    [
        (Fail(400, "output_config.effort: is\nnot supported"), "refused the request (400): output_config.effort: is not"),
        (Fail(402, "add credit"), "wants to be paid first (402): add credit"),
        (Fail(403, "not for you"), "may not use claude-sonnet-5-5"),
        (Fail(404, "model: claude-sonnet-5-5"), "knows no model 'claude-sonnet-5-5' (404): set model in [proposer]"),
        (Fail(404, raw=b"<html>no such page</html>"), "has no Messages API at this address (404): check base_url"),
        (Fail(307, raw=b"", location="/v1/messages"), "sends calls on to another address (307): check base_url"),
        (Fail(413), "too long for one request"),
    ],
)  # fmt: skip
def test_what_no_further_call_can_mend(messages: MessagesServer, call: Call, fail: Fail, says: str) -> None:
    messages.say(fail)
    outcome, _ = call()
    assert (outcome.status, outcome.spent) == ("impossible", "nothing")
    assert says in outcome.problem
    assert "\n" not in outcome.problem


def test_no_key_a_wrong_key_and_a_broken_one(
    messages: MessagesServer, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # no profile of the SDK
    keys = {
        "": "there is no API key: export ANTHROPIC_API_KEY",
        "sk-ant-wrong-0123456789": "does not accept the key (401): check ANTHROPIC_API_KEY",
        "sk-ant-broken\n0123456789": "holds a character that it may not",
    }
    for number, (key, says) in enumerate(keys.items()):
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        outcome, folder = call()
        assert (outcome.status, outcome.spent) == ("impossible", "nothing")
        assert says in outcome.problem
        assert not key or key.split("\n")[0] not in outcome.problem
        folder.path.rename(folder.path.with_name(f"was {number}"))
    assert messages.served == Served()


def test_nobody_there(call: Call, messages: MessagesServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        outcome, _ = call(base_url=f"http://me:hush@{address}")  # e.g. of ANTHROPIC_BASE_URL
    assert outcome.status == "impossible"
    assert outcome.problem.startswith(f"cannot reach {address}: check the network")
    assert outcome.spent == "nothing"


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply("half an answer", drop=True), "broke off"),
        (Reply("half an answer", fault="overloaded_error"), "broke off: overloaded_error"),
        (Events(({"type": "ping"},)), "broke off: it ended early"),
        (Events(({"type": "message_start", "message": None},)), "broke off: it is malformed"),
        (Events((["message_start"],)), "broke off: it is malformed"),
        (Fail(200, raw=b"event: message_start\ndata: {half an answer\n\n"), "broke off"),
    ],
)  # fmt: skip
def test_an_answer_that_breaks_off_is_paid_at_most(
    messages: MessagesServer, call: Call, reply: Reply | Events | Fail, says: str
) -> None:
    messages.say(reply)
    outcome, _ = call()
    assert (outcome.status, outcome.spent) == ("failed", "unknown")
    assert says in outcome.problem
    assert outcome.text == (reply.text if isinstance(reply, Reply) else "")
    assert len(messages.requests) == 1  # sent again it might be paid twice


def spoken(first: Any, last: Any) -> tuple[Any, ...]:
    """The events of a short message with these usages."""
    return (
        {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "usage": first}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
        {"type": "message_stop"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (None, None),
        ({"input_tokens": 7, "output_tokens": 1}, None),  # so far one, at its end nobody says
        (None, {"output_tokens": 5}),
        ({"input_tokens": -7}, {"output_tokens": 5}),
        ({"input_tokens": "7"}, {"output_tokens": 5}),
    ],
)
def test_what_the_api_does_not_count_costs_at_most(
    messages: MessagesServer, call: Call, first: Any, last: Any
) -> None:
    messages.say(Events(spoken(first, last)))
    outcome, _ = call()
    assert (outcome.status, outcome.text, outcome.spent) == ("answered", "yes", "unknown")


def test_an_answer_is_whole_though_the_connection_stays_open(messages: MessagesServer, call: Call) -> None:
    for_ever = threading.Event()
    messages.say(Events(spoken({"input_tokens": 7, "output_tokens": 1}, {"output_tokens": 5}), for_ever))
    outcome, _ = call()
    for_ever.set()
    assert (outcome.status, outcome.usage) == ("answered", Usage(input=7, output=5))


def test_somebody_else_at_the_address(messages: MessagesServer, call: Call) -> None:
    messages.say(Fail(200, raw=b"<html>Welcome</html>"))
    outcome, _ = call()
    assert (outcome.status, outcome.spent) == ("impossible", "unknown")
    assert "is no Messages API (it answers with application/json): check base_url" in outcome.problem


@pytest.mark.parametrize("address", ["http://[::1", "http://localhost:port", "http://a..b", "ftp://x"])
def test_an_address_with_a_slip(call: Call, messages: MessagesServer, address: str) -> None:
    outcome, _ = call(base_url=address)
    assert (outcome.status, outcome.spent) == ("impossible", "nothing")
    assert "address" in outcome.problem


def test_words_of_the_server_are_one_line_without_the_key(messages: MessagesServer, call: Call) -> None:
    kind = f"overloaded\n{KEY}\n" + "o" * 1000
    raw = json.dumps({"error": {"type": kind, "message": ""}}).encode()
    messages.say(Fail(529, raw=raw, retry_after=0), Fail(400, f"no {KEY}"))
    outcome, folder = call()
    for text in (outcome.problem, *said(folder, "status")):
        assert KEY not in text
        assert "\n" not in text
        assert len(text) < 400


def test_a_slow_answer_is_ended(messages: MessagesServer, call: Call) -> None:
    messages.say(slowly(Reply("word " * 1000), pause=0.05, piece=5))
    outcome, _ = call(timeout=2)
    assert (outcome.status, outcome.spent) == ("failed", "unknown")
    assert "did not finish within 2 seconds; raise timeout in [proposer]" in outcome.problem
    assert outcome.text.startswith("word word")


def test_a_refusal_says_why(messages: MessagesServer, call: Call) -> None:
    messages.say(Reply("I", stop_reason="refusal", explanation="not this\none"))
    outcome, _ = call()
    assert (outcome.stop, outcome.problem, outcome.spent) == ("refusal", "not this one", "exact")


def test_secrets_are_removed_from_any_text() -> None:
    environment = {"SOME_API_KEY": "hush-hush-hush", "SHORT_KEY": "abc", "KEYBOARD": "us-international"}
    text = f"{KEY} Bearer abcdefghijk hush-hush-hush abc us-international -----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"
    assert redacted(text, environment) == "[secret] Bearer [secret] [secret] abc us-international [secret]"
    assert redacted("x = mask-lane_offset_base;", environment) == "x = mask-lane_offset_base;"
