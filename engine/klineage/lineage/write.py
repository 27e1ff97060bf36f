"""Writing: objects and the operation first, in one ``git fast-import``; then the refs, in one transaction.

The commit point is a single ref, the operation log. Killed before it, nothing has happened; killed after
it, the next writer finds the operation and moves the remaining refs as it says (``recover``).
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import refs, store
from klineage.lineage.importer import Importer
from klineage.lineage.lock import Held
from klineage.lineage.operations import Move, format_operation
from klineage.lineage.plumbing import Git, GitError


class Moved(KlineageError):
    """Somebody else has decided meanwhile: what a decision was about is not the head any more."""

    def __init__(self, sentence: str = "another klineage has moved this lineage; reload") -> None:
        super().__init__(sentence)


class Batch:
    """The reports and the moves of one operation, while its objects are being written."""

    def __init__(self, git: Git, importer: Importer) -> None:
        self.importer = importer
        self._git = git
        self._moves: list[Move] = []
        self._notes_before = self._notes = store.head(git, refs.NOTES)

    def move(self, ref: str, old: str, new: str) -> None:
        self._moves.append((ref, old, new))

    def report(self, commit: str, *reports: str | None) -> None:
        """Add gate reports to the notes of ``commit``, those that it has already left out.

        A step that is undone and taken again within a second is the same commit, with its reports.
        Raises ValueError when one is not JSON.
        """
        texts = [json.dumps(json.loads(report), ensure_ascii=False) for report in reports if report]
        path, old = store.note_path(self._git, commit)
        known = old.decode("utf-8", "replace").split("\n")
        texts = [text for text in dict.fromkeys(texts) if text not in known]
        if not texts:
            return
        content = old + b"\n" * bool(old and not old.endswith(b"\n")) + "\n".join([*texts, ""]).encode()
        self._notes = self.importer.commit(
            f"Add a gate report to {commit[:12]}\n",
            {store.fan_out(commit): content},
            parents=[self._notes] if self._notes else [],
            remove=[path] if path else [],
        )

    @property
    def moves(self) -> list[Move]:
        """All of them; that of the notes last."""
        notes = (refs.NOTES, self._notes_before, self._notes)
        return self._moves + ([notes] if self._notes != self._notes_before else [])


def operate(
    git: Git,
    held: Held,
    importer: Importer,
    lineage_id: str,
    kind: str,
    title: str,
    moves: Sequence[Move],
    of: str = "",
) -> None:
    """Log an operation and make its moves; afterwards all have happened, or none.

    Raises KlineageError when a ref is no longer where ``moves`` says.
    """
    log = refs.operations(lineage_id)
    before = store.head(git, log)
    kept = [hash_ for ref, old, new in moves if ref != refs.NOTES for hash_ in (new, old) if hash_]
    parents = list(dict.fromkeys(([before] if before else []) + kept))
    importer.commit(format_operation(kind, title, moves, of), {}, parents, inherit=False)
    held.unfinished = True
    importer.finish()
    try:
        move(git, held, moves)
    except GitError as error:
        back = [(log, store.head(git, log), before)]
        move(git, held, back)
        held.unfinished = False
        raise _explain(error) from error
    held.unfinished = False


def move(git: Git, held: Held | None, moves: Sequence[Move]) -> None:
    """Move refs from their old to their new places ("": no ref), all or none."""
    lines = [b"start\0"]
    for ref, old, new in moves:
        zero = "0" * len(old or new)
        verb = f"update {ref}\0{new}\0{old or zero}\0" if new else f"delete {ref}\0{old}\0"
        lines.append(verb.encode())
    lines.append(b"prepare\0commit\0")
    git.run(
        "update-ref", "--no-deref", "-m", "klineage", "--stdin", "-z", data=b"".join(lines),
        keep_open=(held.descriptor,) if held else (),
    )  # fmt: skip


def _explain(error: GitError) -> KlineageError:
    if re.search(
        r"is at \S+ but expected|reference already exists|unable to resolve reference", error.stderr
    ):
        return Moved()
    exists = re.search(r"'([^']+)' exists; cannot create '([^']+)'", error.stderr)
    if exists:
        return KlineageError(
            f"{exists[1]} is in the way of {exists[2]}; rename it with git branch -m, nothing was changed"
        )
    return error


def recover(git: Git, held: Held) -> None:
    """Finish what a killed writer had committed to. Refs that others have moved since are left alone."""
    assert held.interrupted is not None
    lineage_id, since = held.interrupted
    _remove_stale_locks(git.place, lineage_id, since)
    last = next(store.log_of(git, lineage_id), None)
    for ref, old, new in last.refs if last else ():
        if store.head(git, ref) == old and (not new or git.object(new)):
            move(git, held, [(ref, old, new)])


def _remove_stale_locks(git_dir: Path, lineage_id: str, since: float) -> None:
    """Locks that a killed git left. We hold the workspace, so no git of klineage's can still own one."""
    ours = [refs.walk, refs.sealed, refs.operations, refs.draft, refs.settled, refs.edits]
    locks = [git_dir / f"{name(lineage_id)}.lock" for name in ours]
    locks += [git_dir / f"{ref}.lock" for ref in (refs.NOTES, refs.LIBRARY)]
    locks += (git_dir / refs.rejected(lineage_id)).glob("*.lock")
    shared = [git_dir / "packed-refs.lock", git_dir / "HEAD.lock"]
    if any(_taken(lock, since) for lock in shared):
        time.sleep(1.0)  # a living git would be done with these by then
    for lock in locks + shared:
        if _taken(lock, since):
            lock.unlink(missing_ok=True)


def _taken(lock: Path, since: float) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return lock.stat().st_mtime >= since - 1.0
    return False
