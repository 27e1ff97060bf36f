"""Walking by itself in Induce: who, how far, what is seen of it, and how it ends."""

from __future__ import annotations

import threading
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from klineage.ledger import Ledger, Limit, Reading, Total, Usage
from klineage.walk import Walk
from textual.widgets import Input

from klineage_tui.presentation.answer import AnswerView, answer_heading, answer_lines
from klineage_tui.presentation.spending import spend_bar
from klineage_tui.proposers import Choice
from klineage_tui.screens import induce_ask
from klineage_tui.screens.choosing import chosen_of
from klineage_tui.screens.walking import Order, WalkOn, ordered

from ..messages_server import MessagesServer, Received, Reply
from ..model_walk import RulesModel
from .driving import SIZE, MakeApp, loaded, said, text, title, until

LONG = 120.0  # seconds: calls and gates on a busy machine
NOTHING = {"steps": "", "minutes": "", "best of": "", "hint": ""}


async def test_the_rules_walk_as_far_as_they_are_told(make_app: MakeApp, walk: Walk) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        await pilot.press("W")
        await until(lambda: isinstance(app.screen, WalkOn) and app.screen.is_mounted)
        await pilot.press("x", "enter")
        assert "a whole number of at least 1" in said(app)
        app.screen.query(Input).first().value = ""
        await pilot.press("1", "enter")
        await until(lambda: "1 step accepted, 0 rejected; stopped at: step limit" in said(app), LONG)
        await until(lambda: "PROPOSAL 1 of" in title(app, "#proposal"))
    assert [step.decision for step in walk.state().steps[1:]] == ["accepted"]


async def test_who_quits_is_told_that_nothing_is_lost(
    make_app: MakeApp, walk: Walk, messages: MessagesServer
) -> None:
    rest = threading.Event()
    messages.otherwise = RulesModel(lambda _, reply: replace(reply, piece=100, hold=rest))
    app = make_app()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(app)
        await pilot.press("W", "down", "enter")
        await until(lambda: messages.requests, LONG)
        await pilot.press("q")
    rest.set()
    assert app.last_words.endswith("walking again goes on from there")
    assert len(walk.state().steps) == 1


@pytest.mark.parametrize("draw", [induce_ask._DRAW, 3600.0])  # the second: what is read again must draw it
async def test_a_model_walks_until_escape_and_loses_nothing(
    make_app: MakeApp, walk: Walk, messages: MessagesServer, draw: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(induce_ask, "_DRAW", draw)
    rest = threading.Event()

    def second_waits(_: Received, reply: Reply) -> Reply:
        return reply if len(messages.requests) == 1 else Reply(reply.content, piece=100, hold=rest)

    messages.otherwise = RulesModel(second_waits)
    app = make_app()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(app)
        await pilot.press("W", "down", "enter")
        await until(lambda: "o 1  " in text(app, "#answer"), LONG)
        assert "WALK  model:" in title(app, "#proposal")
        await until(lambda: len(messages.requests) == 2, LONG)
        await pilot.press("a")
        assert "the lineage is walked by model:" in said(app)
        await pilot.press("escape")
        await until(lambda: "1 step accepted, 0 rejected; stopped at: cancelled" in said(app))
    rest.set()
    assert len(walk.state().steps) == 2
    total = Ledger.of(walk.workspace.git.place).read().total()
    assert (total.calls, total.unpriced) == (2, 0)
    assert total.committed <= 10


@pytest.mark.parametrize(
    ("typed", "order"),
    [
        ({}, Order("rules")),
        ({"steps": "3", "best of": "2"}, Order("rules", steps=3, best_of=2)),
        ({"minutes": "0.5", "hint": "vectors last"}, Order("rules", "vectors last", minutes=0.5)),
    ],
)
def test_what_is_typed_is_ordered(typed: dict[str, str], order: Order) -> None:
    assert ordered("rules", NOTHING | typed) == (order, "")
    assert order.limits.seconds == (None if order.minutes is None else 60 * order.minutes)


@pytest.mark.parametrize(
    ("field", "value"),
    [("steps", "0"), ("steps", "²"), ("best of", "-1"), ("minutes", "nan"), ("minutes", "soon")],
)
def test_a_slip_is_one_sentence(field: str, value: str) -> None:
    order, problem = ordered("rules", NOTHING | {field: value})
    assert order is None
    assert problem.startswith(f"{field}: a ") and value in problem


def test_who_costs_something_may_fail_less_often() -> None:
    limits = [Order(name).limits.rejections_in_a_row for name in ("rules", "model:m", "command:mine")]
    assert limits[0] > limits[1] == limits[2] > 0


def reading(dollars: str, at_most: str = "0", limit: str | None = "10", unpriced: int = 0) -> Reading:
    total = Total(3, Usage(), Decimal(dollars), int(at_most != "0"), Decimal(at_most), unpriced)
    return Reading(total, None if limit is None else Limit(Decimal(limit)))


@pytest.mark.parametrize(
    ("shown", "narrow", "wide"),
    [
        (reading("0.42"), "$0.4200 of $10", "╌╌╌╌╌╌╌╌╌╌ $0.4200 of $10"),
        (reading("5", "1.2"), "≤$6.2000 of $10", "━━━━━━╌╌╌╌ ≤$6.2000 of $10"),
        (reading("12"), "$12.00 of $10", "━━━━━━━━━━ $12.00 of $10"),
        (reading("9.99999"), "$10.0000 of $10", "━━━━━━━━━━ $10.0000 of $10"),
        (reading("0", limit="0"), "$0.0000 of $0", "━━━━━━━━━━ $0.0000 of $0"),
        (reading("1", limit=None, unpriced=2), "$1.0000 +2 unpriced", "$1.0000 +2 unpriced"),
    ],
)
def test_the_spend_bar(shown: Reading, narrow: str, wide: str) -> None:
    bar = spend_bar(shown)
    assert (bar.text(False), bar.text(True)) == (narrow, wide)


@pytest.mark.parametrize("chosen", [0, 4, 9])
def test_of_many_proposers_those_around_the_chosen_one_are_shown(chosen: int) -> None:
    rows = chosen_of([Choice(f"command:{n}", f"note {n}") for n in range(10)], chosen).plain.splitlines()
    assert f"▌command:{chosen}" in rows and rows[-1].strip() == f"note {chosen}"
    assert len(rows) == 6


def test_decisions_stay_above_a_long_answer() -> None:
    keys: dict[str, Any] = {"cancel": "escape", "walk": "W", "ask": "p"}
    view = AnswerView("rules", text="line\n" * 50, steps=("o 1  Drop it  \x1b[31m",), keys=keys)
    lines = [line.text for line in answer_lines(view, 60)]
    assert answer_heading(view)[0] == "WALK  rules"
    assert lines[0] == "o 1  Drop it  ␛[31m"
    assert lines[-1] == "esc ends it; W comes back to it"
    assert lines.count("line") < 6


def test_decisions_are_broken_between_words_and_set_in() -> None:
    step = "o 1  Drop software prefetch  too noisy for a number: gate again on a quieter machine"
    view = AnswerView("rules", steps=(step, step), keys={"cancel": "escape", "walk": "W"})
    lines = [line.text for line in answer_lines(view, 40)]
    assert [line for line in lines if line.startswith("o 1")] == [
        "o 1  Drop software prefetch  too noisy"
    ] * 2
    assert " ".join(" ".join(lines).split()).count(" ".join(step.split())) == 2
