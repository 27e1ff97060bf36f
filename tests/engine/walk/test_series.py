"""Hand-written versions become a lineage: files and a git history, each step gated and named."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.gate import Verdict
from klineage.lineage import Workspace
from klineage.walk import Walk, open_workspace
from klineage.walk.series import Placed, import_series
from klineage.walk.versions import Version, from_files, from_history, natural
from klineage.workload import Workload, load

SERIES = Path(__file__).parents[2] / "series" / "row_norms"
WRONG = b"sums += part * part * part;"


@pytest.fixture
def workspace(tmp_path: Path, gate_results: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(gate_results))
    opened = open_workspace(tmp_path / "workspace", create=True)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def workload() -> Workload:
    return load(str(SERIES / "workload.py"))


def source(number: int) -> bytes:
    return (SERIES / f"v{number}.c").read_bytes()


def test_five_files_are_a_lineage(workspace: Workspace, workload: Workload) -> None:
    heard: list[Placed] = []
    series = import_series(
        workspace, from_files([SERIES / "v*.c"]), workload, naive_first=True, on_placed=heard.append
    )
    assert tuple(heard) == series.placed
    assert [placed.how for placed in series.placed] == ["opened"] + ["accepted"] * 4
    walk = Walk(workspace, series.id)
    steps = walk.state().steps
    assert [walk.kernel_at(step.commit).source for step in steps] == [source(n) for n in (5, 4, 3, 2, 1)]
    assert [step.action for step in steps[1:]] == ["prefetch", "unroll", "simd", "restrict"]
    assert [str(f) for step in steps[1:] for f in step.removes] == [
        f"kernel.c::row_norms / {name}" for name in ("prefetch", "unroll", "simd", "restrict")
    ]
    assert steps[3].subject == "Remove simd"
    assert steps[3].body == "Version 2 of 5 of a series: v2.c."
    for step in steps:
        assert [report.verdict for report in walk.reports(step.commit)] == [Verdict.PASS]


def test_a_history_with_a_wrong_version_is_imported_around_it_and_after_an_interruption(
    workspace: Workspace, workload: Workload, tmp_path: Path
) -> None:
    repository = History(tmp_path / "history")
    repository.commit("fast.c", source(1), "Start")
    repository.commit("fast.c", source(2), "Promise that x and y are apart")
    repository.commit("fast.c", source(3).replace(b"sums += part * part;", WRONG), "Use vectors, wrongly")
    repository.commit("fast.c", source(3), "Take the right power\n\nAnd more words.")
    repository.git("mv", "fast.c", "src.c")
    repository.git("commit", "-qm", "Rename it")
    versions = from_history(repository.folder, "src.c")
    assert [version.subject for version in versions][-1] == "Rename it"
    cancel = threading.Event()

    def after_the_wrong_one(placed: Placed) -> None:
        if placed.how == "rejected":
            cancel.set()

    with pytest.raises(KlineageError, match="the same command goes on with it"):
        import_series(
            workspace, versions, workload, naive_first=True, on_placed=after_the_wrong_one, cancel=cancel
        )
    series = import_series(workspace, versions, workload, naive_first=True)
    assert len(workspace.lineages()) == 1
    assert [placed.how for placed in series.placed] == ["known", "known", "rejected", "accepted", "accepted"]
    wrong = series.placed[2]
    assert wrong.version.subject == "Use vectors, wrongly" and wrong.why
    walk = Walk(workspace, series.id)
    state = walk.state()
    assert [step.subject for step in state.steps[1:]] == [
        "Undo: Take the right power (and 1 more)",
        "Undo: Promise that x and y are apart",
    ]
    assert len(state.rejected) == 1
    assert state.rejected[0].parent == state.steps[0].commit
    assert WRONG in walk.kernel_at(state.rejected[0].commit).source


def test_an_expert_that_is_wrong_opens_nothing(workspace: Workspace, workload: Workload) -> None:
    wrong = Version("a.c", "a.c", source(1).replace(b"row[c] * row[c]", b"row[c]"))
    with pytest.raises(KlineageError, match=r"a\.c, the first version, is the expert and does not pass"):
        import_series(workspace, [wrong, Version("b.c", "b.c", source(1))], workload)
    assert workspace.lineages() == []


# -- finding the versions, which runs nothing ---------------------------------------------------------


def test_numbers_in_names_count(tmp_path: Path) -> None:
    for name in ("v10.c", "v2.c", "v1.c", "workload.py", "notes.txt"):
        (tmp_path / name).write_bytes(b"int x;\n")
    wanted = ["v1.c", "v2.c", "v10.c"]
    as_a_shell_sorts = sorted(tmp_path.glob("v*.c"))
    assert [path.name for path in as_a_shell_sorts] != wanted
    (tmp_path / "workload.py").unlink()
    for files in ([tmp_path], [tmp_path / "v*.c"], as_a_shell_sorts):
        assert [version.name for version in from_files(files)] == wanted


def test_an_order_that_a_person_gives_is_kept(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("slow.c", "fast.c", "faster.c")]
    for file in files:
        file.write_bytes(b"int x;\n")
    assert [version.name for version in from_files(files)] == ["slow.c", "fast.c", "faster.c"]
    assert natural(Path("a10b2")) > natural(Path("a9b3"))


def test_what_is_no_series_is_refused(tmp_path: Path) -> None:
    one, other, empty = tmp_path / "a.c", tmp_path / "b.py", tmp_path / "e.c"
    one.write_bytes(b"int x;\n")
    other.write_bytes(b"x = 1\n")
    empty.write_bytes(b"")
    cases = [
        ([one], "at least two versions; there are 1 files"),
        ([tmp_path / "z*.c"], "there are 0 files"),
        ([one, other], "these files end in .c, .py"),
        ([one, one], "named twice"),
        ([one, empty], "is empty"),
        ([one, tmp_path / "gone.c"], "cannot read"),
        ([tmp_path / "gone" / "v*.c"], "there is no folder"),
    ]
    for files, problem in cases:
        with pytest.raises(KlineageError) as caught:
            from_files(files)
        assert problem in str(caught.value)


def test_a_history_follows_a_rename_and_passes_over_a_removal(tmp_path: Path) -> None:
    repository = History(tmp_path / "history")
    repository.commit("sub/ä b.c", source(1), "One")
    repository.commit("other.txt", b"not the kernel", "Two")
    repository.git("mv", "sub/ä b.c", "kernel.c")
    subject = "Three: 'quoted' \x01 \x02 words"
    repository.commit("kernel.c", source(1) + b"// three\n", subject)
    repository.git("rm", "-q", "kernel.c")
    repository.git("commit", "-qm", "Remove it")
    repository.commit("kernel.c", source(2), "Put it back")
    versions = from_history(repository.folder, "kernel.c")
    assert versions[-1].subject == "Put it back"
    assert versions[-1].source == source(2)
    assert [version.subject for version in versions if "Three" in version.subject] == [subject]
    assert "Two" not in [version.subject for version in versions]
    assert from_history(repository.folder, str(repository.folder / "kernel.c")) == versions
    with pytest.raises(KlineageError, match="at least two versions"):
        from_history(repository.folder, "kernel.c", "HEAD~1..HEAD")
    with pytest.raises(KlineageError, match="git log failed"):
        from_history(repository.folder, "kernel.c", "no-such-branch")
    with pytest.raises(KlineageError, match="at least two versions"):
        from_history(repository.folder, "nowhere.c")


class History:
    """A git repository that somebody wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q")

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *who, *words], cwd=self.folder, check=True, timeout=300)

    def commit(self, name: str, data: bytes, message: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        self.git("add", name)
        self.git("commit", "-qm", message)
