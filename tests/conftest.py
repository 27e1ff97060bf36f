"""What tests of every kind may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .messages_server import MessagesServer

# No clock decides on a property: on a busy machine any example may take long. The same examples each time; others are
# looked for with --hypothesis-profile=explore.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", settings.get_profile("explore"), derandomize=True)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def gate_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XDG_CACHE_HOME for tests that may find what others have gated: results are keyed by content.

    One for all processes of a run, which is empty when it begins.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "gate-results"
    folder.mkdir(exist_ok=True)
    return folder


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
