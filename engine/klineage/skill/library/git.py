"""A library in git: the files of ``refs/heads/library``. Bytes only; nothing here knows what a card is.

Reading never waits for a writer: it looks at the commit that the branch points to, all files at once. A write is
one commit, made by one ``git fast-import`` that moves the branch as its last act, under the workspace's lock: killed
before that, nothing has happened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from klineage.errors import KlineageError
from klineage.lineage import Moved, Workspace, refs, store, write
from klineage.lineage.importer import Importer
from klineage.lineage.lock import writing
from klineage.lineage.message import one_line
from klineage.lineage.model import moment
from klineage.lineage.plumbing import Git, GitError
from klineage.skill.library import history
from klineage.skill.library.history import Revision, Word

_LATEST = 253_402_300_799  # the last second of the year 9999
_BEGIN = Word("Begin a library", kind="begin")  # what comes after it can be undone, up to the first pull
_FEW = 4  # files; for more, a process of their own is quicker than asking one by one
FOLDERS = ("cards", "reports", "bundles")
_FORMAT = "--format=%H%x00%P%x00%an%x00%at%x00%B"


@dataclass(frozen=True)
class Side:
    """A commit beside the branch, of exactly these files, that becomes a further parent of the one on it."""

    word: Word
    files: Mapping[str, bytes]
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One commit to be: the files that it writes and removes, and further parents beside the branch's tip."""

    word: Word
    files: Mapping[str, bytes]
    remove: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    side: Side | None = None
    who: str = ""


class GitShelf:
    """The library of a workspace, at the last commit of its branch."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.git = workspace.git
        self._listed: tuple[str, Mapping[str, str]] = ("", {})

    @property
    def place(self) -> str:
        """What stands before a file's name in a sentence for people."""
        return f"{self.workspace.path}, branch library: "

    def tip(self) -> str:
        """The commit of the branch, "" where there is no library yet."""
        return store.head(self.git, refs.LIBRARY)

    def listing(self, commit: str | None = None) -> Mapping[str, str]:
        """Path to hash of every file of a commit (default: the tip); "" for what is no plain file."""
        at = self.tip() if commit is None else commit
        if at != self._listed[0]:
            self._listed = (at, listing(self.git, at))
        return self._listed[1]

    def refusal(self, path: str) -> str:
        """Why ``listing`` has no hash for a file, as a sentence."""
        return f"{self.place}{path} is a link or no file; a card is a plain file"

    def contents(self, files: Mapping[str, str]) -> dict[str, bytes]:
        """The bytes of files, path to hash as in ``listing``."""
        if len(files) <= _FEW:
            return {path: store.blob(self.git, name) for path, name in files.items()}
        found = blobs(self.git, set(files.values()))
        return {path: found[name] for path, name in files.items()}

    def commit(self, plan: Callable[[str], Change | None]) -> str:
        """Make the commit that ``plan`` says for the tip it is given; returns it, or the tip for None.

        Raises Moved when plain git moves the branch meanwhile, and KlineageError for a branch of another purpose.
        """
        git = self.git
        with writing(git.place, "-", partial(write.recover, git)) as held:
            self.workspace.sign()
            tip = self.tip()
            self._refuse_foreign(tip)
            change = plan(tip)
            if change is None:
                return tip
            seconds = self.workspace.now()
            with Importer(git, held, refs.LIBRARY, seconds) as importer:
                author = self._author(change.who, seconds)
                parents = [tip or importer.commit(_BEGIN.text(), {}), *change.parents]
                if (side := change.side) is not None:
                    parents.append(
                        importer.commit(
                            side.word.text(), side.files, side.parents, inherit=False, author=author
                        )
                    )
                made = importer.commit(
                    change.word.text(), change.files, parents, change.remove, author=author
                )
                try:
                    importer.finish()
                except GitError as error:
                    raise _explain(error) from error
            return made

    def _author(self, who: str, seconds: int) -> bytes:
        """The author line; empty for the user, who is the committer anyway."""
        name = re.sub(r"[<>]", " ", one_line(who)).strip()
        if not name or name == self.git.identity[0]:
            return b""
        return f"{name} <> {seconds} +0000".encode("utf-8", "replace")

    def _refuse_foreign(self, tip: str) -> None:
        names = {path.partition("/")[0] for path in self.listing(tip)}
        if names and not names & set(FOLDERS):
            raise KlineageError(
                f"the branch library of {self.workspace.path} holds {min(names)} and no cards, so it is not klineage's; "
                "rename it with git branch -m library OTHER-NAME"
            )

    def log(self, start: str | None = None, *paths: str, first_parent: bool = False) -> list[Revision]:
        """The commits that led to ``start`` (default: the tip), newest first; of ``paths`` alone when given."""
        at = self.tip() if start is None else start
        if not at:
            return []
        line = ("--first-parent",) if first_parent else ()
        out = self.git.run("log", "-z", "--no-notes", "--no-color", *line, _FORMAT, at, "--", *paths)
        fields = out.decode("utf-8", "replace").split("\0")
        records = (fields[i : i + 5] for i in range(0, len(fields) - 4, 5))
        return [
            history.read(commit, parents, who, moment(min(int(seconds or 0), _LATEST)), message)
            for commit, parents, who, seconds, message in records
        ]

    def hashes(self, commits: Iterable[str], path: str) -> list[str]:
        """The hash of one file in each commit, "" where it was not there; one process for all."""
        names = "".join(f"{commit}:{path}\n" for commit in commits)
        lines = self.git.run("cat-file", "--batch-check=%(objectname)", data=names.encode()).decode()
        return ["" if line.endswith(" missing") else line for line in lines.split("\n")[:-1]]

    def changed(self, commit: str) -> dict[str, tuple[str, str]]:
        """Path to (hash before, hash after), of what a commit did to its first parent; "" for not there."""
        parents = store.commit(self.git, commit).parent
        before, after = listing(self.git, parents), listing(self.git, commit)
        return {
            path: (before.get(path, ""), after.get(path, ""))
            for path in sorted({*before, *after})
            if before.get(path) != after.get(path)
        }


