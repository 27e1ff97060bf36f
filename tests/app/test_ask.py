"""Asking for a proposal in Induce: a real command in a real process, its answer as it comes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from klineage.proposer.settings import settings_from
from klineage.walk import Walk

from klineage_tui.config import Config
from klineage_tui.presentation.answer import SHOWN_CHARACTERS, AnswerView, answer_lines
from klineage_tui.screens.ask import AskProposer

from .driving import SIZE, MakeApp, gated, induce, loaded, said, text, title, until

AGENT = """\
import json, pathlib, sys, time
task = pathlib.Path("TASK.md").read_text()
print("I look at the loop.\\x1b[31m", flush=True)
if "LINGER" in task:
    time.sleep(600)
if "EMPTY" in task:
    sys.exit(0)
source = pathlib.Path("kernel.c").read_bytes()
lines = [b"/* as the compiler likes */" if b"#pragma GCC unroll" in line else line for line in source.split(b"\\n")]
pathlib.Path("answer/kernel.c").write_bytes(b"\\n".join(lines))
about = {"action": "unroll", "locus": "kernel.c::add_rmsnorm_row", "title": "Leave the unrolling to the compiler",
         "rationale": "One mechanism.", "settings": {}}
pathlib.Path("answer/answer.json").write_text(json.dumps(about))
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT, encoding="utf-8")
    return Config(proposer=settings_from({"commands": {"mine": f"{sys.executable} {agent}"}}))


async def test_an_answer_joins_the_proposals_and_is_decided_on(
    make_app: MakeApp, walk: Walk, config: Config
) -> None:
    app = make_app(config=config)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        offered = len(walk.candidates())
        await pilot.press("p")
        await until(lambda: isinstance(app.screen, AskProposer) and app.screen.is_mounted)
        await pilot.press("down", *"the loops", "enter")
        await until(lambda: "Leave the unrolling to the compiler" in title(app, "#proposal"))
        assert f"{offered + 1} of {offered + 1}" in title(app, "#proposal")
        await gated(app, pilot)
        await pilot.press("a")
        await until(lambda: len(walk.state().steps) == 2)
        step = walk.state().head
        assert step.subject == "Leave the unrolling to the compiler"
        assert step.proposer.startswith("command:mine")


async def test_what_comes_is_shown_safely_and_escape_ends_it(make_app: MakeApp, config: Config) -> None:
    app = make_app(config=config)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(app)
        await pilot.press("p", "down", *"LINGER", "enter")
        await until(lambda: "I look at the loop.␛[31m" in text(app, "#answer"))
        assert "command:mine" in title(app, "#proposal")
        await pilot.press("]")
        await until(lambda: "PROPOSAL 2 of" in title(app, "#proposal"))
        await pilot.press("p")
        await until(lambda: "ANSWER" in title(app, "#proposal"))
        await pilot.press("escape")
        await until(lambda: "was ended" in said(app))
        assert not induce(app).has_class("-answer")
        assert "PROPOSAL" in title(app, "#proposal")


async def test_a_useless_answer_says_why_and_loses_nothing(
    make_app: MakeApp, walk: Walk, config: Config
) -> None:
    app = make_app(config=config)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        await pilot.press("p", "down", *"EMPTY", "enter")
        await until(lambda: "it wrote no kernel" in said(app))
        await until(lambda: "PROPOSAL 1 of" in title(app, "#proposal"))
        assert len(walk.state().steps) == 1


def test_a_long_answer_shows_its_end() -> None:
    view = AnswerView("model:m", text="x" * SHOWN_CHARACTERS + "\nthe end").after("text", "\n\tof it")
    lines = [line.text for line in answer_lines(view, 40)]
    assert "    of it" in lines
    assert "⋯ the beginning is not shown" in lines
    assert max(len(line) for line in lines) <= 40
