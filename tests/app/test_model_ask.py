"""Asking a model in Induce: through the real SDK to a server on this machine."""

from __future__ import annotations

from typing import Any

from klineage.resources import shipped
from klineage.walk import Walk

from klineage_tui.screens.ask import AskProposer

from ..messages_server import MessagesServer, Reply
from .driving import SIZE, MakeApp, loaded, text, title, until


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
            await until(lambda: isinstance(app.screen, AskProposer))
            await pilot.press("enter")
            await until(lambda comment=comment: f"Say {comment}" in title(app, "#proposal"))  # type: ignore[misc]
            assert len(messages.requests) == number
        assert title(app, "#proposal") != before
        assert "proposed already, and not decided on yet" in messages.requests[1].text
        assert "\x1b" not in text(app, "#answer")
    assert len(walk.state().rejected) == 0
