"""The index is the cards' files and nothing else: whatever happens to either, it says what the files say."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.lineage import Workspace
from klineage.skill.card import Card
from klineage.skill.file import render
from klineage.skill.library import Library
from klineage.skill.retrieval.index import Index, row_of
from klineage.skill.retrieval.index_file import Opened, open_index, open_indexes, source_of

from .cards_for_tests import a_card, admitted, write_library
from .strategies import cards


def opened(folder: Path, kept: Path) -> Opened:
    return open_index(source_of(Library.open(folder)), kept)


def says(index: Index) -> dict[str, str]:
    return {index.row(n).id: index.row(n).intent for n in range(len(index))}


@settings(max_examples=40, deadline=None)
@given(cards)
def test_a_row_survives_the_disk(tmp_path_factory: pytest.TempPathFactory, card: Card) -> None:
    folder = tmp_path_factory.mktemp("library")
    write_library(folder, replace(card, id="c.a"))
    first, again = opened(folder, folder / "kept"), opened(folder, folder / "kept")
    assert (first.renewed, again.renewed) == (1, 0)
    assert again.index.row(0) == first.index.row(0) == row_of(Library.open(folder).get("c.a"))
    assert again.index.columns[0].words == first.index.columns[0].words


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(("write", "break", "remove")), st.integers(0, 99)),
        max_size=8,
    )
)
def test_after_any_edits_it_is_what_a_new_index_is(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str, int]]
) -> None:
    folder = write_library(tmp_path_factory.mktemp("library"), a_card("c.z"))
    moment = 1_700_000_000
    for name, what, number in edits:
        file = folder / "cards" / f"c.{name}.md"
        if what == "remove":
            file.unlink(missing_ok=True)
        else:
            text = (
                render(replace(a_card(f"c.{name}"), intent=f"Say {number}."))
                if what == "write"
                else b"%d" % number
            )
            file.write_bytes(text)
            moment += (
                1  # file systems with a coarse clock would hide an edit of the same size in the same instant
            )
            os.utime(file, (moment, moment))
        kept = opened(folder, folder / "kept")
    kept, new = opened(folder, folder / "kept"), opened(folder, folder / "other")
    assert says(kept.index) == says(new.index)
    assert kept.problems == new.problems
    assert set(says(new.index)) | {Path(name).stem for name in new.problems} == {
        f.stem for f in (folder / "cards").iterdir()
    }


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    write_library(tmp_path, *(a_card(f"c.n{number}") for number in range(5)))
    assert opened(tmp_path, tmp_path / "kept").renewed == 5
    write_library(tmp_path, replace(a_card("c.n3"), intent="Something else entirely."))
    again = opened(tmp_path, tmp_path / "kept")
    assert again.renewed == 1
    assert says(again.index)["c.n3"] == "Something else entirely."
    assert len(again.index) == 5


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "folder"])
def test_a_damaged_index_is_built_again(tmp_path: Path, damage: str) -> None:
    write_library(tmp_path, a_card())
    first = opened(tmp_path, tmp_path / "kept")
    (file,) = (tmp_path / "kept").glob("*.index")
    data = bytearray(file.read_bytes())
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        data[len(data) // 2] ^= 1
        file.write_bytes({"cut": bytes(data[: len(data) // 2]), "flip": bytes(data), "empty": b""}[damage])
    again = opened(tmp_path, tmp_path / "kept")
    assert again.renewed == 1
    assert says(again.index) == says(first.index)


def test_a_broken_card_is_named_and_the_rest_opens(tmp_path: Path) -> None:
    write_library(tmp_path, a_card(), a_card("c.other"))
    (tmp_path / "cards" / "c.other.md").write_bytes(b"---\nschema: 1\nintetn: typo\n---\n")
    (tmp_path / "cards" / "c.link.md").symlink_to(tmp_path / "cards" / "c.prefetch.md")
    found = opened(tmp_path, tmp_path / "kept")
    assert found.index.ids == ("c.prefetch",)
    assert set(found.problems) == {"cards/c.other.md", "cards/c.link.md"}
    assert f"{tmp_path}/cards/c.other.md:" in found.problems["cards/c.other.md"]
    assert opened(tmp_path, tmp_path / "kept").problems == found.problems


def test_two_cards_of_one_id_are_named(tmp_path: Path) -> None:
    write_library(tmp_path / "cpu", a_card())
    write_library(tmp_path / "gpu", a_card())
    found = opened(tmp_path, tmp_path / "kept")
    assert found.index.ids == ("c.prefetch",)
    assert (
        "cpu/cards/c.prefetch.md has the id c.prefetch already" in found.problems["gpu/cards/c.prefetch.md"]
    )


def test_a_card_whose_id_was_taken_comes_when_the_other_goes(tmp_path: Path) -> None:
    write_library(tmp_path / "cpu", replace(a_card(), intent="On the processor."))
    write_library(tmp_path / "gpu", replace(a_card(), intent="On the accelerator."))
    assert says(opened(tmp_path, tmp_path / "kept").index) == {"c.prefetch": "On the processor."}
    (tmp_path / "cpu" / "cards" / "c.prefetch.md").unlink()
    found = opened(tmp_path, tmp_path / "kept")
    assert (says(found.index), dict(found.problems)) == ({"c.prefetch": "On the accelerator."}, {})


def test_a_card_in_a_folder_below_is_seen_and_seen_to_change(tmp_path: Path) -> None:
    write_library(tmp_path, a_card("c.a"))
    deep = tmp_path / "cards" / "by hand" / "of mine"
    deep.mkdir(parents=True)
    (deep / "c.b.md").write_bytes(render(a_card("c.b")))
    assert opened(tmp_path, tmp_path / "kept").renewed == 2
    (deep / "c.b.md").write_bytes(render(replace(a_card("c.b"), intent="Edited where it lies.")))
    found = opened(tmp_path, tmp_path / "kept")
    assert (found.renewed, says(found.index)["c.b"]) == (1, "Edited where it lies.")


def test_the_branch_of_a_workspace(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    try:
        library = Library.of(workspace)
        assert open_index(source_of(library), tmp_path / "kept").index.ids == ()
        library.save(admitted(a_card(), "gemm"), reason="new")
        first = open_index(source_of(library), tmp_path / "kept")
        assert first.index.row(0).verified.workloads == ("gemm",)
        library.save(replace(a_card(), intent="Edited."), reason="edited")
        assert says(open_index(source_of(library), tmp_path / "kept").index) == {"c.prefetch": "Edited."}
        shipped = write_library(tmp_path / "shipped", a_card(), a_card("c.simd", action="simd"))
        both = open_indexes([library, Library.open(shipped)], tmp_path / "kept")
        assert says(both.index) == {"c.prefetch": "Edited.", "c.simd": "Put simd on the loop that needs it."}
    finally:
        workspace.close()


def test_a_file_that_may_not_be_read_is_asked_again_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_library(tmp_path, a_card("c.a"), a_card("c.b"))
    read = Path.read_bytes

    def unless_closed(path: Path) -> bytes:
        if path.name == "c.b.md":
            raise PermissionError(13, "Permission denied")
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", unless_closed)
        for _ in range(2):
            found = opened(folder, tmp_path / "kept")
            assert set(says(found.index)) == {"c.a"}
            assert "c.b.md: Permission denied" in found.problems["cards/c.b.md"]
    again = opened(folder, tmp_path / "kept")
    assert (set(says(again.index)), dict(again.problems), again.renewed) == ({"c.a", "c.b"}, {}, 1)


def test_a_name_that_is_no_utf8_is_a_problem_each_time(tmp_path: Path) -> None:
    folder = write_library(tmp_path, a_card("c.a"))
    try:
        (folder / "cards" / os.fsdecode(b"c.\xff.md")).write_bytes(b"")
    except OSError:
        pytest.skip("names are UTF-8 here")
    for renewed in (2, 1):
        found = opened(folder, tmp_path / "kept")
        assert (set(says(found.index)), len(found.problems), found.renewed) == ({"c.a"}, 1, renewed)
