"""The Library place: what holds for a kernel and why, pulling, lifting and exporting; rows as pure functions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Workspace
from klineage.resources import shipped
from klineage.skill.card import Verification
from klineage.skill.library import Library
from klineage.skill.lift import source_of
from klineage.skill.lift.shelving import lift, put
from klineage.skill.retrieval import retrieve
from klineage.skill.retrieval.index import index_of, row_of
from klineage.skill.retrieval.reasons import Need
from klineage.skill.retrieval.target import Target
from klineage.skill.staleness import fingerprints
from textual.widgets import Input, Static

from klineage_tui.app import KlineageApp
from klineage_tui.config import Config
from klineage_tui.library_search import Found, Query, checked_query, export, has_words
from klineage_tui.presentation.library import hit_lines, nothing_found, result_rows
from klineage_tui.screens.card_fields import FieldDialog
from klineage_tui.screens.card_lists import Choose
from klineage_tui.screens.cards import CardsScreen
from klineage_tui.screens.exporting import ExportDialog
from klineage_tui.screens.library import LibraryScreen
from klineage_tui.screens.lifting import LiftDialog
from klineage_tui.screens.pulling import PullDialog
from klineage_tui.session import Session
from klineage_tui.themes import load_themes
from klineage_tui.widgets.title_row import TitleRow

from ..engine.skill.lineages import Lineage, Showed
from .driving import SIZE, ready, said, until

LINEAGE = "softmax-c"
CARD = "c.vector-types"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one sealed lineage and no card."""
    folder = tmp_path_factory.mktemp("sealed") / "workspace"
    workspace = Workspace.create(folder)
    Lineage.open(workspace, "softmax").seal({"vector-types": Showed(0.5)})
    workspace.close()
    return folder


@pytest.fixture
def workspace(sealed: Path, tmp_path: Path, own_folders: Path) -> Iterator[Workspace]:
    shutil.copytree(sealed, tmp_path / "workspace")
    opened = Workspace.open(tmp_path / "workspace")
    yield opened
    opened.close()


@pytest.fixture
def library(workspace: Workspace) -> Library:
    """Every card of the lineage, one of them admitted."""
    library = Library.of(workspace)
    put(library, lift(source_of(workspace), library))
    card = library.get(CARD)
    trial = Verification(
        "v1", "bmm-c:K0", "bmm", "c", "cpu-x86-64-v3", ("restrict",), "rules:vector-types", True, "as it says", ("workload",),
        when="2026-11-01T00:00:00Z", rested_on=fingerprints(card),
    )  # fmt: skip
    library.save(replace(card, status="admitted", verification=(trial,)))
    return library


def app_on(workspace: Workspace, own_folders: Path, lineage: str | None = LINEAGE) -> KlineageApp:
    session = Session(own_folders / "session.json")
    return KlineageApp(workspace.path, lineage, Config(), load_themes(), session)


def place(app: KlineageApp) -> LibraryScreen:
    return next(screen for screen in app.screen_stack if isinstance(screen, LibraryScreen))


def text(app: KlineageApp, view: str = "found_view") -> str:
    document = getattr(place(app), view).document
    return "\n".join(document.line(row).text for row in range(len(document)))


async def shown(app: KlineageApp) -> None:
    await until(lambda: isinstance(app.screen, LibraryScreen) and place(app)._found is not None)


async def test_what_holds_and_what_does_not_yet_with_the_reasons(
    library: Library, workspace: Workspace, own_folders: Path
) -> None:
    app = app_on(workspace, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(lambda: app.walk is not None)
        await pilot.press("4")
        await shown(app)
        assert "softmax, c, cpu-x86-64-v3" in place(app).query_one("#heading").text  # type: ignore[attr-defined]
        assert " hidden" in place(app).query_one("#heading").text  # type: ignore[attr-defined]
        assert CARD in text(app)
        await pilot.press("v")
        await until(lambda: "c.unroll" in text(app))
        assert "hypothesis" in text(app)
        assert "WAYS ON" in text(app) and f"{LINEAGE}  0 taken" in text(app)
        view = place(app).found_view
        view.move_to(place(app)._rows.ids.index(CARD))
        await until(lambda: "surface   written in c" in text(app, "hit_view"))
        assert "2.00x [" in text(app, "hit_view") and "measured-cpu" in text(app, "hit_view")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen.is_mounted)
        await until(lambda: app.screen._queue.current is not None and app.screen._queue.current.id == CARD)  # type: ignore[attr-defined]


