"""A workspace with a real C kernel, and an app on it whose own files stay in the test's folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.walk import Walk, new_lineage, open_workspace
from textual import app as textual_app
from textual.app import App
from textual.pilot import Pilot

from klineage_tui.app import KlineageApp
from klineage_tui.config import Config
from klineage_tui.key_order import KeysInOrder
from klineage_tui.session import Session
from klineage_tui.themes import load_themes

from .driving import MakeApp, handled


@pytest.fixture(autouse=True)
def patient_fingers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A press is over when the keys have been handled. Textual's own waits, at each key, until the process seems idle:
    on a busy machine that takes long, and says nothing."""

    async def pressed(pilot: Pilot[int], *keys: str) -> None:
        for key in keys:
            await pilot.app._press_keys([key])
            if isinstance(pilot.app, KeysInOrder):
                await handled(pilot.app)
            else:
                for _ in range(5):  # from the focused widget up to the app
                    await pilot._wait_for_screen()
        await pilot._wait_for_screen()

    async def at_once(min_sleep: float = 0.0, max_sleep: float = 0.0) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(textual_app, "wait_for_idle", at_once)  # between the keys of ``_press_keys``
    monkeypatch.setattr(Pilot, "press", pressed)


@pytest.fixture(autouse=True)
def remembered_toasts(monkeypatch: pytest.MonkeyPatch) -> None:
    notify = App.notify

    def noted(app: App[int], message: str, **more: Any) -> None:
        app.__dict__.setdefault("toasts", []).append(message)
        notify(app, message, **more)

    monkeypatch.setattr(App, "toasts", (), raising=False)
    monkeypatch.setattr(App, "notify", noted)


@pytest.fixture
def own_folders(tmp_path: Path, gate_results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configuration, state and logs go to the test's folder; gate results are shared."""
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home" / name.lower()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(gate_results))
    return tmp_path / "home"


@pytest.fixture
def workspace(tmp_path: Path, own_folders: Path) -> Iterator[Workspace]:
    """One lineage, ``add_rmsnorm-c``, opened from the shipped expert."""
    opened = open_workspace(tmp_path / "workspace", create=True)
    new_lineage(opened, shipped("experts") / "add_rmsnorm" / "c" / "kernel.c", "add_rmsnorm")
    yield opened
    opened.close()


@pytest.fixture
def walk(workspace: Workspace) -> Walk:
    """The lineage as another process would see it: what it says is on disk."""
    return Walk(workspace, workspace.lineages()[0].id)


@pytest.fixture
def make_app(workspace: Workspace, own_folders: Path) -> MakeApp:
    def make(lineage: str | None = None, config: Config | None = None) -> KlineageApp:
        session = Session(own_folders / "session.json")
        return KlineageApp(workspace.path, lineage, config or Config(), load_themes(), session)

    return make
