"""A workspace: one git repository, and everything that klineage does to it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import edits, lock, refs, settled, store, write
from klineage.lineage.edits import KeptEdit
from klineage.lineage.importer import Importer
from klineage.lineage.lock import Held, writing
from klineage.lineage.message import Stamp, format_step, one_line
from klineage.lineage.model import META_FILE, ForwardRecord, Meta, Step, StepRecord, check_id, is_plain_name
from klineage.lineage.operations import decided, reverse, stacks
from klineage.lineage.plumbing import Git, discover, user_identity
from klineage.lineage.reading import ABLATION_FILE, Reader
from klineage.lineage.settled import Settlement


class Workspace(Reader):
    """Reads never wait; a write is one transaction, complete when the method returns."""

    def __init__(self, path: Path, git: Git, clock: Callable[[], float] = time.time) -> None:
        super().__init__(path, git)
        self._clock = clock
        self._signed = False

    @classmethod
    def open(cls, path: Path | str, clock: Callable[[], float] = time.time) -> Workspace:
        """The workspace of the repository that ``path`` is in, as the last complete write left it.

        Raises KlineageError when there is no repository.
        """
        where = Path(path).absolute()
        workspace = cls(where, Git(discover(where)), clock)
        workspace._recover()
        return workspace

    @classmethod
    def create(cls, path: Path | str, clock: Callable[[], float] = time.time) -> Workspace:
        """A new workspace at ``path``, or the one that is already exactly there."""
        where = Path(path).absolute()
        if not (where / ".git").exists() and not (where / "HEAD").is_file():
            try:
                where.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise KlineageError(f"cannot make the folder {where}: {error.strerror}") from error
            try:
                Git(None, where).run("init", "--quiet", "--template=", str(where))
            except KlineageError:
                shutil.rmtree(where / ".git", ignore_errors=True)  # half of one would bar the next attempt
                raise
        return cls.open(where, clock)

    def close(self) -> None:
        """End the background git process."""
        self.git.close()

    @contextmanager
    def _writing(self, lineage_id: str) -> Iterator[Held]:
        with writing(self.git.place, lineage_id, partial(write.recover, self.git)) as held:
            self.sign()
            yield held

    def sign(self) -> None:
        """Let what is written from now on carry the user's name."""
        if not self._signed:
            self.git.sign(*user_identity(self.git.place))
            self._signed = True

    def now(self) -> int:
        """Seconds since 1970 by this workspace's clock."""
        return int(self._clock())

    def _recover(self) -> None:
        """Finish the write that a killed klineage had begun. Every write does this first, too."""
        if lock.interrupted(self.git.place) and os.access(self.git.place, os.W_OK):
            with self._writing("-"):
                pass

    def new(self, meta: Meta, files: Mapping[str, bytes], who: str = "", report_json: str | None = None,
            record: StepRecord | None = None) -> Step:  # fmt: skip
        """Open a lineage at an expert kernel. ``files``: the kernel and ``workload.py``, byte for byte.

        Raises KlineageError when the id is taken.
        """
        ref = refs.walk(check_id(meta.id))
        said = record or StepRecord(f"Open {meta.title}")
        said = replace(said, who=who or said.who, platform=said.platform or meta.platform)
        message = format_step(Stamp(meta.id, 0, "root", "opened"), said)
        with self._writing(meta.id) as held:
            if store.head(self.git, ref):
                raise KlineageError(
                    f"there is a lineage {meta.id!r} already in {self.path}; choose another id"
                )
            with self._operation(held, meta.id, "open", said.subject) as batch:
                commit = batch.importer.commit(message, _tree(files, meta), inherit=False)
                batch.report(commit, report_json)
                batch.move(ref, "", commit)
        return self.step(commit)

    def accept(self, lineage_id: str, record: StepRecord, files: Mapping[str, bytes],
               report_json: str | None = None, expected_head: str | None = None,
               meta: Meta | None = None) -> Step:  # fmt: skip
        """Take one simplification. ``files`` are those that changed; ``meta`` where the configuration did.

        Raises KlineageError when the walk is no longer at ``expected_head``.
        """
        decision = "edited" if record.edited else "accepted"
        with self._writing(lineage_id) as held:
            before = self._expect(lineage_id, expected_head)
            stamp = Stamp(before.id, before.number + 1, "backward", decision)
            with self._operation(held, lineage_id, "accept", record.subject) as batch:
                commit = batch.importer.commit(
                    format_step(stamp, record), _tree(files, meta, before.id), [before.commit]
                )
                batch.report(commit, report_json)
                batch.move(refs.walk(lineage_id), before.commit, commit)
        return self._remember(lineage_id, self.step(commit))

    def reject(self, lineage_id: str, record: StepRecord, files: Mapping[str, bytes],
               report_json: str | None = None, on: str | None = None,
               meta: Meta | None = None) -> Step:  # fmt: skip
        """Keep an attempt that was turned down, on the state ``on`` (None: the head) that it was tried on."""
        with self._writing(lineage_id) as held:
            before = self._expect(lineage_id, None) if on is None else self.step(on)
            stamp = Stamp(before.id, before.number + 1, "backward", "rejected")
            taken = store.each(self.git, refs.rejected(lineage_id))
            number = 1 + max(map(store.attempt, taken), default=0)
            with self._operation(held, lineage_id, "reject", record.subject) as batch:
                commit = batch.importer.commit(
                    format_step(stamp, record), _tree(files, meta, before.id), [before.commit]
                )
                batch.report(commit, report_json)
                batch.move(f"{refs.rejected(lineage_id)}{number}", "", commit)
        return self.step(commit)

    def seal(self, lineage_id: str, forward: Sequence[ForwardRecord], who: str = "", why: str = "",
             expected_head: str | None = None) -> list[Step]:  # fmt: skip
        """Write the forward lineage: the head of the walk as the naive root, then one commit a record.

        Raises KlineageError when the walk is no longer at ``expected_head``.
        """
        with self._writing(lineage_id) as held:
            naive = self._expect(lineage_id, expected_head)
            old = store.head(self.git, refs.sealed(lineage_id))
            root = StepRecord(
                "Start from the simplest kernel", who=who, why=why, gate=naive.gate, compile=naive.compile,
                correctness=naive.correctness, trust=naive.trust, platform=naive.platform,
                kernel=naive.kernel,
            )  # fmt: skip
            title = f"{len(forward)} optimizations, naive first"
            with self._operation(held, lineage_id, "seal", title) as batch:
                stamp = Stamp(naive.id, 0, "root", "sealed", walk=naive.commit)
                tip = batch.importer.commit(format_step(stamp, root), store.tree(self.git, naive.commit))
                batch.report(tip, *self.reports(naive.commit))
                for number, item in enumerate(forward, 1):
                    stamp = Stamp(
                        naive.id,
                        number,
                        "forward",
                        "sealed",
                        item.forward,
                        item.reverses,
                        naive.commit,
                        item.found,
                    )
                    said = replace(item.record, who=item.record.who or who)
                    files = _tree(item.files, item.meta, naive.id)
                    tip = batch.importer.commit(format_step(stamp, said), files, [tip])
                    batch.report(tip, item.report_json)
                batch.move(refs.sealed(lineage_id), old, tip)
        return self.lineage(lineage_id)

    def add_report(self, commit: str, report_json: str, lineage_id: str = "") -> None:
        """Note one more gate report on a state, e.g. of another platform.

        lineage_id: the lineage, where it may have another name here than its commits say.
        """
        step = self.step(commit)
        name = lineage_id or step.id
        with self._writing(name) as held, self._operation(held, name, "report", step.subject) as batch:
            batch.report(commit, report_json)

    def settle(self, lineage_id: str, said: Settlement, expected_head: str | None = None) -> Settlement:
        """Keep a person's word on a mechanism, in place of an earlier one on the same question.

        Raises KlineageError when the walk is no longer at ``expected_head``.
        """
        ref = refs.settled(check_id(lineage_id))
        with self._writing(lineage_id) as held:
            self._expect(lineage_id, expected_head)
            said = replace(said, who=said.who or self.git.identity[0])
            title = f"{said.feature} is {said.state}"
            files = {settled.SETTLED_FILE: settled.to_json(settled.with_one(self.settled(lineage_id), said))}
            before = store.head(self.git, ref)
            with self._operation(held, lineage_id, "settle", title) as batch:
                why = f"Settle: {one_line(title)}\n\n{one_line(said.why)}\n"
                commit = batch.importer.commit(why, files, [before] if before else [], inherit=False)
                batch.move(ref, before, commit)
        return said

    def keep_edit(self, lineage_id: str, edit: KeptEdit) -> None:
        """Keep a forward edit, in place of an earlier one between the same kernels."""
        ref = refs.edits(check_id(lineage_id))
        with self._writing(lineage_id) as held:
            filename = self.meta(self._need(lineage_id)).filename
            files = edits.files_of({**self.edits(lineage_id), edit.key: edit}, filename)
            before = store.head(self.git, ref)
            title = f"a forward edit by {edit.proposer}"
            with self._operation(held, lineage_id, "edit", title) as batch:
                commit = batch.importer.commit(
                    f"Keep {one_line(title)}\n", files, [before] if before else [], inherit=False
                )
                batch.move(ref, before, commit)

    def keep_ablation(self, lineage_id: str, data: bytes) -> None:
        """Keep what the optimizations of a lineage were found to be worth alone, in place of what was kept before."""
        self._need(lineage_id)
        ref = refs.ablation(lineage_id)
        with self._writing(lineage_id) as held, self._importer(held, ref, force=True) as importer:
            importer.commit("Keep an ablation\n", {ABLATION_FILE: data}, inherit=False)
            importer.finish()

    def undo(self, lineage_id: str) -> str:
        """Take back the last decision; returns what it was. Raises KlineageError when there is none."""
        return self._turn(lineage_id, "undo")

    def redo(self, lineage_id: str) -> str:
        """Take the last undone decision again; returns what it was. Raises KlineageError if none."""
        return self._turn(lineage_id, "redo")

    def _turn(self, lineage_id: str, kind: str) -> str:
        self._need(lineage_id)
        with self._writing(lineage_id) as held:
            undo, redo = stacks(self.operations(lineage_id))
            stack = undo if kind == "undo" else redo
            if not stack:
                raise KlineageError(f"there is nothing to {kind} in {lineage_id}")
            target = stack[-1]
            moves = reverse(decided(target)) if kind == "undo" else decided(target)
            for ref, old, _ in moves:
                if store.head(self.git, ref) != old:
                    raise KlineageError(f"cannot {kind} {target}: {ref} was moved by another tool since")
            with self._operation(held, lineage_id, kind, str(target), target.commit) as batch:
                for ref, old, new in moves:
                    batch.move(ref, old, new)
        return str(target)

    def save_draft(self, lineage_id: str, name: str, data: bytes, title: str = "") -> None:
        """Keep what is being edited, on the present state. It replaces the draft before."""
        base = self._need(lineage_id)
        ref = refs.draft(lineage_id)
        with self._writing(lineage_id) as held, self._importer(held, ref, force=True) as importer:
            importer.commit(
                f"{one_line(title) or 'Draft'}\n\nDraft-Of: {base}\n",
                _tree({name: data}, None),
                [base],
                inherit=False,
            )
            importer.finish()

    def clear_draft(self, lineage_id: str) -> None:
        """Forget the draft, if there is one."""
        ref = refs.draft(check_id(lineage_id))
        if not store.head(self.git, ref):
            return
        with self._writing(lineage_id) as held:
            write.move(self.git, held, [(ref, store.head(self.git, ref), "")])

    def _importer(self, held: Held, ref: str, force: bool = False) -> Importer:
        return Importer(self.git, held, ref, self.now(), force)

    @contextmanager
    def _operation(
        self, held: Held, lineage_id: str, kind: str, title: str, of: str = ""
    ) -> Iterator[write.Batch]:
        """Collect one operation; it happens when the block ends, and not at all when the block raises."""
        with self._importer(held, refs.operations(lineage_id)) as importer:
            batch = write.Batch(self.git, importer)
            yield batch
            write.operate(self.git, held, importer, lineage_id, kind, title, batch.moves, of)

    def _expect(self, lineage_id: str, expected: str | None) -> Step:
        head = self._need(lineage_id)
        if expected is not None and head != expected:
            raise write.Moved
        steps = self._walks.get(lineage_id, ())
        return steps[-1] if steps and steps[-1].commit == head else store.commit(self.git, head).step()

    def _remember(self, lineage_id: str, step: Step) -> Step:
        steps = self._walks.get(lineage_id, ())
        if steps and steps[-1].commit == step.parent:
            self._walks[lineage_id] = (*steps, step)
        return step


def _tree(files: Mapping[str, bytes], meta: Meta | None, own_id: str = "") -> dict[str, bytes]:
    """The files of a commit. Raises KlineageError for a name that is not that of a plain file.

    own_id: what the lineage's commits call it, where that may be another name than the one that it has here.
    """
    for name in files:
        if not is_plain_name(name) or name.lower() == META_FILE:
            raise KlineageError(f"{name!r} cannot be a file of a lineage; give it another name")
    if meta is None:
        return dict(files)
    return {**files, META_FILE: replace(meta, id=own_id or meta.id).to_json()}
