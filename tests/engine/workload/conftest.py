"""Small problems in the three foreign formats, written for these tests, and changed copies of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.workload import Workload, load

PROBLEMS = Path(__file__).parent / "problems"

Read = Callable[[str], Workload]
Change = Callable[[dict[str, Any], list[dict[str, Any]]], None]
Trace = Callable[..., Path]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """A Python file with this text, loaded as a workload."""

    def load_text(text: str) -> Workload:
        path = tmp_path / "12_Scaled_Rows.py"
        path.write_bytes(text.encode())
        return load(path)

    return load_text


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """The data set, changed by a function of (definition, records); the definition's path."""

    def write(change: Change = lambda definition, records: None) -> Path:
        names = "definitions/add/scaled_add_n96.json", "workloads/add/scaled_add_n96.jsonl"
        definition, lines = ((PROBLEMS / "set" / name).read_text() for name in names)
        parsed, records = json.loads(definition), [json.loads(line) for line in lines.splitlines()]
        change(parsed, records)
        paths = [tmp_path / "set" / name for name in names]
        for path, text in zip(paths, (json.dumps(parsed), "\n".join(map(json.dumps, records))), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return paths[0]

    return write
