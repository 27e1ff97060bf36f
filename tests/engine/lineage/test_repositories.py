"""Every kind of repository and machine that a user may have; what is theirs stays as it was."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.lineage import Meta, StepRecord, Workspace

Record = Callable[..., StepRecord]
Plain = Callable[..., str]


def foreign(folder: Path, plain: Plain) -> None:
    """A repository with two commits, a staged file, an unstaged change, and an untracked file."""
    folder.mkdir()
    plain(folder, "init", "--quiet", "-b", "main")
    for number in range(2):
        (folder / "theirs.txt").write_text(f"version {number}\n")
        plain(folder, "add", "theirs.txt")
        plain(folder, "commit", "--quiet", "-m", f"Theirs {number}")
    (folder / "staged.txt").write_text("staged\n")
    plain(folder, "add", "staged.txt")
    (folder / "theirs.txt").write_text("not staged\n")
    (folder / "untracked.txt").write_text("untracked\n")


def fingerprint(folder: Path, plain: Plain) -> dict[str, str]:
    """All that a user would miss: the work tree, the index, HEAD, their refs, the configuration."""
    git_dir = Path(plain(folder, "rev-parse", "--absolute-git-dir").strip())
    common = folder / plain(folder, "rev-parse", "--git-common-dir").strip()
    files = [
        path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts
    ]
    if plain(folder, "rev-parse", "--is-bare-repository").strip() == "true":
        files = [folder / "description"]
    files += [path for path in (git_dir / "index", git_dir / "HEAD", common / "config") if path.exists()]
    found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    found["refs"] = plain(
        folder, "for-each-ref", "refs/heads/main", "refs/tags", "refs/stash", "refs/remotes"
    )
    if plain(folder, "rev-parse", "--is-bare-repository").strip() == "false":
        found["status"] = plain(folder, "status", "--porcelain=v2", "--branch")
    return found


def work(folder: Path, meta: Meta, record: Record) -> None:
    """One of everything."""
    workspace = Workspace.open(folder)
    workspace.new(meta, {"kernel.c": b"a\r\n", "workload.py": b""}, "Ann", "{}")
    said = record(1, who="Zoë", body="naïve")
    workspace.accept("gemm", said, {"kernel.c": b"b\r\n"}, "{}")
    workspace.reject("gemm", record(2), {"kernel.c": b"c"}, "{}")
    workspace.undo("gemm")
    workspace.redo("gemm")
    workspace.save_draft("gemm", "kernel.c", b"draft")
    workspace.seal("gemm", [])
    assert [workspace.read(step.commit)["kernel.c"] for step in workspace.history("gemm")] == [
        b"a\r\n",
        b"b\r\n",
    ]
    assert [(step.who, step.body) for step in workspace.history("gemm")[1:]] == [("Zoë", "naïve")]
    assert len(workspace.rejected("gemm")) == 1
    assert len(workspace.blame("gemm")) == 1
    workspace.close()


def dirty(folder: Path, plain: Plain) -> None:
    foreign(folder, plain)


def detached(folder: Path, plain: Plain) -> None:
    foreign(folder, plain)
    plain(folder, "stash", "--quiet")
    plain(folder, "checkout", "--quiet", "--detach", "HEAD~1")


def rebasing(folder: Path, plain: Plain) -> None:
    foreign(folder, plain)
    plain(folder, "stash", "--quiet")
    subprocess.run(
        ["git", "-C", str(folder), "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-i", "--root"],
        check=True, capture_output=True,
    )  # fmt: skip
    assert (folder / ".git" / "rebase-merge").is_dir()


def merging(folder: Path, plain: Plain) -> None:
    foreign(folder, plain)
    plain(folder, "stash", "--quiet")
    plain(folder, "checkout", "--quiet", "-b", "side", "HEAD~1")
    (folder / "theirs.txt").write_text("other\n")
    plain(folder, "commit", "--quiet", "-a", "-m", "Side")
    conflict = subprocess.run(["git", "-C", str(folder), "merge", "main"], capture_output=True, check=False)
    assert conflict.returncode == 1


def bare(folder: Path, plain: Plain) -> None:
    plain(folder.parent, "init", "--quiet", "--bare", "-b", "main", str(folder))


def empty(folder: Path, plain: Plain) -> None:
    plain(folder.parent, "init", "--quiet", "-b", "main", str(folder))


def linked_worktree(folder: Path, plain: Plain) -> None:
    foreign(folder.parent / "first", plain)
    plain(folder.parent / "first", "worktree", "add", "--quiet", "-b", "other", str(folder))


def sha256(folder: Path, plain: Plain) -> None:
    plain(folder.parent, "init", "--quiet", "--object-format=sha256", "-b", "main", str(folder))


def packed(folder: Path, plain: Plain) -> None:
    foreign(folder, plain)
    plain(folder, "gc", "--quiet")


@pytest.mark.parametrize(
    "make",
    [dirty, detached, rebasing, merging, bare, empty, linked_worktree, sha256, packed],
    ids=lambda f: f.__name__,
)
def test_theirs_is_untouched(
    make: Callable[[Path, Plain], None], tmp_path: Path, plain: Plain, meta: Meta, record: Record
) -> None:
    folder = tmp_path / "their repository"
    make(folder, plain)
    before = fingerprint(folder, plain)
    work(folder, meta, record)
    assert fingerprint(folder, plain) == before
    plain(folder, "fsck", "--strict")


def test_a_subfolder_opens_the_repository(tmp_path: Path, plain: Plain, meta: Meta, record: Record) -> None:
    foreign(tmp_path / "r", plain)
    (tmp_path / "r" / "deep").mkdir()
    work(tmp_path / "r" / "deep", meta, record)
    assert plain(tmp_path / "r", "branch", "--list", "walk/*").strip() == "walk/gemm"


def test_their_hooks_signing_and_settings_do_not_interfere(
    tmp_path: Path, plain: Plain, meta: Meta, record: Record, user: Path
) -> None:
    folder = tmp_path / "r"
    foreign(folder, plain)
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "reference-transaction",
        "post-commit",
        "pre-commit",
        "post-update",
        "update",
        "pre-auto-gc",
    ):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/hooked\nexit 1\n")
        (hooks / name).chmod(0o755)
    (folder / ".gitattributes").write_text("* text eol=crlf ident filter=x diff=y\n")
    settings = """
        commit.gpgsign true; tag.gpgsign true; gpg.program /bin/false; core.autocrlf true; core.safecrlf true;
        color.ui always; log.showSignature true; i18n.commitEncoding latin1; i18n.logOutputEncoding latin1;
        core.hooksPath {hooks}; diff.external /bin/false; diff.y.textconv /bin/false;
        core.quotePath false; blame.ignoreRevsFile /none; diff.noprefix true; diff.algorithm patience;
        log.date relative; format.pretty oneline; notes.displayRef *; core.commentChar ;; user.useConfigOnly true;
        core.notesRef refs/notes/x; fastimport.unpackLimit 1; trailer.separators =; receive.denyCurrentBranch refuse
    """
    for setting in settings.format(hooks=hooks).replace("\n", " ").split("; "):
        key, _, value = setting.strip().partition(" ")
        plain(folder, "config", key, value)
        plain(folder, "config", "--file", str(user), key, value)
    work(folder, meta, record)
    assert not (tmp_path / "hooked").exists()


def test_their_environment_does_not_interfere(
    tmp_path: Path, plain: Plain, meta: Meta, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign(tmp_path / "r", plain)
    foreign(tmp_path / "other", plain)
    before = fingerprint(tmp_path / "other", plain)
    other = tmp_path / "other"
    for name, value in {
        "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_NAMESPACE": "ns",
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_NOTES_REF": "refs/notes/x", "GIT_EXTERNAL_DIFF": "/bin/false", "GIT_AUTHOR_DATE": "nonsense",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'", "GIT_PAGER": "/bin/false", "LC_ALL": "de_DE.UTF-8",
        "GIT_DIFF_OPTS": "-u9", "GIT_DEFAULT_HASH": "sha256",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    work(tmp_path / "r", meta, record)
    for name in [
        name for name in os.environ if name.startswith("GIT_") and not name.startswith("GIT_CONFIG_G")
    ]:
        monkeypatch.delenv(name)
    assert fingerprint(other, plain) == before
    assert plain(other, "for-each-ref", "refs/klineage", "refs/heads/walk") == ""
    plain(tmp_path / "r", "fsck", "--strict")
    assert (
        plain(tmp_path / "r", "for-each-ref", "--format=%(refname)", "refs/heads/walk").strip()
        == "refs/heads/walk/gemm"
    )


def test_commits_carry_the_users_name_or_a_neutral_one(
    tmp_path: Path, plain: Plain, meta: Meta, record: Record, user: Path
) -> None:
    Workspace.create(tmp_path / "a").new(meta, {"kernel.c": b""})
    assert (
        plain(tmp_path / "a", "log", "-1", "--format=%an <%ae>", "walk/gemm")
        == "Ann Curator <ann@example.org>\n"
    )
    user.write_text("[user]\n\tuseConfigOnly = true\n")
    Workspace.create(tmp_path / "b").new(meta, {"kernel.c": b""})
    assert (
        plain(tmp_path / "b", "log", "-1", "--format=%an <%ae>", "walk/gemm")
        == "klineage <klineage@localhost>\n"
    )


def test_a_checked_out_walk_moves_and_the_files_stay(
    tmp_path: Path, plain: Plain, meta: Meta, record: Record
) -> None:
    workspace = Workspace.create(tmp_path)
    workspace.new(meta, {"kernel.c": b"a\n", "workload.py": b""})
    plain(tmp_path, "checkout", "--quiet", "walk/gemm")
    step = workspace.accept("gemm", record(1), {"kernel.c": b"b\n"})
    workspace.close()
    assert plain(tmp_path, "rev-parse", "HEAD").strip() == step.commit
    assert (tmp_path / "kernel.c").read_bytes() == b"a\n"
    plain(tmp_path, "restore", "--staged", "--worktree", ".")
    assert (tmp_path / "kernel.c").read_bytes() == b"b\n"


def test_a_branch_named_walk_is_in_the_way(tmp_path: Path, plain: Plain, meta: Meta) -> None:
    foreign(tmp_path / "r", plain)
    plain(tmp_path / "r", "branch", "walk")
    workspace = Workspace.open(tmp_path / "r")
    with pytest.raises(
        KlineageError, match="refs/heads/walk is in the way of refs/heads/walk/gemm; rename it"
    ):
        workspace.new(meta, {"kernel.c": b""})
    plain(tmp_path / "r", "branch", "-m", "walk", "stroll")
    workspace.new(meta, {"kernel.c": b""})
    assert len(workspace.operations("gemm")) == 1
    workspace.close()


def test_create_makes_a_repository_once(tmp_path: Path, plain: Plain) -> None:
    foreign(tmp_path / "outer", plain)
    inner = tmp_path / "outer" / "new" / "place"
    Workspace.create(inner).close()
    assert (inner / ".git").is_dir()
    before = fingerprint(inner, plain)
    Workspace.create(inner).close()
    assert fingerprint(inner, plain) == before
    (tmp_path / "file").write_text("")
    with pytest.raises(KlineageError, match="cannot make the folder"):
        Workspace.create(tmp_path / "file" / "below")


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, complaint in [
        (tmp_path, "is not a git repository"),
        (tmp_path / "file", "is a file"),
        (tmp_path / "absent", "does not exist"),
    ]:
        with pytest.raises(KlineageError, match=complaint):
            Workspace.open(path)


def fake_git(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "git").chmod(0o755)


def test_no_git_and_an_old_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(KlineageError, match="git was not found"):
        Workspace.open(tmp_path)
    fake_git(tmp_path / "old", "echo git version 2.33.8")
    monkeypatch.setenv("PATH", str(tmp_path / "old"))
    with pytest.raises(KlineageError, match=r"git 2\.33 is too old; install git 2\.34 or newer"):
        Workspace.open(tmp_path)
    fake_git(tmp_path / "odd", "echo hello")
    monkeypatch.setenv("PATH", str(tmp_path / "odd"))
    with pytest.raises(KlineageError, match="does not answer like git"):
        Workspace.open(tmp_path)


def test_importing_the_lineage_without_git_works(tmp_path: Path) -> None:
    code = "import klineage.lineage, sys; assert 'git' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PATH": str(tmp_path)})


LIMITED = """
import random, resource, sys
from klineage.errors import KlineageError
from klineage.lineage import StepRecord, Workspace
workspace = Workspace.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    workspace.accept("gemm", StepRecord("Too large"), {"kernel.c": random.Random(0).randbytes(900_000)})
except KlineageError as error:
    print(error)
