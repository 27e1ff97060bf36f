"""Bringing cards from folders and other workspaces: what comes, what conflicts, what is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Meta, StepRecord, Workspace, bundle_create, bundle_open
from klineage.skill.card import Card, Evidence, Risk
from klineage.skill.file import render
from klineage.skill.library import Library, report_name
from klineage.skill.library.folder_write import write_folder
from klineage.skill.library.git import GitShelf
from klineage.skill.library.pull import Choice, Conflicts, Pulled, pull
from klineage.walk import trust

from .some_cards import PREFETCH, named

Plain = Callable[..., str]


@pytest.fixture
def theirs(tmp_path: Path) -> Library:
    """The library of another workspace, beside ours, with a card in it."""
    library = Library.of(Workspace.create(tmp_path / "theirs"))
    library.save(PREFETCH, "Bo")
    return library


def bring(library: Library, source: Library | Path, taken: Choice | None = None) -> Pulled:
    assert isinstance(library.shelf, GitShelf)
    return pull(library.shelf, str(source.path if isinstance(source, Library) else source), taken=taken)


def folder_of(path: Path, *cards: Card) -> Path:
    (path / "cards").mkdir(parents=True, exist_ok=True)
    for card in cards:
        (path / "cards" / f"{card.id}.md").write_bytes(render(card))
    return path


def test_a_pull_brings_the_cards_with_their_history(library: Library, theirs: Library, plain: Plain) -> None:
    theirs.save(replace(PREFETCH, intent="Fetch early"), "Bo", "it was vague")
    pulled = bring(library, theirs)
    assert (pulled.added, pulled.changed, pulled.lineages) == (("c.prefetch",), (), ())
    assert [
        problem.startswith("the lineage gemm, which cards of theirs cite, did not come")
        for problem in pulled.problems
    ] == [True]
    assert library.source("c.prefetch") == theirs.source("c.prefetch")
    assert [entry.reason for entry in library.history("c.prefetch")] == ["it was vague", ""]
    assert bring(library, theirs).commit == pulled.commit
    assert library.undo().startswith("Pull theirs")
    assert library.cards() == ()
    assert bring(library, theirs).added == ("c.prefetch",)
    plain(library.path, "fsck", "--strict", "--no-dangling")


def test_libraries_that_went_apart_come_together(library: Library, theirs: Library) -> None:
    bring(library, theirs)
    library.save(replace(PREFETCH, intent="Fetch early"))
    library.save(named("c.ours"))
    before = library.source("c.prefetch")
    theirs.save(replace(PREFETCH, risks=(*PREFETCH.risks, Risk("slow"))))
    theirs.save(named("c.theirs"))
    assert bring(library, theirs).changed == ("c.prefetch",)
    assert [entry.id for entry in library.cards()] == ["c.ours", "c.prefetch", "c.theirs"]
    merged = library.get("c.prefetch")
    assert (merged.intent, merged.risks[-1]) == ("Fetch early", Risk("slow"))
    log = library.history("c.prefetch")
    assert library.before("c.prefetch", log[0]) == before  # what the merge found here, not what was told last
    assert library.before("c.prefetch", log[-1]) == b""
    assert bring(theirs, library).changed == ("c.prefetch",)
    assert theirs.stamps() == library.stamps()
    tips = [side.history()[0].commit for side in (library, theirs)]
    for side, other in ((library, theirs), (theirs, library)):
        bring(side, other)
    assert [side.history()[0].commit for side in (library, theirs)] == tips  # no pull of a pull of a pull
    theirs.save(replace(theirs.get("c.prefetch"), intent="Fetch later"))
    bring(library, theirs)
    assert library.get("c.prefetch").intent == "Fetch later"


def test_conflicts_are_named_card_by_card_and_field_by_field(library: Library, theirs: Library) -> None:
    theirs.save(named("c.unroll"))
    bring(library, theirs)
    for side, word in ((library, "our"), (theirs, "their")):
        claims = (replace(PREFETCH.preconditions[0], text=f"{word} claim"), PREFETCH.preconditions[1])
        effects = (replace(PREFETCH.effects[0], gain=1.25 if word == "our" else 1.35),)
        side.save(replace(PREFETCH, intent=f"{word} intent", preconditions=claims))
        side.save(named("c.unroll", effects=effects))
    before = library.stamps()
    with pytest.raises(
        Conflicts, match=r"c\.prefetch: intent, c\.prefetch: preconditions\.p1\.text, c\.unroll"
    ) as raised:
        bring(library, theirs)
    assert library.stamps() == before
    found = {f"{item.card}:{item.conflict.field}": item for item in raised.value.conflicts}
    gain = "c.unroll:effects.time/in-order/gemm/cpu-x86-64-v3.gain"
    assert list(found) == ["c.prefetch:intent", "c.prefetch:preconditions.p1.text", gain]
    for item in found.values():
        line = library.source(item.card).decode().splitlines()[item.line - 1]
        assert item.conflict.ours in line
    assert (found[gain].conflict.ours, found[gain].conflict.theirs) == ("1.25", "1.35")
    with pytest.raises(Conflicts) as fewer:
        bring(library, theirs, {"c.prefetch:intent": "theirs", "c.unroll": "ours"})
    assert [item.conflict.field for item in fewer.value.conflicts] == ["preconditions.p1.text"]
    bring(library, theirs, {"c.prefetch:intent": "theirs", "*": "ours"})
    merged = library.get("c.prefetch")
    assert (merged.intent, merged.preconditions[0].text) == ("their intent", "our claim")
    assert library.get("c.unroll").effects[0].gain == 1.25
    assert bring(library, theirs).changed == ()


def test_a_folder_is_pulled_again_from_where_it_was(library: Library, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "shared", PREFETCH, named("c.unroll"))
    assert bring(library, source).added == ("c.prefetch", "c.unroll")
    library.save(replace(PREFETCH, intent="Fetch early"))
    folder_of(source, replace(PREFETCH, locus="for"), named("c.new"))
    (source / "cards" / "c.unroll.md").unlink()
    pulled = bring(library, source)
    assert (pulled.added, pulled.changed) == (("c.new",), ("c.prefetch",))
    assert (library.get("c.prefetch").intent, library.get("c.prefetch").locus) == ("Fetch early", "for")
    assert library.get("c.unroll") == named("c.unroll")
    assert bring(library, source).commit == pulled.commit
    assert [library.undo(), library.undo()] == ["Pull shared: 1 new, 1 changed", "Edit c.prefetch: intent"]
    assert bring(library, source).added == ("c.new",)


def test_a_pull_is_taken_back_but_for_what_has_grown_since(library: Library, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "shared", PREFETCH, named("c.unroll"), named("c.simd"))
    bring(library, source)
    risk = Risk("it was slower", "observed", "probe")
    library.update(
        "c.simd", lambda card: replace(card, risks=(risk,)), title="Probe p1 of c.simd", machine=True
    )
    said = library.undo()
    assert said.startswith(
        "Pull shared: 3 new, 0 changed; but not all: c.simd has grown since (Probe p1 of c.simd, by "
    )
    assert "klineage card retire c.simd" in said
    assert [entry.id for entry in library.cards()] == ["c.simd"]
    assert library.history()[0].reason.startswith("c.simd has grown since")
    with pytest.raises(KlineageError, match="nothing to undo"):
        library.undo()
    assert library.redo().startswith(
        "Pull shared: 3 new, 0 changed; but not all: c.simd has been changed since"
    )
    assert [entry.id for entry in library.cards()] == ["c.prefetch", "c.simd", "c.unroll"]
    library.undo()
    assert bring(library, source).added == ("c.prefetch", "c.unroll")
    assert library.get("c.simd").risks[0] == risk


def test_an_old_copy_of_our_card_changes_nothing(library: Library, tmp_path: Path) -> None:
    library.save(PREFETCH)
    library.save(replace(PREFETCH, intent="Fetch early"))
    assert bring(library, folder_of(tmp_path / "old", PREFETCH)).changed == ()
    assert library.get("c.prefetch").intent == "Fetch early"


def test_what_is_broken_there_is_left_out_by_name(library: Library, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "shared", PREFETCH, named("c.unroll"))
    broken = source / "cards" / "c.unroll.md"
    broken.write_bytes(broken.read_bytes().replace(b"intent:", b"intnet:"))
    (source / "cards" / "c.link.md").symlink_to("/etc/hostname")
    (source / "cards" / "c.odd\nname.md").write_bytes(b"")
    (source / "reports").mkdir()
    (source / "reports" / "0000000000000000.json").write_text("{}")
    pulled = bring(library, source)
    assert pulled.added == ("c.prefetch",)
    order = ("c.link", "reports", "c.unroll", "c.odd", "gemm")
    link, report, card, odd, lineage = sorted(
        pulled.problems, key=lambda text: next(n for n, part in enumerate(order) if part in text)
    )
    assert "cannot name a card" in odd
    assert lineage.endswith("did not come: shared has no bundle of it")
    assert not any("left as it is" in problem for problem in pulled.problems)  # it was not here
    assert "c.link.md is a link" in link
    assert "reports/0000000000000000.json of shared is not what its name says" in report
    assert "shared: cards/c.unroll.md:4: " in card


def test_a_broken_card_of_ours_is_left_as_it_is(library: Library, theirs: Library, plain: Plain) -> None:
    bring(library, theirs)
    tree = library.path.parent / "tree"
    plain(library.path, "worktree", "add", "-q", str(tree), "library")
    (tree / "cards" / "c.prefetch.md").write_text("---\nid: [\n---\n")
    plain(tree, "commit", "-qam", "Break it")
    theirs.save(replace(PREFETCH, intent="Fetch early"))
    theirs.save(named("c.unroll"))
    pulled = bring(library, theirs)
    assert pulled.added == ("c.unroll",)
    assert "cards/c.prefetch.md:" in pulled.problems[0]
    assert library.source("c.prefetch") == b"---\nid: [\n---\n"


def test_reports_and_lineages_come_along(library: Library, theirs: Library, tmp_path: Path) -> None:
    commit = _lineage(theirs)
    shown = Evidence("e1", "transition", "gemm", commit, report=report_name("{}"))
    theirs.save(named("c.shown", evidence=(shown,), status="admitted"), reports=["{}"])
    theirs.save(PREFETCH)
    written = write_folder(theirs, tmp_path / "shipped", ("admitted",))
    assert (written.cards, written.reports, written.lineages, written.problems) == (
        ("c.shown",),
        1,
        ("gemm",),
        (),
    )
    bundle = (tmp_path / "shipped" / "bundles" / "gemm.bundle").read_bytes()
    write_folder(theirs, tmp_path / "shipped", ("admitted",))
    assert (tmp_path / "shipped" / "bundles" / "gemm.bundle").read_bytes() == bundle
    folder = Library.open(tmp_path / "shipped")
    assert folder.dangling([folder.get("c.shown")]) == ()
    with folder.lineage("gemm") as inside:
        assert inside.read(commit)["kernel.c"] == b"int x;"
    for source in (folder, theirs):
        into = Library.of(Workspace.create(tmp_path / f"into-{source.path.name}"))
        pulled = bring(into, source)
        assert "gemm" in pulled.lineages
        assert into.report(shown.report) == b"{}"
        assert into.dangling([into.get("c.shown")]) == ()
        assert bring(into, source).lineages == ()
        into.close()
    lost = library.dangling(
        [named("c.shown", evidence=(shown, replace(shown, key="e2", report="", lineage="none")))]
    )
    assert [(item.key, "none" in item.why) for item in lost] == [("e1", False), ("e1", False), ("e2", True)]


def _lineage(library: Library, source: bytes = b"int x;") -> str:
    meta = Meta("gemm", "GEMM", "c", "cpu-x86-64-v3", "gemm", "kernel.c", "gemm")
    files = {"kernel.c": source, "workload.py": b""}
    return workspace_of(library).new(meta, files, record=StepRecord("Open")).commit


def workspace_of(library: Library) -> Workspace:
    assert isinstance(library.shelf, GitShelf)
    return library.shelf.workspace


def citing(lineage: str, commit: str) -> tuple[Evidence, ...]:
    return (Evidence("e1", "transition", lineage, commit),)


def test_a_lineage_whose_name_is_taken_comes_under_another(
    library: Library, theirs: Library, tmp_path: Path, plain: Plain
) -> None:
    own, other = _lineage(library), _lineage(theirs, b"int y;")
    theirs.save(named("c.theirs", evidence=citing("gemm", other)))
    library.save(named("c.ours", evidence=citing("gemm", own)))
    pulled = bring(library, theirs)
    assert (pulled.lineages, pulled.renamed, len(pulled.problems)) == (("gemm-2",), {"gemm-2": "gemm"}, 0)
    assert library.get("c.theirs").evidence == citing("gemm-2", other)
    assert library.get("c.ours").evidence == citing("gemm", own)
    cards = [library.get(name) for name in ("c.ours", "c.theirs")]
    assert library.dangling(cards) == ()
    here = workspace_of(library)
    assert (here.head("gemm").commit, here.head("gemm-2").commit) == (own, other)
    assert bring(library, theirs).commit == pulled.commit

    went = bring(theirs, library)
    assert (went.lineages, went.renamed) == (("gemm-2",), {"gemm-2": "gemm"})
    assert theirs.get("c.theirs").evidence == citing("gemm", other)
    assert theirs.get("c.ours").evidence == citing("gemm-2", own)
    assert (bring(library, theirs).changed, library.get("c.theirs").evidence) == ((), citing("gemm-2", other))

    write_folder(library, tmp_path / "shared", ("hypothesis",))
    folder = Library.open(tmp_path / "shared")
    assert [entry.name for entry in sorted((tmp_path / "shared" / "bundles").iterdir())] == [
        "gemm-2.bundle", "gemm.bundle",
    ]  # fmt: skip
    third = Library.of(Workspace.create(tmp_path / "third"))
    assert {item.card for item in folder.dangling(cards)} == set()
    assert set(bring(third, folder).lineages) == {"gemm", "gemm-2"}
    assert third.dangling([third.get("c.ours"), third.get("c.theirs")]) == ()
    assert bring(theirs, folder).lineages == ()
    plain(library.path, "gc", "--quiet", "--prune=now")
    plain(library.path, "fsck", "--strict", "--no-dangling")
    assert library.dangling(cards) == ()
    third.close()


def test_a_pull_that_is_stopped_goes_on_where_it_was(
    library: Library, theirs: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lineage(library)
    other = _lineage(theirs, b"int y;")
    theirs.save(named("c.theirs", evidence=citing("gemm", other)))
    with monkeypatch.context() as stopped:
        stopped.setattr(GitShelf, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            bring(library, theirs)
    assert library.cards() == ()
    assert bring(library, theirs).added == ("c.prefetch", "c.theirs")
    assert library.get("c.theirs").evidence == citing("gemm-2", other)
    assert {summary.id for summary in workspace_of(library).lineages()} == {"gemm", "gemm-2"}


def test_a_lineage_under_another_name_goes_on_like_any_other(
    library: Library, theirs: Library, tmp_path: Path
) -> None:
    _lineage(library)
    theirs.save(named("c.theirs", evidence=citing("gemm", _lineage(theirs, b"int y;"))))
    bring(library, theirs)
    here = workspace_of(library)
    meta = replace(here.meta(here.head("gemm-2").commit), id="gemm-2", flags=("-O1",))
    step = here.accept("gemm-2", StepRecord("Remove it"), {"kernel.c": b"int;"}, meta=meta)
    here.add_report(step.commit, "{}", "gemm-2")
    here.reject("gemm-2", StepRecord("Remove more"), {"kernel.c": b""})
    assert here.undo("gemm-2").startswith("reject")
    assert [len(here.operations(name)) for name in ("gemm", "gemm-2")] == [1, 4]
    bundle_create(here, "gemm-2", tmp_path / "carried.bundle")
    third = Workspace.create(tmp_path / "third")
    assert bundle_open(tmp_path / "carried.bundle", third) == "gemm"
    assert [each.subject for each in third.history("gemm")] == ["Open", "Remove it"]
    assert third.reports(step.commit) == ["{}"]
    with pytest.raises(KlineageError, match="--as NAME"):
        bundle_open(tmp_path / "carried.bundle", here)
    third.close()


def test_an_untouched_copy_goes_on_with_its_source_and_a_touched_one_stays(
    library: Library, theirs: Library, plain: Plain
) -> None:
    there, here = workspace_of(theirs), workspace_of(library)
    theirs.save(named("c.first", evidence=citing("gemm", _lineage(theirs))))
    bring(library, theirs)
    tried = there.reject("gemm", StepRecord("Remove it all"), {"kernel.c": b""})
    step = there.accept("gemm", StepRecord("Remove it"), {"kernel.c": b"int;"})
    theirs.save(named("c.second", evidence=citing("gemm", step.commit)))
    assert bring(library, theirs).lineages == ("gemm",)
    assert (here.head("gemm").commit, here.rejected("gemm")[0].commit) == (step.commit, tried.commit)
    assert here.operations("gemm") == there.operations("gemm")
    there.undo("gemm")
    there.undo("gemm")
    other = there.accept("gemm", StepRecord("Remove that"), {"kernel.c": b"int y;"})
    theirs.save(named("c.third", evidence=citing("gemm", other.commit)))
    assert bring(library, theirs).lineages == ("gemm",)
    assert (here.head("gemm").commit, here.rejected("gemm")) == (other.commit, [])
    cards = [library.get(f"c.{name}") for name in ("first", "second", "third")]
    assert library.dangling(cards) == ()  # what was undone is remembered, too

    here.reject("gemm", StepRecord("Remove mine"), {"kernel.c": b"mine"})
    last = there.accept("gemm", StepRecord("Remove more"), {"kernel.c": b"i"})
    theirs.save(named("c.fourth", evidence=citing("gemm", last.commit)))
    assert bring(library, theirs).lineages == ("gemm-2",)
    assert here.head("gemm").commit == other.commit
    assert library.get("c.fourth").evidence == citing("gemm-2", last.commit)
    plain(library.path, "fsck", "--strict", "--no-dangling")


def test_a_later_version_of_a_trusted_lineage_is_not_trusted_by_itself(
    library: Library, theirs: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    there, here = workspace_of(theirs), workspace_of(library)
    theirs.save(named("c.theirs", evidence=citing("gemm", _lineage(theirs))))
    bring(library, theirs)
    trust.trust(here, "gemm")
    later = there.accept("gemm", StepRecord("Remove it"), {"kernel.c": b"int evil;"})
    theirs.save(named("c.more", evidence=citing("gemm", later.commit)))
    assert bring(library, theirs).lineages == ("gemm-2",)
    assert library.get("c.more").evidence == citing("gemm-2", later.commit)
    assert library.dangling([library.get(name) for name in ("c.more", "c.theirs")]) == ()
    assert [trust.is_trusted(here, name) for name in ("gemm", "gemm-2")] == [True, False]
    trust.trust(here, "gemm-2")
    assert trust.is_trusted(here, "gemm-2")


def test_cards_that_came_without_their_lineages_are_mended_by_the_next_pull(
    library: Library, theirs: Library, tmp_path: Path
) -> None:
    own, other = _lineage(library), _lineage(theirs, b"int y;")
    card = named("c.theirs", evidence=citing("gemm", other))
    theirs.save(card)
    source = folder_of(tmp_path / "shared", card)
    assert bring(library, source).lineages == ()
    assert [item.key for item in library.dangling([library.get("c.theirs")])] == ["e1"]
    write_folder(theirs, source, ("hypothesis",))
    pulled = bring(library, source)
    assert (pulled.lineages, pulled.changed) == (("gemm-2",), ("c.theirs",))
    assert library.dangling([library.get("c.theirs")]) == ()
    assert workspace_of(library).head("gemm").commit == own


def test_what_is_no_longer_admitted_goes_out_of_a_written_folder(library: Library, tmp_path: Path) -> None:
    for name in ("c.kept", "c.gone", "c.mine"):
        library.save(named(name, status="admitted", evidence=()))
    folder = tmp_path / "shipped"
    write_folder(library, folder, ("admitted",))
    for name in ("c.gone", "c.mine"):
        library.update(name, lambda card: replace(card, status="retired", retired="wrong"))
    mine, other = folder / "cards" / "c.mine.md", folder / "cards" / "c.other.md"
    mine.write_bytes(mine.read_bytes().replace(b"Fetch the next", b"By hand"))
    other.write_bytes(b"somebody's")
    written = write_folder(library, folder, ("admitted",))
    assert (written.cards, written.removed) == (("c.kept",), ("c.gone",))
    assert [str(mine) in problem for problem in written.problems] == [True]
    assert [file.name for file in sorted((folder / "cards").iterdir())] == [
        "c.kept.md",
        "c.mine.md",
        "c.other.md",
    ]


def test_a_branch_of_our_own_can_be_merged(library: Library, theirs: Library, plain: Plain) -> None:
    library.save(named("c.ours"))
    plain(library.path, "remote", "add", "origin", str(theirs.path))
    plain(library.path, "fetch", "-q", "origin")
    assert isinstance(library.shelf, GitShelf)
    assert pull(library.shelf, "origin/library").added == ("c.prefetch",)
    assert [entry.id for entry in library.cards()] == ["c.ours", "c.prefetch"]
    assert plain(library.path, "merge-base", "--is-ancestor", "origin/library", "library") == ""


def test_where_there_is_no_library_is_said(library: Library, tmp_path: Path) -> None:
    empty = Workspace.create(tmp_path / "empty")
    for where, said in (
        ("nowhere", "no branch"),
        (" ", "' ' is no folder"),
        (str(empty.path), "has no library"),
        (str(tmp_path), "not a git"),
    ):
        with pytest.raises(KlineageError, match=said):
            pull(library.shelf, where)  # type: ignore[arg-type]
    empty.close()


def test_a_commit_that_is_none_cannot_confuse_what_is_read_next(library: Library, tmp_path: Path) -> None:
    odd = (
        Evidence("e1", "transition", "gemm", "HEAD\nHEAD"),
        Evidence("e2", "transition", "../gemm", "b" * 40),
    )
    pulled = bring(library, folder_of(tmp_path / "shared", named("c.odd", evidence=odd)))
    assert pulled.added == ("c.odd",)
    assert any("'../gemm' cannot name a lineage" in problem for problem in pulled.problems)
    assert {item.key for item in library.dangling([library.get("c.odd")])} == {"e1", "e2"}
    assert library.cards()[0].card == named("c.odd", evidence=odd)


def test_another_object_format_is_said(library: Library, tmp_path: Path, plain: Plain) -> None:
    plain(tmp_path, "init", "-q", "--object-format=sha256", "other")
    other = Library.open(tmp_path / "other")
    other.save(PREFETCH)
    assert other.get("c.prefetch") == PREFETCH
    with pytest.raises(KlineageError, match=r"in another way \(sha256\)"):
        bring(library, other)
    write_folder(other, tmp_path / "folder", ("hypothesis",))
    assert bring(library, tmp_path / "folder").added == ("c.prefetch",)
    other.close()
