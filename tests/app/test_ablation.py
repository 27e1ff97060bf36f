"""What each optimization is worth, in the app: on a real sealed lineage; gates are not run, a test says what they show."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.gate import Report
from klineage.kernel import Feature, Kernel
from klineage.lineage import Workspace
from klineage.proposer import rules
from klineage.skill.ablation import Ablation, Offer, Row, Worth, kept, measuring
from klineage.skill.card import ContractFeature
from klineage.skill.library import Library
from klineage.skill.lift import source_of
from klineage.skill.lift.shelving import lift
from klineage.skill.trial import Gain
from klineage.workload import Workload
from textual.pilot import Pilot

from klineage_tui.app import KlineageApp
from klineage_tui.card_ablation import Matrix, read
from klineage_tui.cli import main
from klineage_tui.config import Config
from klineage_tui.presentation.ablation_matrix import matrix_lines, row_lines
from klineage_tui.screens import ablation
from klineage_tui.screens.ablation import AblationScreen, RowFound
from klineage_tui.screens.cards import CardsScreen
from klineage_tui.screens.dialog import AskReason, Confirm
from klineage_tui.screens.history import HistoryScreen
from klineage_tui.session import Session
from klineage_tui.text.columns import width
from klineage_tui.themes import load_themes
from klineage_tui.widgets.pane import Pane

from ..engine.skill.lineages import Lineage, Showed, failed, report
from .driving import SIZE, ready, said, until

LINEAGE = "softmax-c"
CARD = "c.vector-types"


@pytest.fixture
def workspace(tmp_path: Path, own_folders: Path) -> Iterator[Workspace]:
    """A sealed lineage and its cards; the one of vectors requires nothing yet."""
    opened = Workspace.create(tmp_path / "workspace")
    Lineage.open(opened, "softmax").seal({"register-tile": Showed(1 / 1.5)})
    library = Library.of(opened)
    cards = [one.card for one in lift(source_of(opened), library) if one.card is not None]
    library.save_all(replace(card, contract=replace(card.contract, requires=())) for card in cards)
    yield opened
    opened.close()


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> Callable[[threading.Event], None]:
    """Tiles of sums halve the time, and vectors need aligned arrays. Called with an event, gates wait until cancelled."""
    begun: list[threading.Event] = []

    def judged(
        kernel: Kernel,
        baseline: Kernel | None,
        workload: Workload,
        platform: str,
        *,
        cancel: threading.Event,
        **_: object,
    ) -> Report:
        for event in begun:
            event.set()
            assert cancel.wait(600)
            raise KlineageError("cancelled; nothing was written")
        names, before = ({f.name for f in rules.features(k)} for k in (kernel, baseline or kernel))
        if "simd" in names and "alignment" not in names:
            return failed(kernel, workload, platform, "load of misaligned address")
        cost = [
            1.0 / (2 if "register_tiling" in n else 1) / (4 if "simd" in n else 1) for n in (names, before)
        ]
        return report(kernel, baseline or kernel, workload, platform, Showed(cost[0] / cost[1]))

    monkeypatch.setattr(measuring, "judged", judged)
    return begun.append


def app_on(workspace: Workspace, own_folders: Path) -> KlineageApp:
    return KlineageApp(workspace.path, LINEAGE, Config(), load_themes(), Session(own_folders / "s.json"))


def place(app: KlineageApp) -> AblationScreen:
    assert isinstance(app.screen, AblationScreen)
    return app.screen


def text(app: KlineageApp, view: str) -> str:
    document = getattr(place(app), view).document
    return "\n".join(document.line(row).text for row in range(len(document)))


async def opened(app: KlineageApp, pilot: Pilot[int]) -> None:
    """From History to its ablation."""
    await until(lambda: app.walk is not None)
    await pilot.press("2")
    await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.graph.step is not None)
    await pilot.press("A")
    await until(lambda: isinstance(app.screen, AblationScreen) and "K1 " in text(app, "matrix_view"))


async def measuring_begins(app: KlineageApp, pilot: Pilot[int]) -> None:
    await pilot.press("g")
    await until(lambda: isinstance(app.screen, Confirm) and "came from elsewhere" in app.screen._question)
    await pilot.press("enter")


async def test_what_was_read_before_does_not_hide_what_is_measured(
    workspace: Workspace,
    own_folders: Path,
    gates: Callable[[threading.Event], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, go_on = threading.Event(), threading.Event()
    gates(threading.Event())  # which waits until it is cancelled
    app = app_on(workspace, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)

        def slow(*arguments: Any) -> Matrix:
            began.set()
            assert go_on.wait(600)
            return read(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(ablation, "read", slow)
            place(app).reload()
            await until(began.is_set)
            await measuring_begins(app, pilot)
            await until(lambda: place(app)._run is not None)
        run, matrix = place(app)._run, place(app)._matrix
        assert run is not None and matrix is not None
        place(app).post_message(RowFound(run, replace(matrix.ablation.rows[0], action="found")))
        await until(lambda: "K1 found" in text(app, "matrix_view"))
        go_on.set()
        await until(lambda: all(job.is_finished for job in app.workers if job.group == "matrix"))
        await pilot.press()
        assert "K1 found" in text(app, "matrix_view")
        await pilot.press("escape")
        await until(lambda: place(app)._run is None)


@pytest.mark.usefixtures("gates")
async def test_a_lineage_is_measured_and_what_follows_goes_into_its_cards(
    workspace: Workspace, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = Library.of(workspace)
    app = app_on(workspace, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        assert "1.50x ±1.0%" in text(app, "matrix_view"), "the step says what it was worth when it was sealed"
        assert "from steps and cards" in place(app).query_one("#matrix", Pane).title_text
        await pilot.press("w")
        assert "what its cards say already" in said(app)

        await measuring_begins(app, pilot)
        await until(lambda: "2 of 5 pay in order" in text(app, "worth_view"))
        await until(
            lambda: "measured-cpu, thread_cpu_time" in place(app).query_one("#matrix", Pane).title_text
        )
        rows = {line.split()[1]: line for line in text(app, "matrix_view").splitlines()[1:]}
        assert rows["register_tiling"].count("2.00x ±1.0%") == 3
        assert "did not pass" in rows["simd"]
        assert rows["simd"].endswith("K3 alignment")
        assert kept(workspace, LINEAGE) is not None

        await pilot.press("home", "j", "j", "j")
        assert "K4 simd" in place(app).query_one("#worth", Pane).title_text
        assert "pays only after K3 alignment" in text(app, "worth_view")
        assert "could require alignment" in text(app, "worth_view")
        await pilot.press("r")
        await until(lambda: ready(app, AskReason))
        await pilot.press("enter")
        await until(lambda: f"{CARD} requires alignment" in said(app))
        await until(lambda: "could require" not in text(app, "worth_view"))
        await pilot.press("w")
        await until(lambda: "Written into" in said(app))

        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen._queue.current is not None)
        assert isinstance(app.screen, CardsScreen)
        await until(lambda: app.screen._queue.current.id == CARD)  # type: ignore[attr-defined]
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, AblationScreen) and app.screen.is_mounted)
        await until(lambda: "K4 simd" in place(app).query_one("#worth", Pane).title_text)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen.is_mounted)
    card = library.get(CARD)
    assert [(f.name, f.where) for f in card.contract.requires] == [("alignment", "function")]
    assert card.scope.prior_actions == ("alignment",)
    assert "pays only after K3 alignment" in library.history(CARD)[1].reason
    assert [(e.position, e.gain) for e in library.get("c.register-tile").effects if e.position != "in-order"]
    assert main(["ablate", LINEAGE, "--kept", "--json", "-w", str(workspace.path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [offer["action"] for offer in told["offers"]] == ["simd"]


async def test_measuring_goes_on_elsewhere_and_can_be_stopped(
    workspace: Workspace, own_folders: Path, gates: Callable[[threading.Event], None]
) -> None:
    begun = threading.Event()
    gates(begun)
    app = app_on(workspace, own_folders)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(app, pilot)
        await measuring_begins(app, pilot)
        await until(begun.is_set)
        await until(lambda: "K1 restrict, 1 of 5: in order" in text(app, "worth_view"))
        await pilot.press("g")
        assert "is being measured; esc stops it" in said(app)
        await pilot.press("3")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen._queue.items != ())
        await pilot.press("2")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, AblationScreen) and app.screen.is_mounted)
        assert "esc stops it" in text(app, "worth_view")
        await pilot.press("escape")
        await until(lambda: "stopped; what was gated is remembered" in text(app, "worth_view"))
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
    assert kept(workspace, LINEAGE) is None


GAINS = st.builds(
    lambda quantity, gain, half, trust: Gain(
        quantity, gain, gain * (1 - half * (quantity == "time")), gain * (1 + half * (quantity == "time")), trust, "bench",
        "thread_cpu_time" if quantity == "time" else "", 0.01 * (quantity == "time"), 1.0, 1.0 / gain,
    ),
    st.sampled_from(["time", "bytes_loaded", "shared_memory_bank_conflicts"]),
    st.floats(1e-4, 1e6),
    st.floats(0, 0.9),
    st.sampled_from(["measured-gpu", "measured-cpu", "interpreted", "static"]),
)  # fmt: skip
WORTHS = st.one_of(
    st.builds(lambda gain: Worth("first", "K0", gain if gain.shown else None, (gain,)), GAINS),
    st.builds(lambda problem: Worth("last", "K5", problem=problem), st.text(min_size=1, max_size=200)),
    st.just(Worth("in-order", "")),
)
ROWS = st.builds(
    lambda number, action, worths, needs, why: Row(
        number, action, "r", "c", (), worths[0], worths[1], worths[2], (worths[0],), needs, why
    ),
    st.integers(1, 99),
    st.text(min_size=1, max_size=30),
    st.tuples(WORTHS, WORTHS, WORTHS),
    st.sampled_from([(), ("K1 layout_pack",), ("K12 " + "x" * 40,)]),
    st.text(max_size=120),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=6), st.integers(72, 170))
def test_the_matrix_fits_and_says_everything_somewhere(rows: list[Row], cells: int) -> None:
    found = Ablation("x", "gemm", "cpu-x86-64-v4", tuple(rows))
    lines = [line.text for line in matrix_lines(found, cells)]
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= cells and "\x1b" not in line for line in lines)
    for row in rows:
        told = [line.text for line in row_lines(row, "c.card", None, cells)]
        assert all(width(line) <= cells for line in told)
        whole = " ".join(" ".join(told).split())
        for worth in (row.first, row.in_order, row.last):
            if worth.measured:
                assert worth.measured[0].trust in whole, "no number without how it is known"


def test_an_offer_is_told_in_words() -> None:
    nothing = Worth("first", "")
    row = Row(
        2,
        "simd",
        "r",
        "c",
        (Feature("k.c::f", "simd"),),
        nothing,
        nothing,
        nothing,
        (),
        ("K1 alignment",),
        "why",
    )
    offer = Offer(2, "simd", (ContractFeature("alignment", "function"),), ("alignment",), "why")
    told = " ".join(line.text for line in row_lines(row, "c.vectors", offer, 60))
    assert "could require alignment in its function" in " ".join(told.split())
