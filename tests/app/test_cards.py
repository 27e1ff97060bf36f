"""Cards in the app, on real cards that were lifted from a real lineage; tests of them are real gates of C kernels."""

from __future__ import annotations

import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.skill.admission import of_file
from klineage.skill.admission.suggest import Suggestion
from klineage.skill.card import Contract, Probe, Verification
from klineage.skill.library import Library
from klineage.skill.lift import source_of
from klineage.skill.lift.shelving import lift, put
from klineage.skill.staleness import fingerprints, verified_by
from textual.pilot import Pilot
from textual.widgets import Input, Static

from klineage_tui import card_trials
from klineage_tui.app import KlineageApp
from klineage_tui.card_trials import try_on
from klineage_tui.config import Config
from klineage_tui.presentation.card_form import Ref
from klineage_tui.screens.card_evidence import EvidenceScreen
from klineage_tui.screens.card_fields import FieldDialog
from klineage_tui.screens.card_lists import Choose, RevisionsScreen
from klineage_tui.screens.cards import CardsScreen
from klineage_tui.screens.dialog import AskReason, Confirm
from klineage_tui.screens.edit import EditScreen
from klineage_tui.screens.history import HistoryScreen
from klineage_tui.session import Session
from klineage_tui.themes import load_themes
from klineage_tui.widgets.code_area import CodeArea
from klineage_tui.widgets.diff_view import DiffView
from klineage_tui.widgets.lines import LineView
from klineage_tui.widgets.pane import Pane

from ..engine.skill.lineages import Lineage, Showed
from .driving import SIZE, ready, said, until

LINEAGE = "softmax-c"
CARD = "c.vector-types"


