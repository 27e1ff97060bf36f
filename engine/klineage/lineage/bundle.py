"""Carrying one lineage in a file: the walk, the sealed lineage, rejected attempts, operations and reports."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import refs, store, write
from klineage.lineage.importer import Importer
from klineage.lineage.lock import writing
from klineage.lineage.model import check_id
from klineage.lineage.plumbing import Git, GitError
from klineage.lineage.scratch import scratch_repository
from klineage.lineage.workspace import Workspace

_SIGNATURE = re.compile(rb"# v[23] git bundle\n")
_WALK = re.compile(re.escape(refs.WALKS) + r"([^/]+)")


def bundle_create(workspace: Workspace, lineage_id: str, path: Path | str) -> None:
    """Write the lineage to ``path``, as a git bundle that plain git can clone, under the name that its commits have.

    Raises KlineageError when there is no such lineage, or ``path`` is a file of another kind.
    """
    file = Path(path).absolute()
    if not file.parent.is_dir():
        raise KlineageError(f"the folder {file.parent} does not exist; make it first")
    if not os.access(file.parent, os.W_OK):
        raise KlineageError(f"the folder {file.parent} cannot be written; give a file in another folder")
    if file.exists() and not _is_bundle(file):
        raise KlineageError(f"{file} is not a bundle and will not be overwritten; give another name")
    head = workspace.head(lineage_id)
    git = workspace.git
    found = _named(_refs_of(git, lineage_id), lineage_id, head.id)
    with scratch_repository(len(head.commit), git.place / "objects") as scratch:
        scratch.sign(*git.identity)
        write.move(scratch, None, [(ref, "", commit) for ref, commit in found.items()])
        reachable = set(scratch.run("rev-list", "--all").decode().split())
        notes = {commit: blob for commit, blob in _notes(git).items() if commit in reachable}
        if notes:
            files = {store.fan_out(commit): blob for commit, blob in notes.items()}
            with Importer(scratch, None, refs.NOTES, int(head.when.timestamp())) as importer:
                importer.commit(f"Carry the gate reports of {lineage_id}\n", files)
                importer.finish()
        shown = refs.sealed(head.id) if refs.sealed(head.id) in found else refs.walk(head.id)
        scratch.run("symbolic-ref", "HEAD", shown)
        try:
            scratch.run("bundle", "create", "--quiet", str(file), "--all")
        except GitError as error:
            full = shutil.disk_usage(file.parent).free < len(head.commit) or "No space left" in error.stderr
            reason = "the disk is full; free some space" if full else str(error)
            raise KlineageError(f"cannot write {file}: {reason}") from error


class Taken(KlineageError):
    """Another lineage, or another version of this one, has the name here; nothing was changed."""


def bundle_open(path: Path | str, workspace: Workspace, name: str = "", *, forward: bool = False) -> str:
    """Bring the lineage of a bundle into the workspace; returns its id there.

    name: what it is to be called there, where its own name is taken. Its commits stay what they are; only what could
    have been undone of it cannot be.
    forward: bring a copy up to date on which nothing has been decided here since it came.
    Opening the same bundle again changes nothing. Raises KlineageError, with nothing changed, when the file
    is not a bundle of one sound lineage, and Taken when another version of that lineage is here.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise KlineageError(f"{file} does not exist; give the file that klineage bundle create wrote")
    if not _is_bundle(file):
        raise KlineageError(f"{file} is not a git bundle; klineage bundle create writes one")
    commits = _heads(workspace.git, file)
    lineage_id = _only_lineage(file, commits)
    name = check_id(name or lineage_id)
    with scratch_repository(len(commits[refs.walk(lineage_id)])) as scratch:
        try:
            scratch.run("fetch", "--quiet", "--no-tags", str(file), "refs/*:refs/*")
            scratch.run("fsck", "--strict", "--no-dangling", "--no-progress")
        except GitError as error:
            raise KlineageError(f"{file} is damaged or incomplete ({error}); ask for it again") from error
        _check(file, Workspace(scratch.place, scratch), lineage_id)
        notes = {commit: store.blob(scratch, blob) for commit, blob in _notes(scratch).items()}
        here = _refs_of(workspace.git, name) if forward else {}
        before = here if _is_earlier(scratch, here, name) else {}
        scratch.close()
    commits.pop(refs.NOTES, None)
    _bring(file, workspace, name, _named(commits, lineage_id, name), notes, before)
    return name


def _is_earlier(scratch: Git, here: Mapping[str, str], name: str) -> bool:
    """Whether the lineage with these refs is an earlier version of the one in ``scratch``: its log goes on from ours, so
    that it remembers all that ours can show."""
    ours, theirs = here.get(refs.operations(name)), store.head(scratch, refs.operations(name))
    if not ours or not theirs or not all(scratch.object(commit) for commit in here.values()):
        return False
    return scratch.run("merge-base", ours, theirs, allow=(0, 1)).decode().strip() == ours


def bundle_here(path: Path | str, workspace: Workspace) -> str:
    """The id that the very lineage of a bundle has in the workspace already; "" where it is not there.

    Raises KlineageError when the file is no bundle of one lineage.
    """
    file = Path(path).absolute()
    if not file.is_file() or not _is_bundle(file):
        raise KlineageError(f"{file} is not a git bundle; klineage bundle create writes one")
    git, commits = workspace.git, _heads(workspace.git, file)
    own = _only_lineage(file, commits)
    head, tip = commits[refs.walk(own)], commits.get(refs.sealed(own), "")
    walks = store.each(git, refs.WALKS)
    same = [ref.removeprefix(refs.WALKS) for ref, raw in walks.items() if raw.commit == head]
    return next((found for found in same if store.head(git, refs.sealed(found)) == tip), "")


