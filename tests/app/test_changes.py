"""Taking a part of a proposal, and naming a step of one's own, in the app."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from klineage.lineage import line_ops
from klineage.walk import Walk
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, Static

from klineage_tui.app import KlineageApp
from klineage_tui.screens.hunks import HunkScreen
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.screens.naming import NameStep, Seen, explained, seen_in_words
from klineage_tui.widgets.hunk_view import HunkView
from klineage_tui.widgets.title_row import TitleRow

from .driving import (
    SIZE,
    MakeApp,
    about,
    gated,
    induce,
    loaded,
    named_as_offered,
    ready,
    said,
    text,
    title,
    until,
)


async def at_the_pragmas(app: KlineageApp, pilot: Pilot[int]) -> None:
    """The proposal of the rule that takes three pragmas out of this kernel."""
    await loaded(app)
    for _ in induce(app)._queue.proposals:
        if "rules:unroll" in about(app):
            return
        before = title(app, "#proposal")
        await pilot.press("]")
        await until(lambda before=before: title(app, "#proposal") != before)
    raise AssertionError("no rule sees the pragmas")


def typed(app: App[int], field: str) -> str:
    return app.screen.query_one(f"#naming-{field}", Input).value


async def test_some_changes_become_the_proposal_and_then_a_step(make_app: MakeApp, walk: Walk) -> None:
    head = walk.state().kernel.source
    app = make_app()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await at_the_pragmas(app, pilot)
        await pilot.press("c")
        await until(lambda: ready(app, HunkScreen))
        heading = app.screen.query_one("#hunks-title", TitleRow)
        assert "3 of 3 taken" in heading.text
        await pilot.press("a", "enter")
        await until(lambda: "choose at least one" in said(app))
        await pilot.press("a", "space")
        assert "2 of 3 taken" in heading.text
        lines = [app.screen.query_one(HunkView).document.line(row) for row in range(9)]
        assert [line.gutter[0][0] for line in lines if "#pragma" in line.text] == ["[ ] "]
        await pilot.press("enter")
        await until(lambda: ready(app, NameStep))
        assert typed(app, "action") == "unroll"
        await pilot.press("tab", "tab", *"Less", "enter")
        await until(lambda: "Less" in title(app, "#proposal"))
        assert "a person's edit" in about(app)
        await gated(app, pilot)
        await pilot.press("a")
        await until(lambda: len(walk.state().steps) == 2)
    step = walk.state().steps[1]
    assert (step.subject, step.action, step.decision) == ("Less", "unroll", "edited")
    assert step.proposer == "person, from rules:unroll"
    kept = walk.kernel_at(step.commit).source
    assert [op.a1 - op.a0 for op in line_ops(head, kept) if op.tag != "equal"] == [1, 1]
    assert walk.draft() is None


async def test_every_change_or_none_leaves_the_proposal_alone(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await at_the_pragmas(app, pilot)
        for key in ("enter", "escape"):
            await pilot.press("c")
            await until(lambda: ready(app, HunkScreen))
            await pilot.press(key)
            await until(lambda: isinstance(app.screen, InduceScreen) and app.screen.is_mounted)
        await pilot.press("N")
        await until(lambda: "a proposal has a name" in said(app))
        assert "rules:unroll" in about(app)
    assert walk.draft() is None


async def test_a_slip_and_a_false_claim_come_back_with_the_reason(
    make_app: MakeApp, walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; p = open(sys.argv[1], 'ab'); p.write(b'/* by hand */')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    app = make_app()
    monkeypatch.setattr(app, "suspend", nullcontext)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await at_the_pragmas(app, pilot)
        await pilot.press("E")
        await until(lambda: ready(app, NameStep))
        assert (typed(app, "action"), typed(app, "removes")) == ("unroll", "unroll")
        first = app.screen
        await pilot.press(*"unrolll", "enter")
        await until(lambda: ready(app, NameStep) and app.screen is not first)
        problem = str(app.screen.query_one("#naming-problem", Static).render())
        assert "did you mean 'unroll'?" in problem and "own word" in problem
        second = app.screen
        await until(lambda: app.screen.focused is not None)
        await pilot.press("tab", *"simd", "enter")
        await until(lambda: ready(app, NameStep) and app.screen is not second)
        assert "still there" in str(app.screen.query_one("#naming-problem", Static).render())
        await until(lambda: app.screen.focused is not None)
        await pilot.press("tab", *"unroll", "enter")
        await until(lambda: "a person's edit" in about(app))
        current = induce(app)._queue.current
        assert current is not None and current.candidate.action == "unrolll"
        assert [feature.name for feature in current.candidate.removes] == ["unroll"]
        await pilot.press("N")
        await named_as_offered(app, pilot)
    assert walk.draft() is not None


async def test_going_back_from_the_name_keeps_the_draft(
    make_app: MakeApp, walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; p = open(sys.argv[1], 'ab'); p.write(b'/* by hand */')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    app = make_app()
    monkeypatch.setattr(app, "suspend", nullcontext)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await at_the_pragmas(app, pilot)
        await pilot.press("E")
        await until(lambda: ready(app, NameStep))
        await pilot.press("escape")
        await until(lambda: "the draft is kept" in said(app))
        assert "rules:unroll" in about(app)
        assert "stale" not in text(app, "#gate-view")
    draft = walk.draft()
    assert draft is not None and draft.data.endswith(b"/* by hand */")


@pytest.mark.parametrize(
    ("typed_so_far", "says"),
    [
        ("", "e.g. tiling"),
        ("simd", "vector instructions"),
        ("pip", "… pipeline"),
        ("piplene", "did you mean pipeline?"),
        ("tiling+pip", "… pipeline"),
        ("branch_free", "a word of your own"),
        ("a b!", "a word of letters"),
    ],
)
def test_what_is_said_while_an_action_is_typed(typed_so_far: str, says: str) -> None:
    assert explained(typed_so_far).startswith(says)


def test_what_is_seen_of_an_edit_is_said_and_no_text_is_obeyed() -> None:
    gone = ("k.c::a\x1b[31m / simd", "k.c::b / simd", "k.c::c / simd", "k.c::d / unroll")
    words = seen_in_words(Seen(gone, ("k.c::a / mma",)))
    assert "simd at k.c::a␛[31m, simd at k.c::b, simd at k.c::c and 1 more." in words
    assert "It puts in mma at k.c::a, and a step back adds nothing." in words
    assert "nothing gone" in seen_in_words(Seen((), ()))
