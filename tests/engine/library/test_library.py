"""A library in a workspace and in a folder: reading, saving, two editors, history, undo."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Moved, Workspace
from klineage.lineage.lock import writing
from klineage.skill.card import Evidence, Risk
from klineage.skill.file import parse, render
from klineage.skill.library import Library, report_name

from .some_cards import PREFETCH, named

Plain = Callable[..., str]


def test_a_saved_card_is_what_any_reader_finds(library: Library, workspace: Workspace, plain: Plain) -> None:
    assert library.cards() == ()
    revision = library.save(PREFETCH, "Bo Reviewer", "seen in gemm\n\nand in fmha")
    fresh = Library.open(workspace.path)
    (entry,) = fresh.cards()
    assert (entry.card, entry.problem, entry.revision) == (PREFETCH, "", revision)
    assert fresh.stamps() == {"c.prefetch": revision}
    assert plain(workspace.path, "show", "library:cards/c.prefetch.md").encode() == render(PREFETCH)
    assert plain(workspace.path, "log", "-1", "--format=%an|%cn|%s", "library") == (
        "Bo Reviewer|Ann Curator|Add c.prefetch\n"
    )
    assert "Library-Kind: edit\n" in plain(workspace.path, "log", "-1", "--format=%(trailers)", "library")
    fresh.close()


def test_the_work_tree_and_the_index_are_never_touched(
    library: Library, workspace: Workspace, plain: Plain
) -> None:
    (workspace.path / "cards").mkdir()
    (workspace.path / "cards" / "c.prefetch.md").write_text("mine")
    library.save(PREFETCH)
    assert (workspace.path / "cards" / "c.prefetch.md").read_text() == "mine"
    assert plain(workspace.path, "status", "--porcelain") == "?? cards/\n"
    assert plain(workspace.path, "symbolic-ref", "HEAD") == "refs/heads/main\n"


def test_an_edit_keeps_what_a_person_wrote_around_it(library: Library) -> None:
    written = render(PREFETCH).replace(b"intent:", b"# a remark\nintent:").replace(b"\n", b"\r\n")
    first = library.save_source("c.prefetch", written, "Ann", "by hand")
    library.save(replace(library.get("c.prefetch"), locus="for"), expected=first)
    assert library.source("c.prefetch") == written.replace(b"locus: function", b"locus: for")


def test_of_two_editors_the_second_is_told_who_was_first(library: Library, workspace: Workspace) -> None:
    revision = library.save(PREFETCH)
    other = Library.open(workspace.path)
    seen = other.entry("c.prefetch").revision
    library.save(replace(PREFETCH, intent="Fetch early"), "Bo", expected=revision)
    with pytest.raises(Moved, match=r"Bo has changed c\.prefetch meanwhile \(Edit c\.prefetch: intent\)"):
        other.save(replace(PREFETCH, intent="Fetch late"), "Cy", expected=seen)
    assert other.get("c.prefetch").intent == "Fetch early"
    with pytest.raises(Moved, match=r"there is a card c\.prefetch already; .* take another id"):
        other.save(PREFETCH, expected="")
    with pytest.raises(Moved, match=r"no card c\.other here"):
        other.save(named("c.other"), expected=seen)
    other.close()


def test_what_others_save_at_once_is_not_taken_for_ones_own(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Library(library.shelf, library.path)
    commit = library.shelf.commit  # type: ignore[union-attr]

    def and_then_another(plan: object) -> str:
        made = str(commit(plan))  # type: ignore[arg-type]
        monkeypatch.undo()
        other.update("c.prefetch", lambda card: replace(card, intent="Fetch early"))
        return made

    monkeypatch.setattr(library.shelf, "commit", and_then_another)
    revision = library.save(PREFETCH)
    assert library.get("c.prefetch").intent == "Fetch early"
    with pytest.raises(Moved):
        library.save(replace(PREFETCH, intent="Fetch late"), expected=revision)


def test_an_edit_of_one_card_is_no_matter_of_another(library: Library) -> None:
    revisions = {card.id: library.save(card) for card in (PREFETCH, named("c.unroll"))}
    library.save(named("c.unroll", locus="for"))
    library.save(replace(PREFETCH, locus="for"), expected=revisions["c.prefetch"])
    assert [entry.card and entry.card.locus for entry in library.cards()] == ["for", "for"]


def test_saving_the_same_again_makes_no_revision(library: Library) -> None:
    revision = library.save(PREFETCH)
    assert library.save(PREFETCH, "Bo", "again", expected=revision) == revision
    assert len(library.history("c.prefetch")) == 1


def test_many_cards_and_their_reports_are_one_commit(
    library: Library, workspace: Workspace, plain: Plain
) -> None:
    report = json.dumps({"gate": "pass"})
    shown = Evidence("e3", "trial", report=report_name(report))
    cards = [named(f"c.n{number}", evidence=(shown,)) for number in range(8)]
    library.save_all(cards, "Ann", "a lift", title="Lift gemm", reports=[report, report])
    assert [entry.card for entry in library.cards()] == cards
    assert library.reports() == {shown.report}
    assert json.loads(library.report(shown.report)) == {"gate": "pass"}
    assert plain(workspace.path, "rev-list", "--count", "library") == "2\n"
    with pytest.raises(KlineageError, match="no report"):
        library.report("x.json")


def test_update_changes_whatever_is_there_by_now(library: Library) -> None:
    library.save(PREFETCH)
    other = Library(library.shelf, library.path)
    library.save(replace(PREFETCH, intent="Fetch early"))
    risk = Risk("none was found", "none-found", "probe")
    card = other.update("c.prefetch", lambda now: replace(now, risks=(*now.risks, risk)), machine=True)
    assert (card.intent, card.risks[-1]) == ("Fetch early", risk)
    with pytest.raises(KlineageError, match=r"no card 'c\.other'"):
        library.update("c.other", lambda now: now)


def test_history_says_who_and_why(library: Library) -> None:
    library.save(PREFETCH, "Ann", "first")
    library.save(named("c.unroll"), "Ann", "another card")
    library.save(replace(PREFETCH, intent="Fetch early"), "Bo", "say it\n\nLibrary-Kind: undo")
    newest, oldest = library.history("c.prefetch")
    assert (newest.who, newest.title, newest.kind) == ("Bo", "Edit c.prefetch: intent", "edit")
    assert newest.reason == "say it\n\nLibrary-Kind: undo"
    assert (oldest.reason, oldest.revision != newest.revision) == ("first", True)
    assert newest.revision == library.entry("c.prefetch").revision
    assert parse(library.at("c.prefetch", oldest.commit), "c.prefetch.md") == PREFETCH
    with pytest.raises(KlineageError, match="never was a card"):
        library.history("c.never")


def test_undo_and_redo_across_restarts(library: Library, workspace: Workspace) -> None:
    assert library.undoable() == ""
    library.save(PREFETCH)
    library.save(replace(PREFETCH, intent="Fetch early"))
    assert library.undo("Bo") == "Edit c.prefetch: intent"
    again = Library.open(workspace.path)
    assert again.get("c.prefetch") == PREFETCH
    assert (again.undoable(), again.redoable()) == ("Add c.prefetch", "Edit c.prefetch: intent")
    assert again.undo() == "Add c.prefetch"
    assert again.cards() == ()
    with pytest.raises(KlineageError, match="nothing to undo"):
        again.undo()
    assert [again.redo(), again.redo()] == ["Add c.prefetch", "Edit c.prefetch: intent"]
    assert again.get("c.prefetch").intent == "Fetch early"
    again.undo()
    again.save(named("c.unroll"))
    assert again.redoable() == ""
    assert [entry.kind for entry in again.history()][:2] == ["edit", "undo"]
    again.close()


def test_undo_passes_over_what_machines_added(library: Library) -> None:
    library.save(PREFETCH)
    library.save(replace(PREFETCH, intent="Fetch early"))
    risk = Risk("it was slower", "observed", "probe")
    library.update("c.prefetch", lambda now: replace(now, risks=(*now.risks, risk)), machine=True)
    assert library.undo() == "Edit c.prefetch: intent"
    assert library.get("c.prefetch") == replace(PREFETCH, risks=(*PREFETCH.risks, risk))
    with pytest.raises(KlineageError, match="has grown since"):
        library.undo()
    assert library.get("c.prefetch").risks[-1] == risk


def test_undo_names_the_field_that_was_edited_since(library: Library) -> None:
    library.save(PREFETCH)
    library.save(replace(PREFETCH, intent="Fetch early"))
    library.update("c.prefetch", lambda now: replace(now, intent="Fetch never"), machine=True)
    with pytest.raises(KlineageError, match=r"intent of c\.prefetch has been edited since"):
        library.undo()
    assert library.get("c.prefetch").intent == "Fetch never"


def test_a_broken_card_is_named_and_the_rest_opens(
    library: Library, workspace: Workspace, plain: Plain
) -> None:
    library.save_all([PREFETCH, named("c.unroll")])
    plain(workspace.path, "worktree", "add", "-q", str(workspace.path.parent / "tree"), "library")
    tree = workspace.path.parent / "tree"
    broken = tree / "cards" / "c.unroll.md"
    broken.write_bytes(broken.read_bytes().replace(b"intent:", b"intnet:"))
    (tree / "cards" / "Bad Name.md").write_text("---\n")
    (tree / "cards" / "c.link.md").symlink_to("c.prefetch.md")
    plain(tree, "add", "-A")
    plain(tree, "commit", "-qm", "By hand")
    found = {entry.id: entry for entry in library.cards()}
    assert found["c.prefetch"].card == PREFETCH
    assert {key for key, entry in found.items() if entry.card is None} == {"c.unroll", "Bad Name", "c.link"}
    assert "cards/c.unroll.md:4: " in found["c.unroll"].problem
    assert "intnet" in found["c.unroll"].problem
    assert "a link" in found["c.link"].problem
    with pytest.raises(KlineageError, match="intnet"):
        library.get("c.unroll")
    with pytest.raises(KlineageError, match="intnet"):
        library.save(named("c.unroll", locus="for"))
    library.save_source("c.unroll", render(named("c.unroll")), expected=found["c.unroll"].revision)
    assert library.history("c.unroll")[0].title == "Mend c.unroll"
    assert library.undoable() == "Mend c.unroll"
    library.undo()
    assert library.undoable() == "By hand"


def test_a_card_that_is_none_is_not_saved(library: Library) -> None:
    library.save(PREFETCH)
    before = library.source("c.prefetch")
    with pytest.raises(KlineageError, match=r"c\.prefetch\.md:\d+: "):
        library.save_source("c.prefetch", before.replace(b"status: hypothesis", b"status: good"))
    with pytest.raises(KlineageError, match=r"the id is c\.prefetch"):
        library.save_source("c.other", before)
    with pytest.raises(KlineageError, match="cannot name a card"):
        library.save_source("../../config", before)
    assert library.source("c.prefetch") == before
    assert len(library.history()) == 2


def test_reading_does_not_wait_for_a_writer(library: Library, workspace: Workspace) -> None:
    library.save(PREFETCH)
    with writing(workspace.git.place, "-", lambda held: None):
        reader = Library.open(workspace.path)
        assert [entry.card for entry in reader.cards()] == [PREFETCH]
        assert reader.history("c.prefetch")
        reader.close()


def test_a_branch_of_another_purpose_is_left_alone(tmp_path: Path, plain: Plain) -> None:
    plain(tmp_path, "init", "-q", "-b", "library")
    (tmp_path / "main.c").write_text("int main;")
    plain(tmp_path, "add", "main.c")
    plain(tmp_path, "commit", "-qm", "Mine")
    library = Library.open(tmp_path)
    assert library.cards() == ()
    with pytest.raises(KlineageError, match=r"holds main\.c and no cards"):
        library.save(PREFETCH)
    assert plain(tmp_path, "log", "--format=%s", "library") == "Mine\n"
    library.close()


def test_a_branch_in_the_way_is_named(library: Library, workspace: Workspace, plain: Plain) -> None:
    tree = plain(
        workspace.path, "commit-tree", "-m", "x", plain(workspace.path, "write-tree").strip()
    ).strip()
    plain(workspace.path, "update-ref", "refs/heads/library/old", tree)
    with pytest.raises(KlineageError, match="refs/heads/library/old is in the way"):
        library.save(PREFETCH)
    assert library.cards() == ()


def test_a_folder_is_read_and_never_written(tmp_path: Path) -> None:
    for part, card in (("cpu", PREFETCH), ("gpu", named("c.unroll"))):
        (tmp_path / part / "cards").mkdir(parents=True)
        (tmp_path / part / "cards" / f"{card.id}.md").write_bytes(render(card))
    (tmp_path / "gpu" / "cards" / "c.prefetch.md").write_bytes(render(PREFETCH))
    (tmp_path / "cpu" / "cards" / "c.broken.md").write_bytes(b"---\nid: [\n---\n")
    library = Library.open(tmp_path)
    found = {entry.file: entry for entry in library.cards()}
    assert found["cpu/cards/c.prefetch.md"].card == PREFETCH
    assert found["gpu/cards/c.unroll.md"].card == named("c.unroll")
    assert "has the id c.prefetch already" in found["gpu/cards/c.prefetch.md"].problem
    assert f"{tmp_path}/cpu/cards/c.broken.md:" in found["cpu/cards/c.broken.md"].problem
    assert not library.writable
    for change in (lambda: library.save(PREFETCH), library.undo, lambda: library.history("c.prefetch")):
        with pytest.raises(KlineageError, match="klineage library pull"):
            change()
    file = tmp_path / "cpu" / "cards" / "c.prefetch.md"
    file.write_bytes(render(replace(PREFETCH, locus="for")))
    os.utime(file, ns=(1, 1))
    assert library.get("c.prefetch").locus == "for"


def test_a_carrier_of_two_megabytes_is_kept(library: Library) -> None:
    carrier = replace(PREFETCH.carrier, after="x += 1;\n" * 250_000)
    revision = library.save(replace(PREFETCH, carrier=carrier))
    library.save(replace(PREFETCH, carrier=carrier, locus="for"), expected=revision)
    assert library.get("c.prefetch").carrier == carrier
    assert [entry.title for entry in library.history("c.prefetch")] == [
        "Edit c.prefetch: locus",
        "Add c.prefetch",
    ]


@pytest.mark.parametrize("part", ["intent: ", "the code", "## After"])
def test_what_plain_git_left_of_a_merge_is_named_by_line(library: Library, part: str) -> None:
    card = replace(PREFETCH, carrier=replace(PREFETCH.carrier, before="the code\n", after="the new code\n"))
    library.save_all([card, named("c.unroll")])
    lines = library.source("c.prefetch").decode().split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(part))
    torn = [
        *lines[:at],
        "<<<<<<< HEAD",
        lines[at],
        "=======",
        lines[at] + "!",
        ">>>>>>> theirs",
        *lines[at + 1 :],
    ]
    with pytest.raises(KlineageError, match=rf"c\.prefetch\.md:{at + 1}: git left a merge conflict here"):
        library.save_source("c.prefetch", "\n".join(torn).encode())
    with pytest.raises(KlineageError, match="merge conflict"):
        library.save(replace(card, notes="\n".join(torn[at : at + 5])))
    assert library.get("c.prefetch") == card


def test_a_file_that_may_not_be_read_is_named_and_the_rest_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cards").mkdir()
    for card in (PREFETCH, named("c.unroll")):
        (tmp_path / "cards" / f"{card.id}.md").write_bytes(render(card))
    (tmp_path / "cards" / "c.new\nline.md").write_bytes(render(PREFETCH))
    read = Path.read_bytes

    def unless_closed(path: Path) -> bytes:
        if path.name == "c.unroll.md":
            raise PermissionError(13, "Permission denied")
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", unless_closed)
        library = Library.open(tmp_path)
        odd, prefetch, unroll = sorted(library.cards(), key=lambda entry: entry.file)
        assert prefetch.card == PREFETCH
        assert unroll.problem == f"cannot read {tmp_path}/cards/c.unroll.md: Permission denied"
        assert odd.card is None
    assert library.get("c.unroll") == named("c.unroll")


def test_what_was_wrong_before_does_not_bar_another_edit(library: Library) -> None:
    claim = replace(PREFETCH.preconditions[0], check="n >")
    library.save(
        replace(PREFETCH, preconditions=(claim,))
    )  # as a pull, or a hand with plain git, may bring it
    data = library.source("c.prefetch")
    library.save_source("c.prefetch", data.replace(b"Fetch the next lines", b"Fetch lines"))
    assert library.get("c.prefetch").intent.startswith("Fetch lines")
    with pytest.raises(KlineageError, match=r"c\.prefetch\.md:\d+: preconditions\.p1\.check: .*at its end"):
        library.save_source("c.prefetch", data.replace(b"check: n >", b"check: n >="))
