"""Every plain-git command of docs/lineage.md works, word for word."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.lineage import ForwardRecord, StepRecord, Workspace, bundle_create
from klineage.lineage.message import _KNOWN

PAGE = (Path(__file__).parents[3] / "docs" / "lineage.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
SILENT = ("git gc", "git clone", "git fetch", "git fsck")


@pytest.fixture
def lineage(walk: Workspace, record: Callable[..., StepRecord]) -> Workspace:
    walk.reject("gemm", record(8), {"kernel.c": b"bad"}, "{}")
    walk.seal("gemm", [ForwardRecord(record(5), {"kernel.c": b"expert\n"}, "derived", report_json="{}")])
    return walk


def test_the_commands_do_what_the_page_says(lineage: Workspace) -> None:
    assert len(COMMANDS) > 15
    for command in COMMANDS:
        if command == "klineage bundle create gemm gemm.bundle":
            bundle_create(lineage, "gemm", lineage.path / "gemm.bundle")
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=lineage.path,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout.strip() or command.startswith(SILENT), f"{command} shows nothing"


def test_the_page_names_every_trailer() -> None:
    named = set(re.findall(r"`(Lineage-[A-Z][\w-]+)`", PAGE)) | {"Lineage-Compile", "Lineage-Correctness"}
    assert named == _KNOWN | {"Lineage-Removes", "Lineage-Adds", "Lineage-Settings"}
