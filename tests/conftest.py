"""What tests of every kind may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .messages_server import MessagesServer


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessagesServer]:
    """A Messages API on this machine; clients of the SDK, in children too, find it by their environment."""
    for name in (
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_PROFILE",
        "ANTHROPIC_CONFIG_DIR",
        "ANTHROPIC_CUSTOM_HEADERS",
    ):
        monkeypatch.delenv(name, raising=False)
    with MessagesServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server
