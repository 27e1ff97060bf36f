"""What a lineage is made of, as plain frozen data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from klineage.errors import KlineageError
from klineage.kernel import SURFACES, Feature, Kernel, Surface

SCHEMA = 1
META_FILE = "lineage.json"
WORKLOAD_FILE = "workload.py"

_ID = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*")


def check_id(lineage_id: str) -> str:
    """The id itself. Raises KlineageError when it could not be the last part of a git branch everywhere."""
    if len(lineage_id) > 100 or not _ID.fullmatch(lineage_id) or lineage_id.endswith(".lock"):
        raise KlineageError(
            f"{lineage_id!r} cannot name a lineage; use lower-case letters, digits, '-', '_' and single dots"
        )
    return lineage_id


def is_plain_name(name: str) -> bool:
    """Whether ``name`` is that of a file in one folder, on its own and not git's."""
    return "/" not in name and "\0" not in name and name.lower() not in ("", ".", "..", ".git")


def moment(seconds: int) -> datetime:
    """The UTC time of a commit date. Raises ValueError for one that no calendar holds."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"no such date: {seconds}") from error


@dataclass(frozen=True)
class Meta:
    """What every state of a lineage shares; stored as ``lineage.json`` beside the kernel in each tree.

    ``config`` is the pinned autotune configuration and ``flags`` the extra C flags of *that* state.
    """

    id: str
    title: str
    surface: Surface
    platform: str
    workload: str
    filename: str
    entry: str
    config: tuple[tuple[str, int], ...] = ()
    flags: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """The bytes of ``lineage.json``: stable order, one field a line."""
        record = {
            "schema": SCHEMA,
            "id": self.id,
            "title": self.title,
            "surface": self.surface,
            "platform": self.platform,
            "workload": self.workload,
            "filename": self.filename,
            "entry": self.entry,
            "config": dict(self.config),
            "flags": list(self.flags),
        }
        return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")

    @classmethod
    def from_json(cls, data: bytes) -> Meta:
        """The inverse of ``to_json``. Raises ValueError with the reason when ``data`` is not one."""
        record = json.loads(data)
        if not isinstance(record, dict):
            raise ValueError("it is not a JSON object")  # noqa: TRY004 - bad data, not a bad call
        if record.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {record.get('schema')!r}, this klineage reads {SCHEMA}")
        names = ("id", "title", "surface", "platform", "workload", "filename", "entry")
        wrong = [name for name in names if not isinstance(record.get(name), str)]
        config, flags = record.get("config"), record.get("flags")
        if not isinstance(config, dict) or not all(type(v) is int for v in config.values()):
            wrong.append("config")
        if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
            wrong.append("flags")
        if not wrong and record["surface"] not in SURFACES:
            wrong.append("surface")
        if not wrong and not is_plain_name(record["filename"]):
            wrong.append("filename")
        if wrong or not isinstance(config, dict) or not isinstance(flags, list):
            raise ValueError(f"missing or wrong: {', '.join(wrong)}")
        values: dict[str, Any] = {name: record[name] for name in names}
        return cls(**values, config=tuple(config.items()), flags=tuple(flags))

    def kernel(self, source: bytes) -> Kernel:
        """The kernel of this lineage whose source is ``source``."""
        return Kernel(self.surface, self.filename, self.entry, source, self.config, self.flags)


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of a lineage.

    number:    0 is the expert on the walk (counted backward), the naive kernel on the sealed lineage.
    direction: "root", "backward" or "forward".
    decision:  "opened", "accepted", "edited", "rejected" or "sealed".
    parent:    the state that it was made from, "" for a root; for a rejected attempt, the state tried on.
    ratio:     candidate over baseline latency, above 1 is slower; None where nothing was timed.
    forward:   "derived" or "replayed" on sealed steps, else "".
    """

    commit: str
    parent: str
    number: int
    subject: str
    body: str
    direction: str
    action: str
    locus: str
    removes: tuple[Feature, ...]
    settings: Mapping[str, str]
    proposer: str
    decision: str
    who: str
    why: str
    gate: str
    compile: str
    correctness: str
    profile: str
    trust: str
    platform: str
    kernel: str
    effect: str
    ratio: float | None
    when: datetime
    forward: str = ""
    id: str = ""
    reverses: str = ""  # sealed steps: the backward commit that this one turns round
    walk: str = ""  # sealed steps: the head of the walk when it was sealed
    adds: tuple[Feature, ...] = ()  # forward steps: what ``removes`` is on backward ones
    found: str = ""  # sealed steps: who derived it and how that was confirmed, or why it is only replayed
    copies: str = ""  # steps of a branch: the commit of the lineage that it came from


@dataclass(frozen=True)
class StepRecord:
    """What a caller says about a step that it wants written. Free text is made safe, never trusted."""

    subject: str
    body: str = ""
    action: str = ""
    locus: str = ""
    removes: tuple[Feature, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    proposer: str = ""
    edited: bool = False
    who: str = ""
    why: str = ""
    gate: str = ""
    compile: str = ""
    correctness: str = ""
    profile: str = ""
    trust: str = ""
    platform: str = ""
    kernel: str = ""
    effect: str = ""
    ratio: float | None = None
    adds: tuple[Feature, ...] = ()


@dataclass(frozen=True)
class ForwardRecord:
    """One optimization put back: the record, the files of the state after it, and how it was found."""

    record: StepRecord
    files: Mapping[str, bytes]
    forward: str  # "derived" (independently of the diff) or "replayed" (the inverse of the diff)
    reverses: str = ""  # commit of the backward step
    report_json: str | None = None
    meta: Meta | None = None  # None: as in the state before
    found: str = ""  # who derived it and how that was confirmed, or why it is only replayed


@dataclass(frozen=True)
class Summary:
    """One lineage in a list. ``meta`` is None exactly when ``problem`` says what is broken."""

    id: str
    title: str
    meta: Meta | None
    steps: int  # accepted steps after the root
    sealed: bool  # a forward lineage exists and belongs to the present head of the walk
    updated: datetime
    problem: str = ""


@dataclass(frozen=True)
class Operation:
    """One entry of a lineage's operation log.

    refs: every ref that it moved, as (ref, from, to); "" stands for "did not exist".
    of:   for an undo or a redo, the operation that was undone or redone.
    """

    commit: str
    kind: str  # "open", "accept", "reject", "seal", "undo", "redo", "report"
    title: str
    refs: tuple[tuple[str, str, str], ...]
    of: str
    who: str
    when: datetime

    def __str__(self) -> str:
        return f"{self.kind}: {self.title}"
