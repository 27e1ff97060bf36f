"""A workspace whose gates share one cache of results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from klineage.lineage import Workspace
from klineage.walk import Walk, open_workspace

from .scripted import walk_of


@pytest.fixture
def workspace(tmp_path: Path, gate_results: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(gate_results))
    opened = open_workspace(tmp_path / "workspace", create=True)
    yield opened
    opened.close()


@pytest.fixture
def walk(workspace: Workspace, tmp_path: Path) -> Walk:
    """A lineage that begins at the fullest version of the series."""
    return walk_of(workspace, tmp_path)
