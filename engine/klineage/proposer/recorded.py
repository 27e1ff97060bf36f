"""The lines of a recording, and what they stand for: one JSON object a line, readable, without secrets.

| line       | holds |
|------------|-------|
| ``recording`` | the first one: schema, version of klineage, when it was made |
| ``question`` | what a proposer was asked: kernel, workload, platform, features, tried, hint, goal |
| ``event``  | a piece of the answer as it came |
| ``attempt``| one answer: the candidate, or the problem; beside it the raw call, where it was a paid one |
| ``end``    | the proposer had nothing more to say to the question |
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.kernel import Feature, Kernel
from klineage.proposer.base import Attempt, Task
from klineage.proposer.candidate import Candidate
from klineage.proposer.secrets import redacted

SCHEMA = 1
KINDS = ("recording", "question", "event", "attempt", "end")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

Record = dict[str, Any]


def question_record(task: Task) -> Record:
    """What a proposer is asked, as a line says it."""
    return {
        "kernel": _kernel(task.kernel),
        "workload": {"name": task.workload.name, "hash": task.workload.hash},
        "platform": task.platform,
        "features": [str(feature) for feature in task.features],
        "tried": [asdict(tried) for tried in task.tried],
        "hint": task.hint,
        "goal": None
        if task.goal is None
        else {**asdict(task.goal), "adds": [str(feature) for feature in task.goal.adds]},
    }


def compared(question: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for a recorded question to be the same one, by what a person calls it.

    What the detectors see follows from the kernel. Numbers in reasons are not compared: each gate draws fresh
    secret inputs, and says what it measured on them.
    """
    tried = [[t["title"], t["action"], t["locus"], t["kernel"]] for t in question["tried"]]
    return {
        "the kernel": question["kernel"]["hash"],
        "the workload": question["workload"]["hash"],
        "the platform": question["platform"],
        "what was tried before": tried,
        "the hint": _NUMBER.sub("#", question["hint"]),
        "the goal": question["goal"],
    }


def check(kind: str, value: Any) -> None:
    """Raises KeyError, TypeError, ValueError or AttributeError for a line that has not the form of its kind."""
    if kind == "question":
        compared(value)
        kernel, workload, goal = value["kernel"], value["workload"], value["goal"]
        "".join((kernel["hash"], kernel["surface"], workload["name"], workload["hash"], value["hint"]))
        "".join(() if goal is None else (goal["action"],))
    elif kind == "event":
        "".join((value["kind"], value["text"]))
    elif kind == "attempt":
        with suppress(
            KlineageError
        ):  # it has the right form; why it is not replayed is said when it is its turn
            attempt_from(value)


def attempt_record(attempt: Attempt) -> Record:
    """An answer as a line says it."""
    candidate = attempt.candidate
    said = None if candidate is None else {
        "action": candidate.action, "locus": candidate.locus, "title": candidate.title,
        "rationale": candidate.rationale, "removes": [str(feature) for feature in candidate.removes],
        "settings": dict(candidate.settings), "preconditions": list(candidate.preconditions),
        "config": None if candidate.config is None else [list(pair) for pair in candidate.config],
        "proposer": candidate.proposer, "source": _text(candidate.source),
        "source_hash": hashlib.sha256(candidate.source).hexdigest(),
    }  # fmt: skip
    return {
        "proposer": attempt.proposer, "problem": attempt.problem, "notes": list(attempt.notes),
        "call": attempt.call, "candidate": said,
    }  # fmt: skip


def attempt_from(record: Mapping[str, Any]) -> Attempt:
    """The answer of a line, marked as replayed; it has cost nothing.

    Raises KlineageError for code that is not what was recorded or that a person signed, and KeyError, TypeError,
    ValueError or AttributeError for a line of another form.
    """
    said = record["candidate"]
    candidate = None
    if said is not None:
        if said["proposer"].startswith("person"):
            raise KlineageError("a recording cannot speak for a person; it was edited")
        source = _bytes(said["source"])
        if hashlib.sha256(source).hexdigest() != said["source_hash"]:
            raise KlineageError(
                "its code is not what was recorded: a secret was removed from it, or it was edited"
            )
        candidate = Candidate(
            action=str(said["action"]), locus=str(said["locus"]), title=" ".join(str(said["title"]).split()),
            rationale=str(said["rationale"]), source=source,
            removes=tuple(Feature.parse(text) for text in said["removes"]),
            settings={str(name): str(value) for name, value in said["settings"].items()},
            preconditions=tuple(map(str, said["preconditions"])),
            config=None if said["config"] is None else tuple((str(n), int(v)) for n, v in said["config"]),
            proposer=_replayed(said["proposer"]),
        )  # fmt: skip
    notes = tuple(map(str, record["notes"]))
    return Attempt(_replayed(record["proposer"]), candidate, str(record["problem"]), notes=notes)


def line_of(kind: str, value: object) -> str:
    """One line of a recording, with secrets removed from every text in it."""
    return json.dumps({kind: _clean(value)}, ensure_ascii=False) + "\n"


def read_lines(path: Path) -> list[tuple[int, str, Any]]:
    """The lines of a recording: number, kind, value. The end of a line that a kill has cut off is left out.

    Raises KlineageError, naming the file and the line, for anything that is no recording.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise KlineageError(f"cannot read the recording {path}: {reason}") from problem
    whole, _, _ = text.rpartition("\n")
    lines = [
        _line(path, number, line) for number, line in enumerate(whole.split("\n"), start=1) if line.strip()
    ]
    if not lines or lines[0][1] != "recording":
        raise KlineageError(f"{path} is not a recording; klineage record ID FILE makes one")
    return lines


def _line(path: Path, number: int, line: str) -> tuple[int, str, Any]:
    try:
        record = json.loads(line)
        kind, value = next(iter(record.items()))
        if kind not in KINDS:
            raise ValueError(kind)
        if kind == "recording" and value["schema"] != SCHEMA:
            raise KlineageError(
                f"{path}: its schema is {value['schema']!r}, this klineage reads {SCHEMA}; use the version that made it"
            )
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise KlineageError(f"{path}, line {number}: this is no line of a recording") from error
    return number, kind, value


def _kernel(kernel: Kernel) -> Record:
    return {
        "hash": kernel.hash, "surface": kernel.surface, "filename": kernel.filename, "entry": kernel.entry,
        "config": [list(pair) for pair in kernel.config], "flags": list(kernel.flags), "source": _text(kernel.source),
    }  # fmt: skip


def _text(source: bytes) -> str | Record:
    """Bytes as text, or as base64 where they are none."""
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(source).decode("ascii")}


def _bytes(text: str | Mapping[str, str]) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else base64.b64decode(text["base64"], validate=True)


def _replayed(proposer: object) -> str:
    return f"{str(proposer).removesuffix('; replayed')}; replayed"


def _clean(value: object) -> object:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {str(key): _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value