"""


def test_a_failing_write_changes_nothing(walk: Workspace, record: Record, plain: Plain) -> None:
    before = plain(walk.path, "for-each-ref")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, walk.path], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("git fast-import ")
    assert done.stdout.count("\n") == 1
    assert plain(walk.path, "for-each-ref") == before
    assert not list((walk.path / ".git").glob("fast_import_crash*"))
    walk.accept("gemm", record(4), {"kernel.c": b"fits"})
    assert len(walk.history("gemm")) == 5


def test_a_full_disk_is_named(tmp_path: Path, meta: Meta, record: Record, plain: Plain) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False).returncode
    ):
        pytest.skip("this machine does not let the test mount a small disk")
    try:
        workspace = Workspace.create(disk / "w")
        workspace.new(meta, {"kernel.c": b"a"})
        before = plain(disk / "w", "for-each-ref")
        with pytest.raises(KlineageError, match="the disk is full, nothing was changed in"):
            workspace.accept("gemm", record(1), {"kernel.c": os.urandom(3_000_000)})
        assert plain(disk / "w", "for-each-ref") == before
        workspace.accept("gemm", record(1), {"kernel.c": b"b"})
        assert len(workspace.history("gemm")) == 2
        workspace.close()
    finally:
        subprocess.run(["umount", disk], check=True)


READ_ONLY = """
import os, sys
import git, encodings.idna
from klineage.errors import KlineageError
from klineage.lineage import StepRecord, Workspace
if os.geteuid() == 0:
    os.setuid(65534)
