"""The local Messages API answers the real SDK as the remote one does, and counts what it served."""

from __future__ import annotations

from typing import Any

import pytest

from ...messages_server import Fail, MessagesServer, Reply, Served, tokens

anthropic: Any = pytest.importorskip("anthropic")


def _request(**more: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "constant" * 40, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "hello"}],
    } | more


def test_streams_a_message_and_counts_every_token(messages: MessagesServer) -> None:
    client = anthropic.Anthropic(max_retries=0)
    counts = []
    for _ in range(2):
        messages.say(Reply("an answer in pieces", piece=4, thinking="hm"))
        with client.messages.stream(**_request()) as stream:
            message = stream.get_final_message()
        assert [block.type for block in message.content] == ["thinking", "text"]
        assert message.content[1].text == "an answer in pieces"
        usage = message.usage
        counts.append(
            Served(
                1,
                usage.input_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
                usage.output_tokens,
            )
        )
    assert counts[0].cache_write == counts[1].cache_read == tokens("constant" * 40)
    assert counts[1].cache_write == counts[0].cache_read == 0
    assert messages.served == counts[0] + counts[1]


def test_refuses_what_the_api_refuses(messages: MessagesServer) -> None:
    client = anthropic.Anthropic(max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="wrong").messages.create(**_request())
    open_schema = {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}}
    with pytest.raises(anthropic.BadRequestError, match="additionalProperties"):
        client.messages.create(**_request(output_config=open_schema))
    messages.say(Fail(529), Fail(429, retry_after=3))
    with pytest.raises(anthropic.OverloadedError):
        client.messages.create(**_request())
    with pytest.raises(anthropic.RateLimitError) as limited:
        client.messages.create(**_request())
    assert limited.value.response.headers["retry-after"] == "3"
    assert messages.served == Served()