def _heads(git: Git, file: Path) -> dict[str, str]:
    """Ref to commit of everything that a bundle carries."""
    lines = git.run("bundle", "list-heads", str(file)).decode().split("\n")
    pairs = (line.split(" ", 1) for line in lines)
    return {ref: commit for commit, ref in (pair for pair in pairs if len(pair) == 2) if ref != "HEAD"}


def _refs_of(git: Git, lineage_id: str) -> dict[str, str]:
    """Ref to commit of all that is carried of a lineage."""
    own = (refs.walk, refs.sealed, refs.operations, refs.settled, refs.edits)
    names = [ref(lineage_id) for ref in own]
    return {ref: raw.commit for ref, raw in store.each(git, *names, refs.rejected(lineage_id)).items()}


def _named(commits: Mapping[str, str], lineage_id: str, name: str) -> dict[str, str]:
    """The refs of a lineage under another name; without its log, whose entries are about refs of the old one."""
    if name == lineage_id:
        return dict(commits)
    renamed = {ref(lineage_id): ref(name) for ref in (refs.walk, refs.sealed, refs.settled, refs.edits)}
    attempts = refs.rejected(lineage_id)
    return {
        renamed.get(ref) or refs.rejected(name) + ref.removeprefix(attempts): commit
        for ref, commit in commits.items()
        if ref != refs.operations(lineage_id)
    }


def _bring(
    file: Path,
    workspace: Workspace,
    lineage_id: str,
    commits: Mapping[str, str],
    notes: Mapping[str, bytes],
    before: Mapping[str, str],
) -> None:
    """before: the refs of the earlier version that goes forward; empty for none, whose refs are all new."""
    git = workspace.git
    with writing(git.place, lineage_id, partial(write.recover, git)) as held:
        here = {ref: store.head(git, ref) for ref in {*commits, *before}}
        if any(here[ref] not in ("", commits.get(ref), before.get(ref)) for ref in here):
            raise Taken(
                f"{workspace.path} has another version of {lineage_id}; klineage bundle open {file.name} --as NAME opens "
                "it beside that one, under another name"
            )
        git.run("bundle", "unbundle", str(file), keep_open=(held.descriptor,))
        merged = {commit: note for commit, note in notes.items() if not _has(git, commit, note)}
        if merged:
            noted = store.head(git, refs.NOTES)
            seconds = store.commit(git, commits[refs.walk(lineage_id)]).seconds
            with Importer(git, held, refs.NOTES, seconds) as importer:
                importer.commit(
                    f"Bring the gate reports of {lineage_id}\n",
                    {store.fan_out(commit): _union(git, commit, note) for commit, note in merged.items()},
                    [noted] if noted else [],
                    [path for commit in merged if (path := store.note_path(git, commit)[0])],
                )
                importer.finish()
        moves = [(ref, old, commits.get(ref, "")) for ref, old in here.items() if old != commits.get(ref, "")]
        write.move(git, held, moves)


def _only_lineage(file: Path, commits: Mapping[str, str]) -> str:
    """The id of the one lineage in a bundle that holds nothing else."""
    walks = [match[1] for ref in commits if (match := _WALK.fullmatch(ref))]
    if len(walks) != 1:
        raise KlineageError(f"{file} holds {len(walks) or 'no'} lineages; a bundle of klineage holds one")
    lineage_id = check_id(walks[0])
    foreign = [r for r in commits if not refs.belongs(r, lineage_id) and r != refs.operations(lineage_id)]
    if foreign:
        raise KlineageError(
            f"{file} also holds {foreign[0]}, which is no part of {lineage_id}; use git fetch"
        )
    return lineage_id


def _check(file: Path, inside: Workspace, lineage_id: str) -> None:
    """Raises KlineageError unless everything in a fetched bundle can be read as this lineage."""
    steps = inside.history(lineage_id)
    for step in [*steps, *inside.rejected(lineage_id), *inside.lineage(lineage_id)]:
        if step.id != lineage_id:
            raise KlineageError(f"{file} is not sound: commit {step.commit[:12]} belongs to {step.id!r}")
    if inside.meta(steps[-1].commit).id != lineage_id:
        raise KlineageError(f"{file} is not sound: lineage.json of {steps[-1].commit[:12]} has another id")
    inside.operations(lineage_id)
    inside.settled(lineage_id)
    inside.edits(lineage_id)


def _is_bundle(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return _SIGNATURE.match(stream.read(32)) is not None
    except OSError as error:
        raise KlineageError(f"cannot read {file}: {error.strerror}") from error


def _notes(git: Git) -> dict[str, str]:
    """Commit to the blob of its note."""
    if not store.head(git, refs.NOTES):
        return {}
    out = git.run("ls-tree", "-r", "-z", refs.NOTES).decode("utf-8", "replace")
    rows = (row.split("\t", 1) for row in out.split("\0") if row)
    return {path.replace("/", ""): info.split(" ")[2] for info, path in rows}


def _has(git: Git, commit: str, note: bytes) -> bool:
    return set(note.split(b"\n")) <= {*store.note_path(git, commit)[1].split(b"\n"), b""}


def _union(git: Git, commit: str, note: bytes) -> bytes:
    lines = store.note_path(git, commit)[1].split(b"\n") + note.split(b"\n")
    return b"".join(line + b"\n" for line in dict.fromkeys(lines) if line)