os.environ["GIT_CONFIG_GLOBAL"] = sys.argv[2]
workspace = Workspace.open(sys.argv[1])
print(len(workspace.history("gemm")), len(workspace.lineages()), len(workspace.operations("gemm")))
try:
    workspace.accept("gemm", StepRecord("No"), {})
except KlineageError as error:
    print(error)
"""


def test_a_read_only_folder_is_read_and_refuses_writes(
    walk: Workspace, user: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Path(f"/tmp/klineage-read-only-{os.getpid()}")
    shutil.copytree(walk.path, place)
    config = place / "config-of-user"
    config.write_text(f"[safe]\n\tdirectory = {place}\n")
    try:
        for path in [place, *place.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        code = [sys.executable, "-c", READ_ONLY, str(place), str(config)]
        done = subprocess.run(code, capture_output=True, text=True, check=False)
        assert done.stdout.split("\n")[:2] == [
            "4 1 4", f"cannot write to {place}/.git: it is read-only; nothing was changed",
        ], done.stderr  # fmt: skip
        config.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IROTH)
        if os.geteuid() == 0:
            config.write_text("")
            refused = subprocess.run(code, capture_output=True, text=True, check=False)
            assert "git config --global --add safe.directory" in refused.stderr
    finally:
        for path in [place, *place.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(place)


@pytest.mark.parametrize("content", ["deadbeef" * 5, "garbage", None], ids=["lost", "garbage", "deleted"])
def test_one_broken_branch_hides_no_other_lineage(
    content: str | None, walk: Workspace, meta: Meta, plain: Plain
) -> None:
    walk.new(replace(meta, id="other"), {"kernel.c": b"int x;\n"}, "Ann")
    head = walk.head("gemm").commit
    branch = walk.git.place / "refs" / "heads" / "walk" / "gemm"
    branch.unlink() if content is None else branch.write_text(f"{content}\n")
    found = {summary.id: summary for summary in Workspace.open(walk.path).lineages()}
    assert found["other"].problem == ""
    assert head in found["gemm"].problem
    with pytest.raises(KlineageError, match="update-ref") as refusal:
        Workspace.open(walk.path).history("gemm")
    assert str(branch) in str(refusal.value)
    branch.unlink(missing_ok=True)
    command = str(refusal.value).partition("then git -C ")[2].split()
    plain(walk.path, *command[1:4])
    assert Workspace.open(walk.path).head("gemm").commit == head


def test_a_lineage_whose_commits_are_lost_hides_no_other(walk: Workspace, meta: Meta) -> None:
    walk.new(replace(meta, id="other"), {"kernel.c": b"int x;\n"}, "Ann")
    commits = [step.commit for step in walk.history("gemm")]
    walk.close()
    for commit in commits:
        (walk.git.place / "objects" / commit[:2] / commit[2:]).unlink()
    found = {summary.id: summary.problem for summary in Workspace.open(walk.path).lineages()}
    assert found["other"] == ""
    assert "broken" in found["gemm"]
    with pytest.raises(KlineageError, match="and so is its log"):
        Workspace.open(walk.path).history("gemm")
