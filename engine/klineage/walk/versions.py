"""Hand-written versions of one kernel, from numbered files or from a git history."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage.plumbing import Git, discover
from klineage.walk.reading import SUFFIXES, read_bytes, refuse_no_text
from klineage.workload import WORKLOAD_FILE

_MOST = 500
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Version:
    """One version.

    name:     what a person calls it: a file's name, or the beginning of a commit.
    filename: of the kernel file in it.
    subject:  what its author said of the change that made it; empty for a file.
    """

    name: str
    filename: str
    source: bytes
    subject: str = ""


def from_files(files: Sequence[Path]) -> tuple[Version, ...]:
    """The versions in files, each named once, in the order given.

    One folder stands for the kernel files in it, one pattern (``kernels/v*.c``) for those that match; then
    numbers in the names count (v2 before v10), as they do in a list that a shell has sorted. Raises
    KlineageError for fewer than two, or for files of two languages.
    """
    found = _listed(files)
    suffixes = sorted({path.suffix for path in found})
    if len(suffixes) > 1:
        raise KlineageError(f"a series is of one language; these files end in {', '.join(suffixes)}")
    if len(set(found)) < len(found):
        twice = next(path for path in found if found.count(path) > 1)
        raise KlineageError(f"{twice} is named twice; name each version once")
    _refuse_size(len(found), "files")
    return tuple(Version(path.name, path.name, read_bytes(path)) for path in found)


def _listed(files: Sequence[Path]) -> list[Path]:
    if len(files) == 1 and files[0].is_dir():
        inside = [
            path for path in files[0].iterdir() if path.suffix in SUFFIXES and path.name != WORKLOAD_FILE
        ]
        if not inside:
            raise KlineageError(
                f"no file in {files[0]} ends in {', '.join(SUFFIXES)}; name the versions themselves"
            )
        return sorted((path for path in inside if path.is_file()), key=natural)
    if len(files) == 1 and not files[0].exists() and _PATTERN.search(files[0].name):
        if not files[0].parent.is_dir():
            raise KlineageError(f"there is no folder {files[0].parent}; check the pattern")
        return sorted(files[0].parent.glob(files[0].name), key=natural)
    in_order = list(files)
    as_a_shell_sorts = in_order == sorted(in_order, key=str)
    return sorted(in_order, key=natural) if as_a_shell_sorts else in_order


def natural(path: Path) -> list[tuple[int, int, str]]:
    """A sorting key under which numbers in a name count."""
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def from_history(repository: Path, path: str, revisions: str = "HEAD") -> tuple[Version, ...]:
    """The versions of one file in a git history, oldest first; renames are followed, merges left out.

    ``path`` is as in the repository's newest state that is meant; ``revisions`` are git's (``v1..main``).
    Nothing of the repository is run or changed. Raises KlineageError where git finds fewer than two.
    """
    git = Git(discover(repository))
    try:
        commits = _commits(git, _inside(repository, path), revisions)
        versions = [_version(git, *commit) for commit in commits]
    finally:
        git.close()
    kept = [version for version in versions if version is not None]
    _refuse_size(len(kept), f"commits of {path} in {revisions}")
    return tuple(kept)


def _commits(git: Git, path: str, revisions: str) -> list[tuple[str, str, str]]:
    """(commit, subject, path in it) of every change of a file, oldest first."""
    out = git.run(
        "log", "--follow", "--no-merges", "--name-only", "-z", "--format=%H%x00%s",
        f"--max-count={_MOST + 1}", "--end-of-options", revisions, "--", f":(top,literal){path}",
    )  # fmt: skip
    words = out.split(b"\0")[:-1]
    commits = zip(words[::3], words[1::3], words[2::3], strict=True)
    return [
        (commit.decode(), subject.decode("utf-8", "replace"), os.fsdecode(name.removeprefix(b"\n")))
        for commit, subject, name in commits
    ][::-1]


def _version(git: Git, commit: str, subject: str, path: str) -> Version | None:
    """The file in a commit; None where the commit removed it."""
    found = git.object(f"{commit}:{path}")
    if found is None or found[1] != "blob":
        return None
    source = found[2]
    refuse_no_text(source, f"{path} in commit {commit[:10]}")
    return Version(commit[:10], Path(path).name, source, subject)


def _inside(repository: Path, path: str) -> str:
    """A path as git names it: from the top of the repository, with ``/``."""
    given = Path(path)
    if not given.is_absolute():
        return given.as_posix().removeprefix("./")
    top = next(
        (p for p in (repository.resolve(), *repository.resolve().parents) if (p / ".git").exists()), None
    )
    if top is None or not given.resolve().is_relative_to(top):
        raise KlineageError(
            f"{path} is not in the repository {repository}; name it from the top of the repository"
        )
    return given.resolve().relative_to(top).as_posix()


def _refuse_size(count: int, what: str) -> None:
    if count < 2:
        raise KlineageError(f"a series needs at least two versions; there are {count} {what}")
    if count > _MOST:
        raise KlineageError(f"there are more than {_MOST} {what}; name a part of them")
