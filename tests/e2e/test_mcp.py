"""A real MCP client over stdio: it finds a card, checks it, and has a kernel judged, from a folder elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from klineage.lineage import Workspace
from klineage.skill.library import Library

from klineage_tui.cli import main

from ..engine.skill.cards_for_tests import a_card, admitted
from .test_command_walk import KERNEL, WORKLOAD

mcp = pytest.importorskip("mcp", reason="needs klineage-tui[mcp]")

SPINS = (
    b"void row_norms(const float * x, float * y, long rows, long columns)\n{\n    for (;;) y[0] = x[0];\n}\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with a library of two cards and a kernel beside it."""
    folder = tmp_path / "ws"
    workspace = Workspace.create(folder)
    unroll = a_card("c.unroll", action="unroll", check="columns % 4 == 0", lifted="row_norms")
    workspace_library = Library.of(workspace)
    workspace_library.save_all(
        [
            admitted(unroll, "softmax", prior=("restrict",)),
            admitted(a_card("c.restrict", action="restrict"), "softmax"),
        ],
        reason="for the test",
    )
    workspace.close()
    (folder / "kernel.c").write_bytes(KERNEL)
    (folder / "spins.c").write_bytes(SPINS)
    return folder


@asynccontextmanager
async def client(place: Path) -> AsyncIterator[Any]:
    words = ["-m", "klineage_tui.cli", "mcp", "-w", str(place), "--library", str(place)]
    home = {name: os.environ[name] for name in ("HOME", "GIT_CONFIG_NOSYSTEM")}
    short = {**home, "PATH": "/usr/bin:/bin"}  # as hosts start servers
    server = mcp.StdioServerParameters(command=sys.executable, args=words, cwd="/", env=short)
    async with mcp.Client(server, read_timeout_seconds=120) as connected:
        yield connected


async def test_an_agent_retrieves_checks_and_gates(place: Path) -> None:
    async with client(place) as agent:
        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert set(tools) == {"retrieve", "show", "check", "gate", "lineage", "budget"}
        assert all(tool.description for tool in tools.values())
        on_kernel = {"kernel_path": "kernel.c", "workload": str(WORKLOAD), "platform": "cpu-x86-64-v3"}

        found = await agent.call_tool("retrieve", on_kernel)
        assert not found.is_error
        assert [hit["id"] for hit in found.structured_content["hits"]] == ["c.unroll"]
        assert "lifted from row_norms" in found.content[0].text
        assert "not here: restrict is there already" in found.content[0].text

        shown = await agent.call_tool("show", {"card": "c.unroll"})
        assert "Check: `columns % 4 == 0`" in shown.content[0].text
        assert len(shown.content[0].text) < 8000

        checked = await agent.call_tool("check", {"card": "c.unroll", **on_kernel})
        assert checked.structured_content["holds"] is True
        assert [check["state"] for check in checked.structured_content["checks"]] == ["holds"]

        stages: list[str] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            stages.append((message or "").partition(":")[0])

        judged = await agent.call_tool(
            "gate", {**on_kernel, "phase": "screening"}, progress_callback=progress
        )
        assert not judged.is_error
        assert judged.structured_content["verdict"] == "pass"
        assert judged.structured_content["report"]["trust"] == "measured-cpu"
        assert judged.content[0].text.startswith("PASS: ")
        assert set(stages) == {"static", "compile", "correctness", "profile"}

        wrong = KERNEL.decode().replace("total += x", "total -= x")
        failed = await agent.call_tool(
            "gate", {"kernel_source": wrong, "surface": "c", "workload": str(WORKLOAD)}
        )
        assert not failed.is_error
        assert (failed.structured_content["verdict"], failed.structured_content["decided_by"]) == (
            "fail",
            "correctness",
        )

        for tool, arguments, said in (
            ("show", {"card": "c.unrol"}, "did you mean c.unroll?"),
            ("gate", {"workload": str(WORKLOAD)}, "name a kernel by kernel_path"),
            ("gate", {"workload": "nothing", "kernel_path": "kernel.c"}, "no workload 'nothing'"),
            ("retrieve", {"platform": "tpu"}, "unknown platform 'tpu'"),
            ("retrieve", {"surface": "rust"}, "unknown surface 'rust'"),
            ("retrieve", {"action": "prefech"}, "did you mean 'prefetch'"),
            ("lineage", {"id": "gemm"}, "there is no lineage 'gemm'"),
        ):
            refused = await agent.call_tool(tool, arguments)
            assert refused.is_error
            assert said in refused.content[0].text
        spent = await agent.call_tool("budget", {})
        assert (spent.structured_content["calls"], spent.structured_content["dollars"]) == (0, "0")

        # What others edit meanwhile is seen at the next call.
        workspace = Workspace.open(place)
        Library.of(workspace).save(admitted(a_card("c.new", action="prefetch"), "row_norms"), reason="new")
        workspace.close()
        again = await agent.call_tool("retrieve", on_kernel)
        assert {hit["id"] for hit in again.structured_content["hits"]} == {"c.unroll", "c.new"}


async def test_a_client_that_gives_up_ends_its_gate(place: Path) -> None:
    async with client(place) as agent:
        began = anyio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if (message or "").startswith("correctness"):
                began.set()

        async def spin() -> None:
            await agent.call_tool(
                "gate", {"kernel_path": "spins.c", "workload": str(WORKLOAD)}, progress_callback=progress
            )

        async with anyio.create_task_group() as group:
            group.start_soon(spin)
            await began.wait()
            group.cancel_scope.cancel()
        # Gates wait for each other, and the one that spins would be ended after a minute: this one is not kept waiting.
        judged = await agent.call_tool(
            "gate",
            {"kernel_path": "kernel.c", "workload": str(WORKLOAD), "phase": "screening"},
            read_timeout_seconds=45,
        )
        assert judged.structured_content["verdict"] == "pass"


def test_without_the_extra_it_says_what_to_install(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["mcp", "-w", str(place)]) == 1
    assert "pip install 'klineage-tui[mcp]'" in capsys.readouterr().err


def test_a_workspace_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "-w", str(tmp_path / "missing")]) == 1
    assert "there is no folder" in capsys.readouterr().err


async def test_a_wrong_call_is_one_sentence(place: Path) -> None:
    async with client(place) as agent:
        for tool, arguments, said in (
            ("show", {}, "show: card is missing"),
            ("show", {"card": 5}, "show: card is 5; input should be a valid string"),
            ("lineage", {"lineage": "x"}, "lineage has no argument 'lineage'; it has id, step"),
            ("retrieve", {"k": 0}, "retrieve: k is 0; input should be greater than or equal to 1"),
            ("retrieve", {"workload": "/nowhere/workload.py"}, "no workload '/nowhere/workload.py'"),
        ):
            answer = await agent.call_tool(tool, arguments)
            assert answer.is_error
            assert said in answer.content[0].text
            assert "\n" not in answer.content[0].text
