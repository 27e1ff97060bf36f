"""The History place, on a real repository."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from klineage.lineage import Meta, StepRecord, Workspace
from textual.pilot import Pilot
from textual.widget import Widget

from klineage_tui.actions import PRESETS, Preset
from klineage_tui.app import KlineageApp
from klineage_tui.config import Config
from klineage_tui.session import Session
from klineage_tui.themes import load_themes
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.graph import LineageGraph
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.pane import Pane
from klineage_tui.widgets.source_view import SourceView
from klineage_tui.widgets.title_row import TitleRow

from . import a_lineage


@asynccontextmanager
async def history(
    folder: Path, *, sealed: bool = True, timed: bool = True, size: tuple[int, int] = (150, 44)
) -> AsyncIterator[Pilot[int]]:
    """The app on a fresh workspace, at History, with everything read."""
    a_lineage.make(folder / "ws", sealed=sealed, timed=timed).close()
    async with opened(folder, size) as pilot:
        yield pilot


@asynccontextmanager
async def opened(
    folder: Path, size: tuple[int, int] = (150, 44), config: Config | None = None
) -> AsyncIterator[Pilot[int]]:
    session = Session(folder / "session.json", places={str((folder / "ws").resolve()): "history"})
    app = KlineageApp(folder / "ws", "gemm", config or Config(), load_themes(), session)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot


async def settle(pilot: Pilot[int]) -> None:
    """The workspace is open, and every job has ended, has been heard and began no other."""
    app, quiet = pilot.app, 0
    while quiet < 3:
        await pilot.pause()
        busy = app.workspace is None or any(not job.is_finished for job in app.workers)  # type: ignore[attr-defined]
        quiet = 0 if busy else quiet + 1
        await app.workers.wait_for_complete()


async def press(pilot: Pilot[int], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def shown(pilot: Pilot[int], view: str) -> list[str]:
    """The text of every row of a view, drawn or not."""
    document = pilot.app.screen.query_one(view, LineView).document
    return [document.line(row).text for row in range(len(document))]


def title(pilot: Pilot[int], pane: str) -> str:
    return pilot.app.screen.query_one(pane, Pane).title_text


def heading(pilot: Pilot[int]) -> str:
    return pilot.app.screen.query_one("#heading", TitleRow).text


async def test_a_sealed_lineage_is_stepped_through(tmp_path: Path) -> None:
    async with history(tmp_path) as pilot:
        graph = "\n".join(shown(pilot, "#graph"))
        assert "K0 naive" in graph
        assert "K4 expert" in graph
        assert "x split_k FAIL" in graph
        assert "18.4 ms" in graph

        assert "K3 → K4  adds evict" in heading(pilot)
        await press(pilot, "up")
        assert "K2 → K3  adds l2_raster  1.26x faster" in heading(pilot)
        assert "+3 -2" in title(pilot, "#code")
        assert any("group * GROUP" in line for line in shown(pilot, "#diff"))
        why = "\n".join(shown(pilot, "#why"))
        assert "sealed by A. Curator" in why
        assert "measured-gpu" in why
        assert "1.6e-2" in why


async def test_a_walk_is_stepped_through_and_counts_are_not_times(tmp_path: Path) -> None:
    async with history(tmp_path, sealed=False, timed=False) as pilot:
        graph = "\n".join(shown(pilot, "#graph"))
        assert "0 expert" in graph
        assert "4 here" in graph
        assert "more work" in graph
        assert " ms" not in graph
        assert "█" not in graph
        assert any("counts, not time" in line for line in shown(pilot, "#why"))
        await press(pilot, "w")
        assert "No state of this lineage was timed." in shown(pilot, "#waterfall")
        assert "█" not in "".join(shown(pilot, "#waterfall"))
        await press(pilot, "f")
        assert "Not sealed yet" in pilot.app.toasts[-1]  # type: ignore[attr-defined]


async def test_any_two_states_are_compared(tmp_path: Path) -> None:
    async with history(tmp_path) as pilot:
        await press(pilot, "m", "home")
        assert "K4 is marked: every other state is compared with it" in pilot.app.toasts[-1]  # type: ignore[attr-defined]
        assert "K4 → K0" in heading(pilot)
        rows = shown(pilot, "#diff")
        assert any("autotune" in row for row in rows)
        await press(pilot, "down", "down", "down")
        assert "K4 → rejected" in heading(pilot)
        await press(pilot, "end", "m", "home")
        assert heading(pilot).endswith("K0")  # nothing before it, so it is shown whole
        assert pilot.app.screen.query_one("#source", SourceView).display


async def test_blame_names_the_optimization_of_each_line(tmp_path: Path) -> None:
    async with history(tmp_path) as pilot:
        await press(pilot, "b")
        document = pilot.app.screen.query_one("#source", SourceView).document
        labels = {
            document.line(row).text.strip(): document.line(row).gutter[0][0].strip()
            for row in range(len(document))
        }
        assert labels["group = pid // (GROUP * tl.cdiv(N, BLOCK))"] == "K3 l2_raster"
        assert labels["for k in tl.range(0, K, BLOCK, num_stages=4):"] == "K2 pipeline"
        assert labels["import triton"] == "base"
        assert any("é 你好 ␛[31m" in line for line in labels)

        row = next(r for r in range(len(document)) if "group = pid" in document.line(r).text)
        view = pilot.app.screen.query_one("#source", SourceView)
        view.focus()
        view.move_to(row)
        await press(pilot, "enter")
        assert "adds l2_raster" in heading(pilot)


async def test_blame_of_a_walk_that_is_not_sealed(tmp_path: Path) -> None:
    async with history(tmp_path, sealed=False) as pilot:
        await press(pilot, "b")
        document = pilot.app.screen.query_one("#source", SourceView).document
        row = next(r for r in range(len(document)) if "eviction_policy" in document.line(r).text)
        assert document.line(row).gutter[0][0].strip() == "1 evict"


async def test_layout_is_toggled_while_viewing(tmp_path: Path) -> None:
    async with history(tmp_path, size=(190, 44)) as pilot:
        view = pilot.app.screen.query_one("#diff", DiffView)
        assert view.is_split
        await press(pilot, "d", "d")
        before = view.is_split
        await press(pilot, "d")
        assert view.is_split is not before


async def test_plain_git_commands_work(tmp_path: Path) -> None:
    import subprocess

    async with history(tmp_path) as pilot:
        await press(pilot, "c")
        script = "set -e\n" + "\n".join(shown(pilot, "#commands"))
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Lineage-Action: evict" in done.stdout


async def test_a_narrow_terminal_shows_code_or_reasons(tmp_path: Path) -> None:
    async with history(tmp_path, size=(80, 24)) as pilot:
        screen = pilot.app.screen
        assert screen.query_one("#diff").size.height >= 8
        assert not screen.query_one("#diff", DiffView).is_split
        assert screen.query_one("#reasons").size.height == 0
        await press(pilot, "tab", "tab")
        assert screen.query_one("#reasons").size.height >= 8
        assert screen.query_one("#why").has_focus
        assert screen.query_one("#graph", LineageGraph).size.height >= 5


ANY_BYTES = (
    b"\xef\xbb\xbf# BOM, latin-1 \xe9, \x1b]0;title\x07\r\n"
    + b"x = 1\n" * 5_000
    + b"y = '"
    + b"z\t" * 5_000
    + b"'\nlast line without a newline"
)


async def test_a_kernel_of_any_bytes_is_shown(tmp_path: Path) -> None:
    workspace = a_lineage.make(tmp_path / "ws", sealed=False)
    changed = ANY_BYTES.replace(b"z\t", b"w\t", 3).replace(b"\r\n", b"\n")
    for source in (ANY_BYTES, changed):
        workspace.accept("gemm", StepRecord("Any bytes", action="any"), {"kernel.py": source})
    workspace.close()
    async with opened(tmp_path) as pilot:
        view = pilot.app.screen.query_one("#diff", DiffView)
        assert view.changed == (2, 2)
        drawn = [view.render_line(y).text for y in range(view.size.height)]
        assert any("‹feff›# BOM, latin-1 �, ␛]0;title␇␍" in text for text in drawn)
        assert any("‹no newline›" in text for text in shown(pilot, "#diff"))
        await press(pilot, "b")
        assert "the step that first took away" in title(pilot, "#code")


async def test_nothing_that_a_commit_says_is_obeyed(tmp_path: Path) -> None:
    bad = "\x1b]52;c;aGk=\x07\x9b2J\u202e[red]"
    workspace = Workspace.create(tmp_path / "ws")
    meta = Meta("gemm", f"t{bad}", "triton", f"p{bad}", "gemm", "kernel.py", "gemm", config=((f"B{bad}", 1),))
    workspace.new(meta, {"kernel.py": b"x = 1\n", "workload.py": b""}, who=f"w{bad}")
    said = {
        name: f"{name}{bad}"
        for name in (
            "subject",
            "body",
            "action",
            "locus",
            "proposer",
            "who",
            "why",
            "compile",
            "correctness",
            "profile",
        )
    }
    workspace.accept("gemm", StepRecord(**said, gate=f"pass; {bad}"), {"kernel.py": b"x = 2\n"})  # type: ignore[arg-type]
    workspace.reject("gemm", StepRecord(**said, gate=f"fail; {bad}"), {"kernel.py": b"x = 3\n"})  # type: ignore[arg-type]
    workspace.close()
    async with opened(tmp_path) as pilot:
        for key in ("home", "end", "b", "w", "c", "m"):
            await press(pilot, key)
            for widget in pilot.app.screen.walk_children(Widget):
                if widget.display and widget.size.height and not widget.children:
                    text = "".join(widget.render_line(y).text for y in range(widget.size.height))
                    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf")], (key, widget)


async def test_a_lineage_sealed_before_the_walk_went_on_is_one_key_away(tmp_path: Path) -> None:
    workspace = a_lineage.make(tmp_path / "ws")
    workspace.accept("gemm", StepRecord("Go on", action="more"), {"kernel.py": b"x = 1\n"})
    workspace.close()
    async with opened(tmp_path) as pilot:
        assert any("5 here" in row for row in shown(pilot, "#graph"))
        await press(pilot, "f")
        assert any("K4 expert" in row for row in shown(pilot, "#graph"))
        await press(pilot, "f")
        assert any("5 here" in row for row in shown(pilot, "#graph"))


async def test_a_click_on_what_a_step_adds_goes_to_the_step(tmp_path: Path) -> None:
    async with history(tmp_path) as pilot:
        row = next(r for r, text in enumerate(shown(pilot, "#graph")) if "+ pipeline" in text)
        await pilot.click("#graph", offset=(8, row))
        await settle(pilot)
        assert "K1 → K2  adds pipeline" in heading(pilot)


@pytest.mark.parametrize("preset", PRESETS)
async def test_j_and_k_step_in_every_preset(preset: Preset, tmp_path: Path) -> None:
    a_lineage.make(tmp_path / "ws").close()
    async with opened(tmp_path, config=Config(keys=preset)) as pilot:
        await press(pilot, "k")
        assert "K2 → K3" in heading(pilot)
        await press(pilot, "j")
        assert "K3 → K4" in heading(pilot)


async def test_undo_and_redo_from_history(tmp_path: Path) -> None:
    async with history(tmp_path, sealed=False) as pilot:
        await press(pilot, "u")
        assert not any("4 here" in row for row in shown(pilot, "#graph"))
        await press(pilot, "ctrl+r")
        assert any("4 here" in row for row in shown(pilot, "#graph"))


async def test_resizing_after_another_place_was_shown(tmp_path: Path) -> None:
    async with history(tmp_path, sealed=False) as pilot:
        await press(pilot, "1", "2")
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        graph = pilot.app.screen.query_one("#graph", LineageGraph)
        assert pilot.app.screen.query_one("#diff").size.height >= 8
        assert any("4 here" in graph.render_line(y).text for y in range(graph.size.height))


@pytest.mark.parametrize("size", [(40, 10), (100, 24)])
async def test_odd_sizes_do_not_break_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with history(tmp_path, size=size) as pilot:
        await press(pilot, "up", "b", "w", "w", "tab")
        assert heading(pilot)


async def test_toasts_are_behind_the_border_too(tmp_path: Path) -> None:
    async with history(tmp_path) as pilot:
        pilot.app.screen.notify("one \x1b[2J\ntwo [red]")
        await pilot.pause()
        assert [n.message for n in pilot.app._notifications] == ["one ␛[2J\ntwo [red]"]


async def test_a_branch_goes_on_from_the_state_under_the_cursor(tmp_path: Path) -> None:
    async with history(tmp_path, sealed=False) as pilot:
        assert isinstance(pilot.app, KlineageApp)
        assert pilot.app.workspace is not None
        await press(pilot, "home", "B")
        await press(pilot, "escape")
        assert [lineage.id for lineage in pilot.app.workspace.lineages()] == ["gemm"]
        await press(pilot, "B")
        await press(pilot, "enter")
        walk = pilot.app.walk
        assert walk is not None
        assert walk.id == "gemm-0"
        assert [step.number for step in walk.state().steps] == [0]
        assert "gemm-0 goes on from here" in "\n".join(pilot.app.toasts)  # type: ignore[attr-defined]
        assert len(pilot.app.workspace.history("gemm")) == 5
