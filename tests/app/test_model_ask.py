"""Asking a model in Induce: through the real SDK to a server on this machine."""

from __future__ import annotations

import threading
from typing import Any

from klineage.ledger import Ledger, Usage
from klineage.resources import shipped
from klineage.walk import Walk

from klineage_tui.screens.ask import AskProposer
from klineage_tui.widgets.action_bar import ActionBar

from ..messages_server import MessagesServer, Reply
from .driving import SIZE, MakeApp, induce, loaded, text, title, until


def answer(comment: str) -> dict[str, Any]:
    """No pragma unrolls a loop any more; a comment stands in its place."""
    source = (shipped("experts") / "add_rmsnorm" / "c" / "kernel.c").read_text()
    lines = [f"/* {comment} */" if "#pragma GCC unroll" in line else line for line in source.split("\n")]
    return {
        "decision": "propose", "rationale": "The compiler\x1b[31m decides.", "title": f"Say {comment}", "action": "unroll",
        "locus": "kernel.c::add_rmsnorm_row", "removes": ["unroll"], "settings": [], "preconditions": [],
        "source": "\n".join(lines), "edits": [],
    }  # fmt: skip


async def test_an_answer_streams_and_who_asks_again_gets_another_one(
    make_app: MakeApp, walk: Walk, messages: MessagesServer
) -> None:
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        before = title(app, "#proposal")
        for number, comment in enumerate(("nothing", "little"), start=1):
            messages.say(Reply(answer(comment), piece=100))
            await pilot.press("p")
            await until(lambda: isinstance(app.screen, AskProposer) and app.screen.is_mounted)
            await pilot.press("enter")
            await until(lambda comment=comment: f"Say {comment}" in title(app, "#proposal"))  # type: ignore[misc]
            assert len(messages.requests) == number
        assert title(app, "#proposal") != before
        assert "proposed already, and not decided on yet" in messages.requests[1].text
        assert "\x1b" not in text(app, "#answer")
    assert len(walk.state().rejected) == 0


async def test_who_quits_while_an_answer_comes_finds_it_later(
    make_app: MakeApp, walk: Walk, messages: MessagesServer
) -> None:
    """The app leaves at once; the call finishes by itself, and is neither lost nor paid twice."""
    rest = threading.Event()
    messages.say(Reply(answer("nothing"), piece=100, hold=rest))
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        await pilot.press("p")
        await until(lambda: isinstance(app.screen, AskProposer) and app.screen.is_mounted)
        await pilot.press("enter")
        await until(lambda: "The compiler" in text(app, "#answer"))
        await pilot.press("q")
    assert "finishes its answer by itself" in app.last_words
    ledger = Ledger.of(walk.workspace.git.place)
    assert ledger.read().total().open == 1
    rest.set()
    await until(lambda: ledger.read().total().open == 0)
    served = messages.served
    assert ledger.read().total().usage == Usage(
        served.input, served.cache_read, served.cache_write, served.output
    )
    app = make_app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await loaded(app)
        assert " of $10" in str(induce(app).query_one(ActionBar).render())
        await pilot.press("p")
        await until(lambda: isinstance(app.screen, AskProposer) and app.screen.is_mounted)
        await pilot.press("enter")
        await until(lambda: "Say nothing" in title(app, "#proposal"))
    assert len(messages.requests) == 1
