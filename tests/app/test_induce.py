"""Induce on a real lineage: real rules, the real gate, real git."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.walk import Walk, new_lineage

from klineage_tui.screens.dialog import AskReason, Confirm
from klineage_tui.screens.edit import EditScreen, why_not_here
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.screens.seal import SealDialog
from klineage_tui.widgets.action_bar import ActionBar
from klineage_tui.widgets.code_area import CodeArea
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.title_row import TitleRow

from .driving import SIZE, MakeApp, about, gated, induce, loaded, named_as_offered, said, text, title, until


async def test_gate_accept_undo_redo(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        first = title(app, "#proposal")
        await pilot.press("a")
        assert "gate it first" in said(app)
        assert len(walk.state().steps) == 1

        await gated(app, pilot)
        panel = text(app, "#gate-view")
        assert panel.count("PASS") == 3, panel
        assert "measured-cpu" in title(app, "#gate")

        await pilot.press("a")
        await until(lambda: title(app, "#proposal") != first and "1 here" in text(app, "#lineage-view"))
        (_, step) = walk.state().steps
        assert step.decision == "accepted"
        assert step.subject in first

        await pilot.press("u")
        await until(lambda: "0 expert here" in text(app, "#lineage-view"))
        assert len(walk.state().steps) == 1
        assert "accepts it" in text(app, "#gate-view"), "the evidence for these bytes is still known"
        await pilot.press("ctrl+r")
        await until(lambda: "1 here" in text(app, "#lineage-view"))
        assert walk.state().steps[1].commit == step.commit


async def test_a_key_pressed_while_the_lineage_is_read_is_not_lost(make_app: MakeApp, walk: Walk) -> None:
    candidate = walk.candidates()[0]
    walk.reject(candidate, None, why="not this one")
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)
        await pilot.press("u")
        await until(lambda: walk.state().rejected == ())
        await until(lambda: "Taken back" in said(app))


async def test_undo_means_what_was_decided_elsewhere_too(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        walk.reject(walk.candidates()[0], None, why="not this one")
        app.decided()
        induce(app).reload_if_outdated()
        await pilot.press("u")  # before it is read
        await until(lambda: "Taken back" in said(app))
    assert walk.state().rejected == ()


async def test_reject_needs_a_reason_and_goes_to_the_next(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await loaded(app)
        await pilot.press("x")
        await until(lambda: isinstance(app.screen, AskReason) and app.screen.is_mounted)
        await pilot.press("enter")
        assert isinstance(app.screen, AskReason)
        await pilot.press(*"too much", "enter")
        await until(lambda: "NO" in text(app, "#lineage-view"))
        (attempt,) = walk.state().rejected
        assert attempt.why == "too much"
        await until(lambda: "1 rejected" in str(induce(app).query_one(ActionBar).render()))
        induce(app).query_one("#lineage-view", LineView).move_to(1)
        await until(
            lambda: "rejected attempt" in title(app, "#kernel") and "too much" in title(app, "#kernel")
        )


async def test_an_edit_turns_the_gate_grey_and_is_kept_as_a_draft(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        await gated(app, pilot)
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, EditScreen) and app.screen.is_mounted)
        app.screen.query_one(CodeArea).move_cursor((0, 0))
        await pilot.press(*"/* z */")
        await until(lambda: (draft := walk.draft()) is not None and draft.data.startswith(b"/* z */"))
        await pilot.press("ctrl+s")
        await named_as_offered(app, pilot)
        await until(lambda: "stale" in title(app, "#gate"))
        await pilot.press("a")
        assert "edited since" in said(app)
        await gated(app, pilot)
        await pilot.press("a")
        await until(lambda: "1 here" in text(app, "#lineage-view"))
    step = walk.state().steps[1]
    assert step.decision == "edited"
    assert walk.kernel_at(step.commit).source.startswith(b"/* z */")
    assert walk.draft() is None


async def test_leaving_the_editor_keeps_the_draft_for_the_next_start(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await loaded(app)
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, EditScreen) and app.screen.is_mounted)
        app.screen.query_one(CodeArea).move_cursor((0, 0))
        await pilot.press(*"/* k */", "escape")
        await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)
        draft = walk.draft()
        assert draft is not None
        assert draft.data.startswith(b"/* k */")
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: isinstance(app.screen, Confirm) and app.screen.is_mounted)
        await pilot.press("enter")
        await named_as_offered(app, pilot)
        await until(lambda: "a person's edit" in about(app))


async def test_the_external_editor(
    make_app: MakeApp, walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; p = open(sys.argv[1], 'ab'); p.write(b'/* by hand */')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    app = make_app()
    monkeypatch.setattr(app, "suspend", nullcontext)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(app)
        await pilot.press("E")
        await named_as_offered(app, pilot)
        await until(lambda: "a person's edit" in about(app))
    draft = walk.draft()
    assert draft is not None
    assert draft.data.endswith(b"/* by hand */")


async def test_a_gate_can_be_stopped(make_app: MakeApp, workspace: Workspace, tmp_path: Path) -> None:
    source = (shipped("experts") / "add_rmsnorm" / "c" / "kernel.c").read_bytes()
    body = b"    x = __builtin_assume_aligned(x, VECTOR_BYTES);"
    assert source.count(body) == 1
    spins = tmp_path / "kernel.c"
    spins.write_bytes(source.replace(body, b"    for (volatile long i = 0; i >= 0; i = 0) {}\n" + body))
    app = make_app(new_lineage(workspace, spins, "add_rmsnorm", lineage_id="spins"))
    async with app.run_test(size=SIZE) as pilot:
        await loaded(app)
        await pilot.press("g")
        await until(lambda: "seed" in text(app, "#gate-view"))
        await pilot.press("escape")
        await until(lambda: "running" not in title(app, "#gate"))
        assert "cancelled" in title(app, "#gate")
        assert "accepts it" not in text(app, "#gate-view")


async def test_skip_then_seal(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        await pilot.press("s")
        await until(lambda: "PROPOSAL 2 of" in title(app, "#proposal"))
        await pilot.press("S")
        assert "accept at least one step" in said(app)
        await pilot.press("[")
        await gated(app, pilot)
        await pilot.press("a")
        await until(lambda: "1 here" in text(app, "#lineage-view"))
        await pilot.press("S")
        await until(lambda: isinstance(app.screen, SealDialog) and app.screen.is_mounted)
        await pilot.press("enter")
        await until(lambda: "Sealed: 2 states" in str(app.screen.query_one(".question").render()))
        await pilot.press("enter")
        await until(lambda: "sealed" in induce(app).query_one("#heading", TitleRow).text)
    assert [step.number for step in walk.forward()] == [0, 1]


async def test_another_process_that_moved_on_is_noticed(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        await gated(app, pilot)
        candidate = walk.candidates()[0]
        walk.accept(candidate, walk.gate(candidate))
        await pilot.press("a")
        await until(lambda: "1 here" in text(app, "#lineage-view"))
        assert "gate the kernel again" in said(app)
    assert len(walk.state().steps) == 2, "nothing was written twice"


async def test_a_defect_in_a_job_is_a_sentence_and_a_log(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, own_folders: Path
) -> None:
    monkeypatch.setattr(Walk, "candidates", lambda self, state: {}["missing"])
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True):
        await until(lambda: "internal error (KeyError)" in said(app))
        assert "internal error" in induce(app).query_one("#diff", LineView).placeholder
    (log,) = own_folders.rglob("crash-*.log")
    assert "KeyError" in log.read_text(encoding="utf-8")


async def test_the_footer_takes_clicks(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        footer = str(induce(app).query_one(ActionBar).render())
        await pilot.click(ActionBar, offset=(footer.index("skip"), 0))
        await until(lambda: "PROPOSAL 2 of" in title(app, "#proposal"))
        await pilot.click(ActionBar, offset=(footer.index("accept"), 0))
        await until(lambda: "gate it first" in said(app))


@pytest.mark.parametrize(
    ("source", "words"),
    [(b"a\xffb", "not UTF-8"), (b"a\r\nb\n", "line endings"), (b"a\x0cb\n", "line endings")],
)
def test_bytes_that_an_editor_in_the_app_would_change(source: bytes, words: str) -> None:
    assert words in why_not_here(source)


@pytest.mark.parametrize("source", [b"", b"a", b"a\nb\n", b"a\r\nb\r\n", "é\n".encode()])
def test_bytes_that_survive_the_editor(source: bytes) -> None:
    assert why_not_here(source) == ""
