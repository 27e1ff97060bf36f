"""Reading lineages, in bulk: one ``git log`` for a history, one ``for-each-ref`` for a family of refs."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.lineage import refs
from klineage.lineage.message import MessageError, parse_step
from klineage.lineage.model import META_FILE, Meta, Operation, Step, moment
from klineage.lineage.operations import parse_operation
from klineage.lineage.plumbing import Git, GitError

_LOG = "--format=%H%x00%P%x00%an%x00%at%x00%B"
_EACH = (
    "--format=%(refname)%00%(objectname)%00%(parent)%00%(authorname)%00%(authordate:unix)%00%(contents)%00"
)


@dataclass(frozen=True, slots=True)
class RawCommit:
    """A commit before anybody has asked what it means."""

    commit: str
    parent: str  # the first, "" for a root
    author: str
    seconds: int
    message: str

    def step(self) -> Step:
        """Raises KlineageError, naming the commit, when it does not record a step."""
        try:
            return parse_step(self.commit, self.parent, self.author, self.seconds, self.message)
        except MessageError as error:
            raise KlineageError(
                f"commit {self.commit[:12]} is not a lineage step: {error}; "
                f"git show {self.commit[:12]} shows it, git branch -f moves its branch back to a good one"
            ) from error


def log(git: Git, start: str) -> Iterator[RawCommit]:
    """Commits from ``start`` along first parents, newest first."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for piece in git.stream("log", "-z", "--first-parent", "--no-notes", "--no-color", _LOG, start, "--"):
        fields = (rest + decoder.decode(piece)).split("\0")
        whole = (len(fields) - 1) // 5 * 5
        rest = "\0".join(fields[whole:])
        for i in range(0, whole, 5):
            commit, parents, author, seconds, message = fields[i : i + 5]
            yield RawCommit(commit, parents.partition(" ")[0], author, int(seconds or 0), message)


def each(git: Git, *patterns: str) -> dict[str, RawCommit]:
    """Every ref under the patterns, with its commit; refs whose commit is lost are left out."""
    try:
        out = git.run("for-each-ref", _EACH, *patterns).decode("utf-8", "replace")
    except GitError:  # it gives up at the first ref whose commit is lost
        return _each_sound(git, *patterns)
    fields = out.split("\0")
    return {
        fields[i].lstrip("\n"): RawCommit(
            fields[i + 1],
            fields[i + 2].partition(" ")[0],
            fields[i + 3],
            int(fields[i + 4] or 0),
            fields[i + 5],
        )
        for i in range(0, len(fields) - 6, 6)
    }


def _each_sound(git: Git, *patterns: str) -> dict[str, RawCommit]:
    names = git.run("for-each-ref", "--format=%(refname)", *patterns).decode("utf-8", "replace").split()
    return {name: commit(git, name) for name in names if head(git, name)}


def history(git: Git, start: str) -> list[Step]:
    """The steps up to ``start``, newest last."""
    steps = [raw.step() for raw in log(git, start)]
    steps.reverse()
    return steps


def head(git: Git, ref: str) -> str:
    """The commit that ``ref`` points to, "" when there is no such ref."""
    found = git.object(ref)
    return found[0] if found else ""


def commit(git: Git, name: str) -> RawCommit:
    """One commit, by hash or full ref name. Raises KlineageError when it does not exist."""
    found = git.object(name)
    if found is None or found[1] != "commit":
        raise KlineageError(f"there is no commit {name} in {git.git_dir}")
    headers, _, message = found[2].decode("utf-8", "replace").partition("\n\n")
    parent, author, seconds = "", "", 0
    for line in headers.split("\n"):
        key, _, value = line.partition(" ")
        if key == "parent" and not parent:
            parent = value
        elif key == "author":
            author, _, rest = value.partition(" <")
            seconds = int(rest.rpartition("> ")[2].partition(" ")[0] or 0)
    return RawCommit(found[0], parent, author, seconds, message)


def author(git: Git, commit_hash: str) -> bytes:
    """Who made a commit and when, as git writes it: ``name <mail> seconds zone``."""
    found = git.object(commit_hash)
    headers = found[2].partition(b"\n\n")[0].split(b"\n") if found else []
    return next((line.removeprefix(b"author ") for line in headers if line.startswith(b"author ")), b"")


def tree(git: Git, commit_hash: str) -> dict[str, str]:
    """File name to blob hash, of the files at the top of a commit's tree."""
    found = git.object(commit_hash + "^{tree}")
    if found is None:
        raise KlineageError(f"there is no commit {commit_hash} in {git.git_dir}")
    data, size, entries, at = found[2], len(found[0]) // 2, {}, 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        at = end + 1 + size
        if mode.startswith(b"100"):
            entries[name.decode("utf-8", "surrogateescape")] = data[end + 1 : at].hex()
    return entries


def blob(git: Git, blob_hash: str) -> bytes:
    """The content of a blob. Raises KlineageError when the repository has lost it."""
    found = git.object(blob_hash)
    if found is None:
        raise KlineageError(f"{git.git_dir} has lost the object {blob_hash}; git fsck says more")
    return found[2]


def files(git: Git, commit_hash: str) -> dict[str, bytes]:
    """Every file of a state, to the last byte."""
    return {name: blob(git, blob_hash) for name, blob_hash in tree(git, commit_hash).items()}


def meta(git: Git, commit_hash: str) -> Meta:
    """What ``lineage.json`` of a state says. Raises KlineageError, naming the commit, when it is broken."""
    entries = tree(git, commit_hash)
    if META_FILE not in entries:
        raise KlineageError(f"commit {commit_hash[:12]} has no {META_FILE}; it is not a state of a lineage")
    try:
        return Meta.from_json(blob(git, entries[META_FILE]))
    except ValueError as error:
        raise KlineageError(f"{META_FILE} of commit {commit_hash[:12]} cannot be read: {error}") from error


def operations(git: Git, lineage_id: str) -> list[Operation]:
    """The operation log, newest last; empty for a lineage that came without one (a plain clone)."""
    return list(log_of(git, lineage_id))[::-1]


def log_of(git: Git, lineage_id: str) -> Iterator[Operation]:
    """The operations of a lineage, newest first."""
    start = head(git, refs.operations(lineage_id))
    for raw in log(git, start) if start else ():
        operation = parse_operation(lineage_id, raw.commit, raw.author, moment(raw.seconds), raw.message)
        if operation is None:
            return
        yield operation


def attempt(ref: str) -> int:
    """The number of a rejected attempt's ref; 0 when somebody has put another name there."""
    number = ref.rpartition("/")[2]
    return int(number) if number.isascii() and number.isdigit() else 0


def note_path(git: Git, commit_hash: str) -> tuple[str, bytes]:
    """(path in the notes tree, note) of a commit, wherever git's fan-out has put it; ("", b"") if none."""
    for cut in (2, 0, 4):
        path = fan_out(commit_hash, cut)
        found = git.object(f"{refs.NOTES}:{path}")
        if found is not None:
            return path, found[2]
    return "", b""


def fan_out(commit_hash: str, cut: int = 2) -> str:
    """The path of a commit's note, with ``cut`` digits of it made into folders."""
    folders = [commit_hash[i : i + 2] for i in range(0, cut, 2)]
    return "/".join([*folders, commit_hash[cut:]])


def reports(git: Git, commit_hash: str) -> list[str]:
    """The gate reports noted on a commit, oldest first, one JSON text each."""
    _, note = note_path(git, commit_hash)
    return [line for line in note.decode("utf-8", "replace").split("\n") if line.strip()]