async def test_another_target_is_asked_for_and_what_is_wrong_with_it_is_said(
    library: Library, workspace: Workspace, own_folders: Path
) -> None:
    app = app_on(workspace, own_folders, None)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(lambda: app.walk is not None)
        await pilot.press("4")
        await shown(app)
        view = place(app).found_view
        before = place(app)._found
        await pilot.press("v")
        await until(lambda: place(app)._found is not before)
        await pilot.press("end")
        assert view.cursor_row > min(place(app)._rows.selectable)
        await pilot.press("/")
        await until(lambda: ready(app, FieldDialog))
        dialog = app.screen
        assert isinstance(dialog, FieldDialog)
        dialog.query_one("#field-kernel", Input).value = ""
        dialog.query_one("#field-surface", Input).value = "fortran"
        assert "no language 'fortran'" in dialog.problem()
        dialog.query_one("#field-surface", Input).value = "cuda"
        dialog.query_one("#field-workload", Input).value = "bmm"
        await pilot.press("enter")
        await until(lambda: "NOT YET" in text(app))
        assert "its idea has to be put into cuda" in text(app)
        assert view.cursor_row == min(place(app)._rows.selectable), (
            "the best answer to a new question is first"
        )


async def test_a_kernel_file_of_ones_own_is_looked_at_with_what_it_computes(
    library: Library, workspace: Workspace, own_folders: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine" / "fast.c"
    mine.parent.mkdir()
    shutil.copy(shipped("experts") / "softmax" / "c" / "kernel.c", mine)
    app = app_on(workspace, own_folders, None)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(lambda: app.walk is not None)
        await pilot.press("4")
        await shown(app)
        await pilot.press("/")
        await until(lambda: ready(app, FieldDialog))
        dialog = app.screen
        assert isinstance(dialog, FieldDialog)
        kernel = dialog.query_one("#field-kernel", Input)
        kernel.focus()
        await until(lambda: kernel.has_focus)
        await pilot.press()  # whoever comes into a field has all of it selected first
        kernel.value = str(mine)[:-2]
        kernel.cursor_position = len(kernel.value)
        await until(lambda: kernel._suggestion == str(mine))
        await pilot.press("right")
        assert kernel.value == str(mine)
        await pilot.press("enter")
        assert app.screen is dialog
        assert "say as workload what it computes" in str(dialog.query_one("#field-problem", Static).render())
        dialog.query_one("#field-workload", Input).value = "softmax"
        await pilot.press("enter")
        await until(lambda: str(mine) in place(app).query_one("#heading", TitleRow).text)
        assert "simd is there already" in text(app)
        await until(lambda: f"LOOKEDFOR{mine}:softmax,c" in "".join(text(app, "hit_view").split()))
        mine.unlink()
        await pilot.press("v")
        await until(lambda: f"cannot read {mine}" in place(app).found_view.placeholder)
        assert "asks for something else" in place(app).found_view.placeholder


async def test_cards_are_written_as_skills_and_as_training_records(
    library: Library, workspace: Workspace, own_folders: Path, tmp_path: Path
) -> None:
    app = app_on(workspace, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(lambda: app.walk is not None)
        await pilot.press("4")
        await shown(app)
        for form, to in (("each", tmp_path / "skills"), ("jsonl", tmp_path / "cards.jsonl")):
            await pilot.press("x")
            await until(lambda: ready(app, ExportDialog))
            app.screen.query_one("#export-form", Input).value = form
            app.screen.query_one("#export-to", Input).value = str(to)
            await pilot.pause()
            await pilot.press("enter")
            await until(lambda to=to: str(to) in said(app))
    assert (tmp_path / "skills" / "c-vector-types" / "SKILL.md").is_file()
    record = json.loads((tmp_path / "cards.jsonl").read_text().splitlines()[0])
    assert record["kind"] == "card"
    where = record["provenance"]
    assert where["library"] == library.path.name
    assert where["revision"] == library.entry(record["card"]["id"]).revision


def test_lineages_that_training_records_lack_are_named(library: Library, tmp_path: Path) -> None:
    card = library.get(CARD)
    gone = replace(card.evidence[0], lineage="gone", key="e99", commit="a" * 40)
    library.save(replace(card, evidence=(*card.evidence, gone)))
    told = export(library, [CARD], "jsonl", str(tmp_path / "cards.jsonl"))
    assert "left out: gone: " in told


async def test_from_nothing_to_lifted_cards(workspace: Workspace, own_folders: Path) -> None:
    app = app_on(workspace, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(lambda: app.walk is not None)
        await pilot.press("4")
        await shown(app)
        assert "No cards yet" in place(app).found_view.placeholder
        await pilot.press("3")
        await until(lambda: isinstance(app.screen, CardsScreen) and not app.screen._reading)
        assert f"L lifts them from what is sealed: {LINEAGE}" in app.screen.queue_view.placeholder  # type: ignore[attr-defined]
        await pilot.press("L")
        await until(lambda: ready(app, LiftDialog))
        await pilot.press("escape")
        assert Library.of(workspace).cards() == ()
        await pilot.press("2")
        await until(lambda: app.screen.PLACE == "history" and app.screen.why_not("lift") == "")  # type: ignore[attr-defined]
        await pilot.press("L")
        await until(lambda: ready(app, LiftDialog))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen._queue.items != ())
    assert CARD in {entry.id for entry in Library.of(workspace).cards()}


async def test_a_pull_asks_whose_words_to_take_where_both_sides_changed_them(
    library: Library, workspace: Workspace, own_folders: Path, tmp_path: Path
) -> None:
    other = Library.of(Workspace.create(tmp_path / "other"))
    app = app_on(workspace, own_folders)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(lambda: app.walk is not None)
        other_path = str(workspace.path)
        from klineage.skill.library.git import GitShelf
        from klineage.skill.library.pull import pull

        assert isinstance(other.shelf, GitShelf)
        pull(other.shelf, other_path)
        other.save(replace(other.get(CARD), intent="Theirs", notes="more"), "Bo", "said better")
        library.save(replace(library.get(CARD), intent="Ours"), "Ann", "said shorter")
        await pilot.press("3")
        await until(lambda: isinstance(app.screen, CardsScreen) and app.screen._queue.items != ())
        await pilot.press("P")
        await until(lambda: ready(app, PullDialog))
        app.screen.query_one(Input).value = str(tmp_path / "other")
        await pilot.press("enter")
        await until(lambda: ready(app, Choose))
        assert library.get(CARD).intent == "Ours", "nothing happens before a side is taken"
        await pilot.press("down", "enter")
        await until(lambda: "1 changed" in said(app))
    assert (library.get(CARD).intent, library.get(CARD).notes) == ("Theirs", "more")
    other.close()


async def test_every_place_is_one_key_away(workspace: Workspace, own_folders: Path) -> None:
    keys = ("4", "3", "1", "4", "2", "3")
    places = {"1": "induce", "2": "history", "3": "cards", "4": "library"}
    app = app_on(workspace, own_folders)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: app.walk is not None)
        for key in keys:
            await pilot.press(key)
            await until(lambda key=key: getattr(app.screen, "PLACE", "") == places[key])
    assert app._session.places == {str(workspace.path.resolve()): places[keys[-1]]}


def test_rows_name_what_a_near_miss_needs(library: Library) -> None:
    rows = [row_of(entry.card) for entry in library.cards() if entry.card is not None]
    index = index_of(rows)
    got = retrieve(index, Target("gemm", "c", "cpu-x86-64-v3", ()), hypotheses=True)
    found = Found("gemm", got.hits, got.near, total=len(index), problems=("c.x.md:3: broken\x1b[31m",))
    for cells in (40, 90):
        shown = result_rows(found, cells)
        assert len(shown.lines) == len(shown.ids)
        assert all(len(line.text) <= cells and "\x1b" not in line.text for line in shown.lines)
        assert [shown.ids[i] for i in sorted(shown.selectable)] == [h.row.id for h in (*got.hits, *got.near)]
    assert "BROKEN  c.x.md:3: broken" in shown.lines[-1].text
    assert "HOLDS HERE" in shown.lines[0].text
    nowhere = Need("anchor", "a place of its kind", "its anchor is nowhere in this kernel")
    first = Need("requires", "simd", "the kernel has no simd")
    near = replace((*got.near, *got.hits)[0], needs=(first, nowhere))
    said = "\n".join(line.text for line in result_rows(Found("gemm", (), (near,)), 90).lines)
    assert "  needs simd; its anchor is nowhere in this kernel" in said
    listed = result_rows(replace(found, names_target=False), 90)
    assert listed.ids[0] and not any("HOLDS HERE" in line.text for line in listed.lines)
    for hit in (*got.hits, *got.near):
        said = "\n".join(line.text for line in hit_lines(hit, 60))
        assert all(f"{match.dimension} " in said for match in hit.matches)
        assert ("NOT YET" in said) == bool(hit.needs)


def test_queries() -> None:
    with pytest.raises(KlineageError, match="no language"):
        checked_query(Query(surface="basic"))
    with pytest.raises(KlineageError, match="platform"):
        checked_query(Query(platform="my computer"))
    with pytest.raises(KlineageError, match=r"no kernel 'nowhere\.c'"):
        checked_query(Query(kernel="nowhere.c"), ("gemm-c",))
    with pytest.raises(KlineageError, match="its own language"):
        checked_query(Query(kernel="gemm-c", surface="c"), ("gemm-c",))
    with pytest.raises(KlineageError, match="its own workload"):
        checked_query(Query(kernel="gemm-c", workload="gemm"), ("gemm-c",))
    assert checked_query(Query(kernel="gemm-c", platform="nvidia-sm90"), ("gemm-c",)).names_target
    assert not Query(words="simd").names_target and Query(prior="none").names_target
    empty = Found("any kernel")
    keys = {"library-pull": "P", "lift": "L", "library-all": "v", "library-search": "/"}
    assert "No cards yet" in nothing_found(empty, keys, hypotheses=False)
    assert "v shows the 3 hypotheses" in nothing_found(
        replace(empty, total=3, hidden=3), keys, hypotheses=False
    )
    assert "No admitted card says anything of this." in nothing_found(
        replace(empty, total=3, hidden=3, names_target=False), keys, hypotheses=False
    )
    assert "asks for something else" in nothing_found(replace(empty, total=3), keys, hypotheses=True)


def test_words_are_looked_for_everywhere(library: Library) -> None:
    row = row_of(library.get(CARD))
    assert has_words(row, "vector SIMD") and has_words(row, "") and not has_words(row, "vector gpu")