@pytest.fixture(scope="module")
def lifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one sealed lineage and the cards that are lifted from it."""
    folder = tmp_path_factory.mktemp("lifted") / "workspace"
    workspace = Workspace.create(folder)
    Lineage.open(workspace, "softmax").seal({"vector-types": Showed(0.85)})
    library = Library.of(workspace)
    put(library, lift(source_of(workspace), library))
    workspace.close()
    return folder


@pytest.fixture
def library(lifted: Path, tmp_path: Path, own_folders: Path) -> Iterator[Library]:
    """The library of a copy of that workspace, as another process would see it."""
    shutil.copytree(lifted, tmp_path / "workspace")
    opened = Library.open(tmp_path / "workspace")
    yield opened
    opened.close()


def app_on(library: Library, own_folders: Path, lineage: str | None = LINEAGE) -> KlineageApp:
    session = Session(own_folders / "session.json")
    return KlineageApp(library.path, lineage, Config(), load_themes(), session)


def cards(app: KlineageApp) -> CardsScreen:
    return next(screen for screen in app.screen_stack if isinstance(screen, CardsScreen))


def text(app: KlineageApp, view: str) -> str:
    document = getattr(cards(app), view).document
    return "\n".join(document.line(row).text for row in range(len(document)))


def field(app: KlineageApp, ref: Ref) -> str:
    """Everything that the form says of one field."""
    form = cards(app)._form
    return " ".join(
        " ".join(line.text for line, at in zip(form.lines, form.refs, strict=True) if at == ref).split()
    )


async def opened(app: KlineageApp, pilot: Pilot[int], card_id: str = CARD) -> None:
    """Cards shows a card, the cursor in its form."""
    await until(lambda: app.walk is not None)
    await pilot.press("3")
    await until(lambda: isinstance(app.screen, CardsScreen) and cards(app)._queue.items != ())
    await at(app, pilot, card_id)
    await pilot.press("enter")


async def read(app: KlineageApp, pilot: Pilot[int]) -> None:
    """What a job has read becomes a new list of cards and a new form, with the cursors where they were."""
    await until(lambda: all(job.group != "cards" or job.is_finished for job in app.workers))
    await pilot.pause()


async def at(app: KlineageApp, pilot: Pilot[int], card_id: str) -> None:
    screen = cards(app)
    await read(app, pilot)
    screen.queue_view.focus()
    rows = [item.id for item in screen._queue.items]
    screen.queue_view.move_to(rows.index(card_id))
    await until(lambda: screen._queue.current is not None and screen._queue.current.id == card_id)
    await pilot.pause()


async def on(app: KlineageApp, pilot: Pilot[int], ref: Ref) -> None:
    """The cursor of the form on a field."""
    screen = cards(app)
    await read(app, pilot)
    screen.form_view.focus()
    screen.form_view.move_to(screen._form.row_of(ref))
    await until(lambda: screen._field == ref)
    await pilot.pause()


async def answer(app: KlineageApp, pilot: Pilot[int], **values: str) -> None:
    """Fill the dialog of a field, and send it."""
    await until(lambda: ready(app, FieldDialog))
    for name, value in values.items():
        app.screen.query_one(f"#field-{name}", Input).value = value
    await pilot.pause()
    await pilot.press("enter")


async def because(app: KlineageApp, pilot: Pilot[int], reason: str) -> None:
    await until(lambda: ready(app, AskReason))
    await pilot.press(*reason, "enter")


async def tried_on_bmm(app: KlineageApp, pilot: Pilot[int]) -> None:
    """Begin a trial where the card gains so much that no noise hides it."""
    await pilot.press("g")
    await until(lambda: ready(app, Choose), 60)
    choose = app.screen
    assert isinstance(choose, Choose)
    rows = [suggestion.target.name for suggestion, _ in choose._rows]  # type: ignore[attr-defined]
    choose.query_one(LineView).move_to(next(i for i, name in enumerate(rows) if "bmm" in name))
    await pilot.press("enter")


def probe_of(library: Library, key: str) -> Probe:
    """The probe of a precondition, as it is on disk."""
    probe = next(p.probe for p in library.get(CARD).preconditions if p.key == key)
    assert probe is not None
    return probe


def tried(library: Library) -> None:
    """Admit the card by a trial of what it says now."""
    card = library.get(CARD)
    trial = Verification(
        "v1", "bmm-c:K0", "bmm", "c", "cpu-x86-64-v3", (), "rules:vector-types", True, "as it says", ("workload",),
        quantity="time", gain=2.0, low=1.9, high=2.1, trust="measured-cpu", when="2026-11-01T00:00:00Z",
        rested_on=fingerprints(card),
    )  # fmt: skip
    library.save(replace(card, status="admitted", verification=(trial,)))


async def test_an_edited_precondition_goes_stale_is_probed_and_admitted_again(
    library: Library, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried(library)
    app = app_on(library, own_folders)
    ref = Ref("precondition", "p5")
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        assert "v1 ok" in field(app, Ref("verification", "v1"))
        assert "UNTESTED platform" in field(app, ref)
        await on(app, pilot, Ref("intent"))
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, FieldDialog) and app.screen.is_mounted)
        assert "nothing that was tested rests on the old words" in app.screen._question
        await pilot.press("escape")
        await on(app, pilot, ref)
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, FieldDialog) and app.screen.is_mounted)
        assert "what rests on the old words becomes stale" in app.screen._question
        await answer(
            app,
            pilot,
            text="A vector holds whole elements.",
            probe="setting name=attributes value=vector_size(3)",
        )
        assert isinstance(app.screen, FieldDialog), "a change without a reason is not taken"
        assert "Say why" in said(app)
        await answer(app, pilot, reason="seen when it was compiled")
        await until(lambda: "v1 STALE" in field(app, Ref("verification", "v1")))
        assert "edited since: precondition.p5" in field(app, Ref("verification", "v1"))
        assert "on no held-out kernel yet" in field(app, Ref("verified"))
        assert not verified_by(library.get(CARD))

        await on(app, pilot, Ref("intent"))
        await pilot.press("p")  # which no probe can break: it leads to what waits for one
        await until(lambda: cards(app)._field.kind == "precondition")
        assert f"{cards(app)._field.key} is under the cursor now" in said(app)
        assert cards(app)._run is None
        await on(app, pilot, ref)
        await pilot.press("p")
        await until(lambda: isinstance(app.screen, Confirm) and app.screen.is_mounted)
        await pilot.press("enter")  # the copied repository's code is somebody else's: asked once
        await until(lambda: cards(app)._last is not None)
        await until(lambda: cards(app)._run is None and "UNTESTED" not in field(app, ref), 90)
        probe = probe_of(library, "p5")
        assert probe.trust == "static" and probe.evidence
        assert probe.outcome == "confirmed" and "compile fails" in probe.found, "no clock decides this one"
        assert "CONFIRMED" in field(app, ref) and "compile fails" in field(app, ref)
        assert "PROBE" in cards(app).query_one("#behind", Pane).title_text

        await on(app, pilot, Ref("evidence", probe.evidence[0]))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, EvidenceScreen) and bool(app.screen.query(DiffView)))
        why = app.screen.query_one("#evidence-why", LineView)
        await until(lambda: len(why.document) > 0)
        assert "compile  FAIL" in why.document.line(1).text, "the gate of the probe, and not that of the step"
        await pilot.press("escape")

        before = library.source(CARD)
        held, go_on = threading.Event(), threading.Event()

        def held_at_its_first_gate(*arguments: Any) -> str:
            *others, say, on_event, cancel = arguments

            def hear(event: object) -> None:
                held.set()
                go_on.wait(300)
                on_event(event)

            return try_on(*others, say, hear, cancel)

        with monkeypatch.context() as patch:
            patch.setattr(card_trials, "try_on", held_at_its_first_gate)
            await tried_on_bmm(app, pilot)
            await until(held.is_set)
        await pilot.press("e")
        assert "it is being tested" in said(app)
        await pilot.press("escape")
        go_on.set()
        await until(lambda: cards(app)._run is None, 60)
        assert "stopped; nothing was written" in text(app, "run_view")
        assert library.source(CARD) == before

        # A machine that is busy may be too noisy for a number: tried again, as a person would.
        for number in range(2, 5):
            await tried_on_bmm(app, pilot)
            await until(lambda number=number: f"v{number} " in text(app, "form_view"), 120)
            if library.get(CARD).verification[-1].accepted:
                break
        await until(lambda: "ACCEPTED; it admits the card" in text(app, "run_view"))
        assert cards(app)._queue.on(CARD).current.standing in ("admitted", "disagreement", "probe")  # type: ignore[union-attr]
    card = library.get(CARD)
    assert [trial.key for trial in verified_by(card)] == [card.verification[-1].key]
    assert card.verification[0].key == "v1", "the log is added to, and never rewritten"
    assert library.history(CARD)[0].kind == "evidence"


async def test_decisions_go_to_the_next_card_and_can_be_taken_back(
    library: Library, own_folders: Path
) -> None:
    tried(library)
    card = library.get(CARD)
    library.save(replace(card, status="hypothesis"))
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot, "c.unroll")
        await pilot.press("a")
        assert "no held-out kernel shows what it says now" in said(app)
        await at(app, pilot, CARD)
        await pilot.press("a")
        await until(lambda: cards(app)._queue.current.id != CARD)  # type: ignore[union-attr]
        assert library.get(CARD).status == "admitted"
        await pilot.press("u")
        await until(lambda: "Taken back" in said(app) and not cards(app)._deciding)
        assert library.get(CARD).status == "hypothesis"
        await pilot.press("ctrl+r")
        await until(lambda: "Taken again" in said(app) and not cards(app)._deciding)
        assert library.get(CARD).status == "admitted"

        await at(app, pilot, "c.unroll")
        await pilot.press("x")
        await because(app, pilot, "the compiler does it")
        await until(lambda: "x retired   c.unroll" in text(app, "queue_view"))
        assert library.get("c.unroll").retired == "the compiler does it"

        here = cards(app)._queue.current
        assert here is not None
        await pilot.press("s")
        await until(lambda: f"{here.id} later" in text(app, "queue_view"))
        assert cards(app)._queue.current is not None and cards(app)._queue.current.id != here.id
    assert library.history("c.unroll")[0].reason == "the compiler does it"


async def test_checks_on_a_kernel_then_the_lines_behind_a_claim_then_history(
    library: Library, own_folders: Path
) -> None:
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        await pilot.press("c")
        await until(lambda: ready(app, Choose))
        await pilot.press("enter")
        await until(lambda: "there:" in field(app, Ref("precondition", "p3")), 60)
        assert "checked on" in cards(app).query_one("#card", Pane).title_text

        await on(app, pilot, Ref("action"))
        await pilot.press("j")
        await until(lambda: cards(app)._field == Ref("anchor"))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, EvidenceScreen) and app.screen.query_one(DiffView).marked)
        screen = app.screen
        assert isinstance(screen, EvidenceScreen)
        place = screen._shown.places[0]
        view = screen.query_one(DiffView)
        await until(lambda: view.line_numbers[0] == place.line)
        assert "for" in view.document.line(view.cursor_row).text
        row = view.cursor_row
        await pilot.press("j", "j", "k")
        assert view.cursor_row == row + 1
        commit = screen._shown.evidence.commit
        await pilot.press("H")
        await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.is_mounted)
        history = app.screen
        assert isinstance(history, HistoryScreen)
        await until(lambda: history.graph.step is not None and history.graph.step.commit == commit)


async def test_the_whole_card_is_checked_as_it_is_typed_and_a_draft_is_kept(
    library: Library, own_folders: Path
) -> None:
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        before = library.source(CARD)
        await pilot.press("w")
        await until(lambda: isinstance(app.screen, EditScreen) and bool(app.screen.query(CodeArea)))
        area = app.screen.query_one(CodeArea)
        area.text = area.text.replace("intent:", "intend:", 1)
        await until(lambda: "intend" in str(app.screen.query_one("#edit-problem", Static).render()))
        await pilot.press("ctrl+s")
        assert isinstance(app.screen, EditScreen), "what cannot be read is not taken"
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen.is_mounted)
        assert library.source(CARD) == before

        await pilot.press("w")
        await until(lambda: isinstance(app.screen, Confirm) and app.screen.is_mounted)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, EditScreen) and bool(app.screen.query(CodeArea)))
        area = app.screen.query_one(CodeArea)
        assert "intend:" in area.text
        area.text = area.text.replace("intend:", "# by hand\nintent:", 1)
        await pilot.press("ctrl+s")
        await because(app, pilot, "a note")
        await until(lambda: "is saved" in said(app))
    assert b"# by hand\nintent:" in library.source(CARD)
    assert library.history(CARD)[0].reason == "a note"


async def test_the_external_editor(
    library: Library, own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import sys; p = open(sys.argv[1], 'a'); p.write('\\nSeen by hand.\\n')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    app = app_on(library, own_folders)
    monkeypatch.setattr(app, "suspend", nullcontext)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        await pilot.press("E")
        await because(app, pilot, "seen")
        await until(lambda: "is saved" in said(app))
        assert library.get(CARD).notes.endswith("Seen by hand.")
        await pilot.press("r")
        await until(lambda: isinstance(app.screen, RevisionsScreen) and app.screen.is_mounted)
        await until(lambda: app.screen.query_one(DiffView).changed[0] > 0)
        await pilot.press("escape")


async def test_somebody_elses_edit_is_not_overwritten_and_what_was_typed_is_kept(
    library: Library, own_folders: Path
) -> None:
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        await on(app, pilot, Ref("intent"))
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, FieldDialog) and app.screen.is_mounted)
        library.save(replace(library.get(CARD), notes="from elsewhere"), "Bo", "a note")
        await answer(app, pilot, intent="Compute many lanes at once", reason="shorter")
        await until(
            lambda: (
                isinstance(app.screen, FieldDialog)
                and app.screen.is_mounted
                and "has changed" in "".join(str(s.render()) for s in app.screen.query("#field-problem"))
            )
        )
        assert isinstance(app.screen, FieldDialog)
        assert app.screen.reason == "shorter"
        assert app.screen.values()["intent"] == "Compute many lanes at once"  # type: ignore[attr-defined]
        assert library.get(CARD).notes == "from elsewhere"
        await until(lambda: cards(app)._queue.on(CARD).current.card.notes == "from elsewhere")  # type: ignore[union-attr]
        await pilot.press("enter")
        await until(lambda: "Compute many lanes at once" in field(app, Ref("intent")))
    assert library.get(CARD).intent == "Compute many lanes at once"
    assert library.get(CARD).notes == "from elsewhere", "both edits are there"


async def test_two_cards_become_one_and_two_again(library: Library, own_folders: Path) -> None:
    library.save(replace(library.get("c.unroll"), id="c.unroll-more", notes="by another"))
    library.save(replace(library.get(CARD), id="c.simd-else", contract=Contract()))
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot, CARD)
        await pilot.press("M")
        assert f"{CARD} and c.simd-else cannot be one card: they provide different features" in said(app)
        await at(app, pilot, "c.unroll")
        await pilot.press("M")
        await until(lambda: ready(app, Choose))
        await pilot.press("enter")
        await because(app, pilot, "one and the same")
        await until(lambda: "x retired   c.unroll-more" in text(app, "queue_view"))
        assert "c.unroll" in library.get("c.unroll-more").retired
        await pilot.press("u")
        await until(lambda: "x retired" not in text(app, "queue_view"))
    assert library.get("c.unroll-more").status == "hypothesis"


async def test_a_broken_card_is_named_by_line_and_the_rest_opens(library: Library, own_folders: Path) -> None:
    from klineage.skill.library.git import Change, GitShelf
    from klineage.skill.library.history import Word

    shelf = library.shelf
    assert isinstance(shelf, GitShelf)
    source = library.source("c.unroll").replace(b"intent:", b"intend:", 1)
    shelf.commit(lambda _: Change(Word("By hand"), {"cards/c.unroll.md": source}))
    app = app_on(library, own_folders)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await opened(app, pilot)
        assert text(app, "queue_view").startswith("! BROKEN    c.unroll")
        await at(app, pilot, "c.unroll")
        assert re.search(r"c\.unroll\.md:\d+: .*intend", " ".join(text(app, "form_view").split()))
        await pilot.press("p")
        assert "it cannot be read" in said(app)


async def test_the_cursor_and_the_card_stay_together_whatever_is_drawn_meanwhile(
    library: Library, own_folders: Path
) -> None:
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        screen = cards(app)
        ids = [item.id for item in screen._queue.items]

        def together(card_id: str) -> bool:
            row, current = screen.queue_view.cursor_row, screen._queue.current
            return current is not None and ids[row] == current.id == screen._shown.id == card_id  # type: ignore[union-attr]

        here = screen._queue.position
        there = (here + 1) % len(ids)
        screen.queue_view.move_to(there)
        screen.redraw()  # as for another width, before the place has heard of the move
        assert together(ids[there])
        screen.reload()
        screen.queue_view.move_to(here)
        await until(lambda: together(ids[here]))
        await read(app, pilot)
        assert together(ids[here]), "what was read meanwhile does not take the reader back"
        screen.form_view.move_to(screen._form.row_of(Ref("carrier")))
        screen.redraw()
        assert screen._field == Ref("carrier")


async def test_a_key_while_a_decision_is_written_does_not_overtake_it(
    library: Library, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, may_write, save = threading.Event(), threading.Event(), Library.save

    def slow(*arguments: object, **more: object) -> str:
        may_write.wait(60)
        revision = save(*arguments, **more)  # type: ignore[arg-type]
        written.set()
        return revision

    monkeypatch.setattr(Library, "save", slow)
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot, "c.unroll")
        await pilot.press("x")
        await because(app, pilot, "no use")
        await until(lambda: app.screen is cards(app))
        await until(lambda: all(job.group != "cards" or job.is_finished for job in app.workers))
        await pilot.pause()
        await pilot.press("u")
        assert "the last decision is still being written" in said(app)
        assert not written.is_set() and library.get("c.unroll").status == "hypothesis"
        may_write.set()
        await until(lambda: "x retired   c.unroll" in text(app, "queue_view"))
        assert cards(app)._queue.current.id != "c.unroll"  # type: ignore[union-attr]
        await pilot.press("u")
        await until(lambda: "x retired" not in text(app, "queue_view"))
    assert library.get("c.unroll").status == "hypothesis"


async def test_kernels_on_which_no_trial_could_succeed_are_not_offered(
    library: Library, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its rule, and with code that stands in no other kernel, only a model or a person could put it there."""
    card = library.get(CARD)
    library.save(replace(card, rule=""))
    bmm = of_file(shipped("experts") / "bmm" / "c" / "naive.c")
    far = Suggestion(bmm, ("workload",), "another workload", fits=False)
    monkeypatch.setattr("klineage.skill.admission.suggest.held_out_targets", lambda *_: (far, far))
    app = app_on(library, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(app, pilot)
        await pilot.press("g")
        await until(lambda: "finds a place in 2 kernels that it has never seen" in said(app))
        assert f"klineage admit {CARD} --with" in said(app)
        assert isinstance(app.screen, CardsScreen)
