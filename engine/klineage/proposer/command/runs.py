"""Runs as they stand on the disk, so that one which a kill cuts off is told and charged, and its answer is not lost.

``<folder of the ledger>/runs/<call id>/`` holds ``run.json`` (who was asked about what, and in which folder), ``used.json``
(what the command has said so far that it used) and ``lock``, which whoever watches the run holds. A run that came to its end
leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.ledger import Ledger, Usage
from klineage.proposer.base import ProposerEvent, Task
from klineage.proposer.command.scratch import ANSWER, ANSWER_FILE
from klineage.proposer.command.streams import Facts, Stream
from klineage.proposer.folder import CallFolder

PREFIX = "klineage-"  # of the folders around those that commands work in
CUT_OFF = "it was cut off: klineage ended while it ran"


@dataclass
class Run:
    """One run that is being watched by this process."""

    folder: CallFolder
    lock: int

    def end(self) -> None:
        """Leave nothing behind: the ledger knows all that will ever be known."""
        shutil.rmtree(self.folder.path, ignore_errors=True)
        os.close(self.lock)


@dataclass
class Noted:
    """A stream whose facts are on the disk as soon as they are known."""

    stream: Stream
    run: Run
    _written: Facts

    @classmethod
    def of(cls, stream: Stream, run: Run) -> Noted:
        return cls(stream, run, replace(stream.facts))

    @property
    def facts(self) -> Facts:
        return self.stream.facts

    def read(self, line: str) -> list[ProposerEvent]:
        events = self.stream.read(line)
        if self.facts != self._written:
            self._written = replace(self.facts)
            usage = asdict(self.facts.usage) if self.facts.usage is not None else None
            dollars = None if self.facts.dollars is None else str(self.facts.dollars)
            self.run.folder.mark("used.json", json.dumps({"usage": usage, "dollars": dollars}))
        return events


def begin(ledger: Ledger, call: str, name: str, lineage: str, task: Task, folder: Path) -> Run:
    """Write a run down before it is reserved and made. Raises KlineageError where the disk refuses."""
    place = CallFolder(ledger.path.parent / "runs" / call)
    hidden = CallFolder(place.path.with_name(f".{call}"))
    record = _about(name, lineage, task) | {"folder": str(folder)}
    try:
        hidden.path.mkdir(parents=True, mode=0o700)
        hidden.mark("run.json", json.dumps(record))
        lock = hidden.take()
        assert lock is not None, "nobody else knows this folder"
        hidden.path.rename(place.path)
    except OSError as error:
        raise KlineageError(f"cannot make {place.path}: {error.strerror}; nothing was run") from error
    return Run(place, lock)


def recover(ledger: Ledger) -> None:
    """Charge every run that a kill has cut off with what it said that it used; keep those that had answered by then."""
    for run in _cut_off(ledger):
        if _has_answered(run):
            os.close(run.lock)
        else:
            _forget(run)


def answered(ledger: Ledger, name: str, lineage: str, task: Task) -> Iterator[tuple[str, Path]]:
    """(call, folder) of each run about this very task that had answered when it was cut off; gone once it was taken."""
    wanted = _about(name, lineage, task)
    for run in _cut_off(ledger):
        record = _read(run.folder.path / "run.json")
        if not _has_answered(run):
            _forget(run)
        elif {key: record.get(key) for key in wanted} != wanted:
            os.close(run.lock)
        else:
            try:
                yield run.folder.id, Path(str(record["folder"]))
            finally:
                _forget(run)


def _cut_off(ledger: Ledger) -> Iterator[Run]:
    """The runs that nobody watches any more, each locked and settled."""
    try:
        paths = sorted((ledger.path.parent / "runs").iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        folder = CallFolder(path)
        if path.name.startswith(".") or (lock := folder.take()) is None:
            continue
        entry = ledger.read().entry(folder.id)
        if entry is not None and entry.state == "open":
            used = _read(path / "used.json")
            ledger.settle(
                folder.id, _usage(used.get("usage")), CUT_OFF, dollars=_dollars(used.get("dollars"))
            )
        yield Run(folder, lock)


def _has_answered(run: Run) -> bool:
    folder = str(_read(run.folder.path / "run.json").get("folder") or "/nowhere")
    return (Path(folder) / ANSWER / ANSWER_FILE).is_file()


def _forget(run: Run) -> None:
    """Take a cut off run away, and the folder that it worked in with the one around it."""
    around = Path(str(_read(run.folder.path / "run.json").get("folder", ""))).parent
    if around.name.startswith(PREFIX):
        shutil.rmtree(around, ignore_errors=True)
    run.end()


def _about(name: str, lineage: str, task: Task) -> dict[str, Any]:
    """What makes two tasks one: the kernel, and for a forward edit the goal. Hints and failures may differ."""
    goal = hashlib.sha256(repr(task.goal).encode()).hexdigest()
    return {"name": name, "lineage": lineage, "kernel": task.kernel.hash, "goal": goal}


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _usage(record: object) -> Usage:
    try:
        return Usage(**record) if isinstance(record, dict) else Usage()
    except (TypeError, ValueError):
        return Usage()


def _dollars(text: object) -> Decimal | None:
    try:
        return Decimal(str(text)) if text is not None else None
    except InvalidOperation:
        return None
