"""Makes docs/induce.svg, history.svg, cards.svg and library.svg: walks gemm-c in the real app, with real gates, seals it,
lifts its cards, probes and tries one, and exports the screens.

    python docs/screenshots.py [FOLDER]     # about three minutes; FOLDER is docs/ by default

Everything happens in a temporary folder, under the name of a curator who does not exist.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from klineage.walk import demo
from textual.pilot import Pilot
from textual.widgets import Static

from klineage_tui.app import KlineageApp
from klineage_tui.config import Config
from klineage_tui.presentation.card_form import Ref
from klineage_tui.presentation.walk import step_name
from klineage_tui.screens.card_lists import Choose
from klineage_tui.screens.cards import CardsScreen
from klineage_tui.screens.history import HistoryScreen
from klineage_tui.screens.induce import InduceScreen
from klineage_tui.screens.library import LibraryScreen
from klineage_tui.screens.lifting import LiftDialog
from klineage_tui.screens.seal import SealDialog
from klineage_tui.session import Session
from klineage_tui.themes import load_themes
from klineage_tui.widgets.lines import LineView

S = TypeVar("S")
SIZE = (160, 48)
SHOWN = "simd"  # the proposal that the picture of Induce shows, gated
CARD = "c.vector-types"  # the card that the pictures of Cards and Library show
TRIED_ON = "conv2d"  # on a kernel of this workload
COMPARED = ("K3", "K5")  # the states that the picture of History compares
ATTEMPTS = 4
CELL = 12.2  # the width of a cell in Rich's pictures
SPACE = "&#160;"
TEXT = re.compile(
    r'(<text class="[^"]*" )x="([\d.]+)"( y="[\d.]+" )textLength="([\d.]+)"( clip-path="[^"]*">)([^<]*)</text>'
)
CURATOR = {"NAME": "A. Curator", "EMAIL": "curator@example.org"}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent).resolve()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in CURATOR.items()}
        )
        os.environ.update({f"XDG_{name}_HOME": f"{home}/{name}" for name in ("CONFIG", "STATE", "CACHE")})
        os.chdir(home)
        tour = Path("tour")
        demo(tour)
        app = KlineageApp(
            tour, "gemm-c", Config(theme="klineage-dark"), load_themes(), Session(Path("session.json"))
        )
        asyncio.run(tell(app, folder))


async def tell(app: KlineageApp, folder: Path) -> None:
    """The walk, by keys: accept every proposal, seal, compare."""
    async with app.run_test(size=SIZE, notifications=False) as pilot:
        induce = await shown(app, InduceScreen)
        await until(lambda: induce._queue.current)
        while (proposal := induce._queue.current) is not None:
            await gate(induce, pilot)
            if proposal.candidate.action == SHOWN:
                await picture(app, pilot, folder / "induce.svg")
            before = induce._state
            await pilot.press("a")
            await until(lambda before=before: induce._state is not before)  # type: ignore[misc]
        await pilot.press("S")
        dialog = await shown(app, SealDialog)
        await pilot.press("enter")
        await until(lambda: "Sealed:" in str(dialog.query_one(".question", Static).render()))
        await pilot.press("enter", "2")
        history = await shown(app, HistoryScreen)
        await until(lambda: history._shows_forward and history._comparison)
        await compare(history, pilot)
        await picture(app, pilot, folder / "history.svg")
        await lift_and_try(app, pilot, folder)


async def lift_and_try(app: KlineageApp, pilot: Pilot[int], folder: Path) -> None:
    """Lift the cards, probe one precondition of one of them, try it on a kernel that it has never seen, look for it."""
    await pilot.press("L")
    await shown(app, LiftDialog)
    await pilot.press("enter")
    cards = await shown(app, CardsScreen)
    await until(lambda: cards._queue.items)
    cards.queue_view.move_to([item.id for item in cards._queue.items].index(CARD))
    await pilot.pause()
    probed = next(p.key for p in cards._queue.current.card.preconditions if p.probe is not None)  # type: ignore[union-attr]
    cards.form_view.focus()
    cards.form_view.move_to(cards._form.row_of(Ref("precondition", probed)))
    await pilot.pause()
    await pilot.press("p")
    await until(lambda: cards._last is not None and cards._run is None)
    await pilot.press("g")
    choose = await shown(app, Choose)
    names = [each.target.name for each, _ in choose._rows]
    choose.query_one(LineView).move_to(next(i for i, name in enumerate(names) if TRIED_ON in name))
    await pilot.press("enter")
    await until(
        lambda: cards._last is not None and cards._last.title.startswith("TRY") and cards._run is None
    )
    cards.forget_test()
    cards.redraw()
    await picture(app, pilot, folder / "cards.svg")
    await pilot.press("4")
    library = await shown(app, LibraryScreen)
    await pilot.press("v")
    await until(lambda: library._found and library._query.hypotheses and CARD in library._rows.ids)
    library.found_view.move_to(library._rows.ids.index(CARD))
    await picture(app, pilot, folder / "library.svg")


async def gate(induce: InduceScreen, pilot: Pilot[int]) -> None:
    """Gate the current proposal, again where the machine was too noisy for a number."""
    for left in reversed(range(ATTEMPTS)):
        known = len(induce._reports)
        await pilot.press("g")
        await until(lambda known=known: induce._run is None and len(induce._reports) > known)  # type: ignore[misc]
        report = list(induce._reports.values())[-1]
        if report.effect is not None or not left:
            return
        induce._reports.clear()


async def compare(history: HistoryScreen, pilot: Pilot[int]) -> None:
    """Put the mark on the first of the two states and the cursor on the second."""
    for name in COMPARED:
        step = next(step for step in history._forward if step_name(step) == name)
        history.graph.select(step.commit)
        await pilot.pause()
        if name == COMPARED[0]:
            await pilot.press("m")
    await until(lambda: history._comparison and history._comparison.key == history._wanted)


async def picture(app: KlineageApp, pilot: Pilot[int], path: Path) -> None:
    await pilot.pause(0.5)
    path.write_text(trimmed(app.export_screenshot(title="klineage")), encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def trimmed(svg: str) -> str:
    """The picture without spaces at the ends of its texts: some viewers drop them and stretch the rest."""

    def place(match: re.Match[str]) -> str:
        head, x, y, length, clip, text = match.groups()
        words = text.replace(SPACE, "\xa0")
        bare = words.strip("\xa0\n")
        if not bare:
            return ""
        left = len(words) - len(words.lstrip("\xa0"))
        right = len(words.rstrip("\n")) - len(words.rstrip("\xa0\n"))
        bare = bare.replace("\xa0", SPACE)
        at, wide = float(x) + left * CELL, float(length) - (left + right) * CELL
        return f'{head}x="{at:.1f}"{y}textLength="{wide:.1f}"{clip}{bare}</text>'

    return TEXT.sub(place, svg)


async def shown(app: KlineageApp, kind: type[S]) -> S:
    await until(lambda: isinstance(app.screen, kind) and app.screen.is_mounted)
    screen = app.screen
    assert isinstance(screen, kind)
    return screen


async def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        if asyncio.get_running_loop().time() > end:
            sys.exit(f"waited {seconds:.0f} s in vain")
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    main()