def listing(git: Git, commit: str) -> dict[str, str]:
    """Path to hash of every file of a commit, "" for what is no plain file; empty for the commit ""."""
    if not commit:
        return {}
    rows = git.run("ls-tree", "-r", "-z", commit).decode("utf-8", "surrogateescape").split("\0")
    found: dict[str, str] = {}
    for row in rows[:-1]:
        kind, _, path = row.partition("\t")
        mode, _, name = kind.split(" ")
        found[path] = name if mode.startswith("100") else ""
    return found


def blobs(git: Git, names: Iterable[str]) -> dict[str, bytes]:
    """The bytes of blobs by hash, one process for all. Raises KlineageError for one that git has lost."""
    wanted = sorted(set(names))
    out = (
        git.run("cat-file", "--batch", "--buffer", data="".join(f"{n}\n" for n in wanted).encode())
        if wanted
        else b""
    )
    found: dict[str, bytes] = {}
    at = 0
    for name in wanted:
        end = out.index(b"\n", at)
        words = out[at:end].split()
        if words[-1] == b"missing":
            raise KlineageError(f"{git.git_dir} has lost the object {name}; git fsck says more")
        size = int(words[2])
        found[name] = out[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def _explain(error: GitError) -> KlineageError:
    exists = re.search(r"'([^']+)' exists; cannot create '([^']+)'", error.stderr)
    if exists:
        return KlineageError(
            f"{exists[1]} is in the way of the branch library; rename it with git branch -m, nothing was changed"
        )
    if re.search(
        r"new tip \S+ does not contain|is at \S+ but expected|reference already exists", error.stderr
    ):
        return Moved("plain git has moved the branch library meanwhile; nothing was changed, do it again")
    return error
