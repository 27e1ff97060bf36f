"""Reading a workspace. Nothing here waits for a writer, and nothing here changes a byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from klineage.errors import KlineageError
from klineage.lineage import edits, lines, refs, settled, store
from klineage.lineage.edits import KeptEdit
from klineage.lineage.model import Meta, Operation, Step, Summary, check_id, moment
from klineage.lineage.operations import stacks
from klineage.lineage.plumbing import Git
from klineage.lineage.settled import Settlement

ABLATION_FILE = "ablation.json"
_LATEST = 253_402_300_799  # the last second of the year 9999


@dataclass(frozen=True)
class Draft:
    """What was being edited: ``name`` is the file, ``base`` the commit whose edit it is."""

    name: str
    data: bytes
    title: str
    base: str
    when: datetime


class Reader:
    """The reading half of a workspace."""

    def __init__(self, path: Path, git: Git) -> None:
        self.path = path
        self.git = git
        self._walks: dict[str, tuple[Step, ...]] = {}
        self._logs: dict[str, tuple[Operation, ...]] = {}

    def lineages(self) -> list[Summary]:
        """Every lineage here, most recently changed first; broken ones too, with what is broken."""
        found = store.each(self.git, refs.WALKS, refs.LINEAGES, refs.OPERATIONS)
        summaries = [
            self._summary(ref.removeprefix(refs.WALKS), raw, found)
            for ref, raw in found.items()
            if ref.startswith(refs.WALKS)
            and (refs.operations(ref.removeprefix(refs.WALKS)) in found or "\nLineage-Id: " in raw.message)
        ]
        for ref, raw in found.items():
            name = ref.removeprefix(refs.OPERATIONS)
            if name != ref and refs.walk(name) not in found and (problem := self._lost(name)):
                updated = moment(min(raw.seconds, _LATEST))
                summaries.append(Summary(name, name, None, 0, False, updated, problem))
        return sorted(summaries, key=lambda summary: summary.updated, reverse=True)

    def _summary(self, name: str, raw: store.RawCommit, found: Mapping[str, store.RawCommit]) -> Summary:
        log = found.get(refs.operations(name), raw)
        updated = moment(min(max(raw.seconds, log.seconds), _LATEST))
        try:
            head, meta = raw.step(), store.meta(self.git, raw.commit)
            tip = found.get(refs.sealed(name))
            sealed = tip is not None and tip.step().walk == raw.commit
        except KlineageError as error:
            return Summary(name, name, None, 0, False, updated, str(error))
        return Summary(name, meta.title, meta, head.number, sealed, updated)

    def head(self, lineage_id: str) -> Step:
        """The present state of the walk. Raises KlineageError when there is no such lineage."""
        return store.commit(self.git, self._need(lineage_id)).step()

    def history(self, lineage_id: str) -> list[Step]:
        """The walk, the expert first, the present state last."""
        head = self._need(lineage_id)
        steps = self._walks.get(lineage_id, ())
        if not steps or steps[-1].commit != head:
            steps = tuple(store.history(self.git, head))
            self._walks[lineage_id] = steps
        return list(steps)

    def root(self, lineage_id: str) -> str:
        """The first commit of the walk, also of one whose later commits cannot be read as steps."""
        head = self._need(lineage_id)
        return self.git.run("rev-list", "--first-parent", "--max-parents=0", head, "--").decode().strip()

    def rejected(self, lineage_id: str) -> list[Step]:
        """The rejected attempts, oldest first; ``parent`` is the state that each was tried on."""
        self._need(lineage_id)
        found = store.each(self.git, refs.rejected(lineage_id))
        return [raw.step() for _, raw in sorted(found.items(), key=lambda item: store.attempt(item[0]))]

    def lineage(self, lineage_id: str) -> list[Step]:
        """The sealed forward lineage, the naive kernel first; empty when it was never sealed."""
        self._need(lineage_id)
        tip = store.head(self.git, refs.sealed(lineage_id))
        return store.history(self.git, tip) if tip else []

    def sealed(self, lineage_id: str) -> bool:
        """Whether there is a forward lineage of the present state of the walk."""
        head, tip = self._need(lineage_id), store.head(self.git, refs.sealed(lineage_id))
        return bool(tip) and store.commit(self.git, tip).step().walk == head

    def commits(self, lineage_id: str) -> frozenset[str]:
        """Every commit of a lineage: its states, sealed ones, rejected attempts, and what its log remembers.

        Empty where there is no such lineage.
        """
        own = (refs.walk, refs.sealed, refs.operations)
        tips = [tip for ref in own if (tip := store.head(self.git, ref(check_id(lineage_id))))]
        tips += [raw.commit for raw in store.each(self.git, refs.rejected(lineage_id)).values()]
        return frozenset(self.git.run("rev-list", *tips, "--").decode().split()) if tips else frozenset()

    def step(self, commit: str) -> Step:
        """The step that a commit records."""
        return store.commit(self.git, commit).step()

    def meta(self, commit: str) -> Meta:
        """``lineage.json`` of a state."""
        return store.meta(self.git, commit)

    def read(self, commit: str) -> dict[str, bytes]:
        """The files of a state, byte for byte."""
        return store.files(self.git, commit)

    def reports(self, commit: str) -> list[str]:
        """The gate reports of a state, oldest first, as JSON texts."""
        return store.reports(self.git, commit)

    def operations(self, lineage_id: str) -> list[Operation]:
        """The operation log, oldest first."""
        head = store.head(self.git, refs.operations(check_id(lineage_id)))
        log = self._logs.get(lineage_id, ())
        if not log or log[-1].commit != head:
            log = tuple(store.operations(self.git, lineage_id))
            self._logs[lineage_id] = log
        return list(log)

    def undoable(self, lineage_id: str) -> str:
        """What ``undo`` would undo, e.g. "accept: Remove unrolling"; "" for nothing."""
        undo, _ = stacks(self.operations(lineage_id))
        return str(undo[-1]) if undo else ""

    def redoable(self, lineage_id: str) -> str:
        """What ``redo`` would redo; "" for nothing."""
        _, redo = stacks(self.operations(lineage_id))
        return str(redo[-1]) if redo else ""

    def settled(self, lineage_id: str) -> tuple[Settlement, ...]:
        """What persons said of mechanisms that no detector could tell, oldest first."""
        return settled.read(self.git, check_id(lineage_id))

    def edits(self, lineage_id: str) -> dict[tuple[str, str], KeptEdit]:
        """The forward edits that are kept, by the hashes of the simpler and of the richer kernel."""
        return edits.read(self.git, check_id(lineage_id))

    def ablation(self, lineage_id: str) -> bytes:
        """What ``keep_ablation`` kept last; empty where nothing is kept."""
        tip = store.head(self.git, refs.ablation(check_id(lineage_id)))
        return store.files(self.git, tip).get(ABLATION_FILE, b"") if tip else b""

    def sealed_at(self, lineage_id: str) -> str:
        """The last commit of the sealed lineage; "" where there is none."""
        return store.head(self.git, refs.sealed(check_id(lineage_id)))

    def blame(self, lineage_id: str) -> list[lines.BlameLine]:
        """For each line of the sealed lineage's last state, the step that wrote it."""
        steps = self.lineage(lineage_id)
        if not steps:
            raise KlineageError(
                f"{lineage_id} is not sealed yet; klineage seal {lineage_id} writes its lineage"
            )
        return lines.blame(self.git, steps, store.meta(self.git, steps[-1].commit).filename)

    def load_draft(self, lineage_id: str) -> Draft | None:
        """The draft, or None."""
        ref = refs.draft(check_id(lineage_id))
        if not store.head(self.git, ref):
            return None
        raw = store.commit(self.git, ref)
        files = store.files(self.git, raw.commit)
        if len(files) != 1:
            raise KlineageError(
                f"the draft of {lineage_id} is not klineage's; git update-ref -d {ref} clears it"
            )
        ((name, data),) = files.items()
        title = raw.message.partition("\n\n")[0]
        return Draft(
            name,
            data,
            "" if title == "Draft" else title,
            raw.parent,
            moment(raw.seconds),
        )

    def _need(self, lineage_id: str) -> str:
        head = store.head(self.git, refs.walk(check_id(lineage_id)))
        if not head:
            missing = f"there is no lineage {lineage_id!r} in {self.path}; klineage list shows them"
            raise KlineageError(self._lost(lineage_id) or missing)
        return head

    def _lost(self, lineage_id: str) -> str:
        """How to bring back a walk whose branch is gone, when the operation log knows where it stood."""
        ref = refs.walk(lineage_id)
        try:
            entries = self.operations(lineage_id)
        except KlineageError as error:
            return f"the branch of {lineage_id} is missing or broken, and so is its log: {error}"
        stood = [new for entry in entries for moved, _, new in entry.refs if moved == ref]
        if not stood or not stood[-1]:
            return ""
        last = next((commit for commit in reversed(stood) if commit and store.head(self.git, commit)), "")
        return (
            f"the branch of {lineage_id} is missing or broken; remove {self.git.place / ref} if it is there, then "
            f"git -C {self.path} update-ref {ref} {last} brings its last sound state back"
        )
