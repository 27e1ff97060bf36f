"""One paid question to a model or a command, and what became of it: plain data, as it is kept on the disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from klineage.errors import KlineageError
from klineage.ledger import Usage

SCHEMA = 1

Status = Literal["answered", "failed", "impossible", "cancelled"]
Spent = Literal["exact", "nothing", "unknown"]


@dataclass(frozen=True)
class Question:
    """Everything that an answer depends on, and no secret.

    proposer: who is asked, as a step records it: ``model:<id>; prompt <hash>``. model: what the ledger prices.
    kernel:   hash of the kernel that is asked about. task: hash of what is asked about it, without what was
              tried before: an answer that was paid for can be offered again to the same task.
    told:     hash of what the proposer is told besides: what was tried, and the hint. Only to a question with the
              same is "nothing is left" an answer.
    worst:    more tokens than the call can use.
    body:     what is sent, as JSON.
    """

    proposer: str
    model: str
    lineage: str
    kernel: str
    task: str
    told: str
    worst: Usage
    body: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """Who is asked, in a word: ``model:<id>``."""
        return self.proposer.partition(";")[0]

    @property
    def hash(self) -> str:
        """64 hex digits over what is sent, and to whom."""
        return digest([self.proposer, self.body])

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Question:
        """The inverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        _check_schema(record)
        texts = {
            name: str(record[name]) for name in ("proposer", "model", "lineage", "kernel", "task", "told")
        }
        return cls(**texts, worst=Usage(**record["worst"]), body=dict(record["body"]))


@dataclass(frozen=True)
class Outcome:
    """What became of a question.

    status:  ``answered`` (whatever the text is worth), ``failed`` (this attempt is spent), ``impossible`` (no
             further attempt can mend it), ``cancelled`` (a person ended it).
    text:    the answer; of a failed call what had come. stop: why the text ends, in the API's word.
    problem: one sentence for a person; empty for an answer.
    usage:   what was used, where ``spent`` is ``exact``.
    files:   other results by name, e.g. what a command wrote.
    """

    status: Status
    text: str = field(default="", repr=False)
    stop: str = ""
    problem: str = ""
    spent: Spent = "nothing"
    usage: Usage = field(default_factory=Usage)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Outcome:
        """The inverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        _check_schema(record)
        if record["status"] not in get_args(Status) or record["spent"] not in get_args(Spent):
            raise ValueError(f"no such outcome: {record['status']!r}, {record['spent']!r}")
        files = {str(name): str(text) for name, text in record["files"].items()}
        texts = {name: str(record[name]) for name in ("text", "stop", "problem")}
        usage = Usage(**record["usage"])
        return cls(record["status"], spent=record["spent"], usage=usage, files=files, **texts)


@dataclass(frozen=True)
class Reply:
    """An outcome, the id of the call that it was paid with, and who was asked, as a step records it."""

    outcome: Outcome
    call: str
    proposer: str


def digest(value: object) -> str:
    """64 hex digits over a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _check_schema(record: Mapping[str, Any]) -> None:
    if record["schema"] != SCHEMA:
        raise KlineageError(
            f"its schema is {record['schema']!r}, this klineage reads {SCHEMA}; use a newer one"
        )
