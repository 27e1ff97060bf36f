"""A new lineage that shares the history of another up to a state, and goes on by itself.

Its commits are copies: the same kernels, decisions, authors, dates and reports under its own id, each naming
the commit that it copies. So it can be undone, sealed and carried in a bundle like any other, and the lineage
that it comes from is not touched.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from klineage.errors import KlineageError
from klineage.lineage import refs, settled, store, write
from klineage.lineage.importer import Importer
from klineage.lineage.lock import writing
from klineage.lineage.model import META_FILE, Step, check_id
from klineage.lineage.plumbing import Git
from klineage.lineage.workspace import Workspace


def branch_create(workspace: Workspace, lineage_id: str, commit: str, new_id: str) -> Step:
    """Start ``new_id`` at a state of ``lineage_id``: a step of its walk, or a rejected attempt, which is then accepted.

    The attempts that were rejected on the shared states come along, and what was settled on them. Returns the new
    head. Raises KlineageError when the id is taken or the lineage has no such state.
    """
    ref = refs.walk(check_id(new_id))
    shared = _shared(workspace, lineage_id, commit)
    git = workspace.git
    with writing(git.place, new_id, partial(write.recover, git)) as held:
        if store.head(git, ref):
            raise KlineageError(
                f"there is a lineage {new_id!r} already in {workspace.path}; choose another id"
            )
        workspace.sign()
        with Importer(git, held, refs.operations(new_id), workspace.now()) as importer:
            batch = write.Batch(git, importer)
            copies: dict[str, str] = {}
            for step in shared:
                copies[step.commit] = _copy(
                    git, batch, step, new_id, copies.get(step.parent, ""), accepted=True
                )
            for number, step in enumerate(_rejected(workspace, lineage_id, copies), start=1):
                copy = _copy(git, batch, step, new_id, copies[step.parent])
                batch.move(f"{refs.rejected(new_id)}{number}", "", copy)
            _words_and_edits(workspace, batch, lineage_id, new_id, copies)
            head = copies[shared[-1].commit]
            batch.move(ref, "", head)
            title = f"Branch from {lineage_id} at step {shared[-1].number}: {shared[-1].subject}"
            write.operate(git, held, importer, new_id, "open", title, batch.moves)
    return workspace.step(head)


def _shared(workspace: Workspace, lineage_id: str, commit: str) -> list[Step]:
    """The steps from the expert to the state, in order."""
    walk = workspace.history(lineage_id)
    attempt = next((step for step in workspace.rejected(lineage_id) if step.commit == commit), None)
    last = attempt.parent if attempt else commit
    for index, step in enumerate(walk):
        if step.commit == last:
            return walk[: index + 1] + ([attempt] if attempt else [])
    raise KlineageError(
        f"{commit[:12]} is no state of the walk of {lineage_id}; klineage log {lineage_id} --backward lists them"
    )


def _rejected(workspace: Workspace, lineage_id: str, copies: dict[str, str]) -> list[Step]:
    """The attempts on the shared states, but for one that is a state itself now."""
    found = workspace.rejected(lineage_id)
    return [step for step in found if step.parent in copies and step.commit not in copies]


def _words_and_edits(
    workspace: Workspace, batch: write.Batch, lineage_id: str, new_id: str, copies: dict[str, str]
) -> None:
    """What persons settled on the shared states, and the forward edits between kernels, which any walk may use."""
    said = [replace(word, at=copies[word.at]) for word in workspace.settled(lineage_id) if word.at in copies]
    if said:
        message = f"Bring what was settled in {lineage_id}\n"
        files = {settled.SETTLED_FILE: settled.to_json(said)}
        batch.move(refs.settled(new_id), "", batch.importer.commit(message, files, inherit=False))
    if kept := store.head(workspace.git, refs.edits(lineage_id)):
        batch.move(refs.edits(new_id), "", kept)


def _copy(
    git: Git, batch: write.Batch, step: Step, new_id: str, parent: str, *, accepted: bool = False
) -> str:
    """The commit of the copy of a step, on ``parent`` ("": it is the first)."""
    raw = store.commit(git, step.commit)
    meta = store.meta(git, step.commit)
    files: dict[str, bytes | str] = dict(store.tree(git, step.commit))
    copied = replace(meta, id=new_id)
    commit = batch.importer.commit(
        _renamed(raw.message, new_id, step, accepted),
        {**files, META_FILE: copied.to_json()},
        [parent] if parent else [],
        inherit=False,
        author=store.author(git, step.commit),
    )
    batch.report(commit, *store.reports(git, step.commit))
    return commit


def _renamed(message: str, new_id: str, step: Step, accepted: bool) -> str:
    """The message of a step under another id; all else to the letter, but that a rejected attempt is accepted."""
    text, _, block = message.rstrip("\n").rpartition("\n\n")
    lines = []
    for line in block.split("\n"):
        key, _, value = line.partition(": ")
        if key == "Lineage-Id":
            lines += [f"{key}: {new_id}", f"Lineage-Copies: {step.commit}"]
        elif key == "Lineage-Decision" and accepted and value.startswith("rejected"):
            lines.append(f"{key}: accepted{value.removeprefix('rejected')}")
        elif key != "Lineage-Copies":
            lines.append(line)
    return f"{text}\n\n" + "\n".join(lines) + "\n"
