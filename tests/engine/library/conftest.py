"""Real repositories with cards in them, and a fixed user."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.lineage import Workspace
from klineage.skill.library import Library

Plain = Callable[..., str]


@pytest.fixture(autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only configuration that git sees: a user with a name."""
    config = tmp_path_factory.mktemp("home") / "gitconfig"
    config.write_text("[user]\n\tname = Ann Curator\n\temail = ann@example.org\n")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return config


@pytest.fixture
def plain() -> Plain:
    """Plain git: ``plain(folder, "log", ...)`` returns what it prints."""

    def run(folder: Path, *args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *args], capture_output=True, text=True, errors="replace", check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    opened = Workspace.create(tmp_path / "work")
    yield opened
    opened.close()


@pytest.fixture
def library(workspace: Workspace) -> Library:
    return Library.of(workspace)
