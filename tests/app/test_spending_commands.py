"""The ledger's verb, where no workspace is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klineage_tui.cli import main


def test_prices_are_told_outside_of_any_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "--prices", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["date"] and told["models"]
    assert main(["ledger", "--prices"]) == 0
    table = capsys.readouterr().out
    assert [model for model in told["models"] if model not in table] == []
    assert list(tmp_path.iterdir()) == []
