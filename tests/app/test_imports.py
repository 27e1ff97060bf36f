"""Nothing heavy is imported before the first paint, nor by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

HEAVY = (
    "torch",
    "triton",
    "numpy",
    "anthropic",
    "git",
    "tree_sitter",
    "pygments.lexers",
    "mcp",
    "ray",
    "ruamel.yaml",
    "simpleeval",
    "pydantic",
)

_FIRST_PAINT = """
import asyncio, json, sys
from pathlib import Path
from klineage_tui.app import KlineageApp
from klineage_tui.config import Config
from klineage_tui.session import Session
from klineage_tui.themes import load_themes

class Probe(KlineageApp):
    CSS_PATH = str(Path(sys.modules[KlineageApp.__module__].__file__).with_name("app.tcss"))

    def open_workspace(self):
        # Called after the first refresh: what is imported now was imported for the first paint.
        self.exit(result=0)
        self.modules = sorted(sys.modules)

path = Path(sys.argv[1])
session = Session(path / "session.json", lineages={str(path.resolve()): "gemm-c"})
app = Probe(path, None, Config(), load_themes(), session)

async def main():
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()

asyncio.run(main())
print(json.dumps(app.modules))
"""


def _modules(folder: Path, code: str) -> set[str]:
    script = folder / "probe.py"
    script.write_text(code, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return set(json.loads(ended.stdout))


def test_first_paint_of_induce(tmp_path: Path) -> None:
    modules = _modules(tmp_path, _FIRST_PAINT)
    assert "klineage_tui.screens.induce" in modules
    assert not modules & set(HEAVY)


def test_first_paint_of_cards_and_library(tmp_path: Path) -> None:
    for place in ("cards", "library"):
        there = f'places={{str(path.resolve()): "{place}"}}, lineages='
        modules = _modules(tmp_path, _FIRST_PAINT.replace("lineages=", there))
        assert f"klineage_tui.screens.{place}" in modules
        assert not modules & {*HEAVY, "ruamel.yaml", "simpleeval"}


def test_the_command_line_imports_no_textual(tmp_path: Path) -> None:
    modules = _modules(
        tmp_path,
        "import json, sys, klineage_tui.cli, klineage_tui.actions; print(json.dumps(sorted(sys.modules)))",
    )
    assert not modules & {*HEAVY, "textual", "rich"}


def test_what_help_offers_without_importing_the_ledger_is_what_the_ledger_takes() -> None:
    from klineage.ledger import By

    from klineage_tui.commands.spending import BY

    assert get_args(By) == BY
