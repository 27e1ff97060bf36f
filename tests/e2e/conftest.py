"""The real command, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .commands import KLINEAGE


@pytest.fixture(autouse=True)
def private_home(
    tmp_path_factory: pytest.TempPathFactory, gate_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own git configuration, cache and config stay out of the tests, and the tests out of them."""
    home = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[user]\n\tname = A. Curator\n\temail = curator@example.org\n")
    monkeypatch.setenv("HOME", str(home))
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "XDG_DATA_HOME",
        "KLINEAGE_WORKSPACE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(gate_results))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def klineage() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run one command line to its end. ``ok=False`` returns failures instead of raising."""

    def run(*words: object, ok: bool = True, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*KLINEAGE, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=cwd,
            env=dict(os.environ),
        )
        if ok and done.returncode != 0:
            raise AssertionError(f"klineage {' '.join(map(str, words))} failed: {done.stderr}")
        return done

    return run


@pytest.fixture
def klineage_json(klineage: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    def run(*words: object, cwd: Path | None = None) -> Any:
        return json.loads(klineage(*words, "--json", cwd=cwd).stdout)

    return run
