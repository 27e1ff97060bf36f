"""The folder that a command works in: what it is given, where its answer goes, and what else it did there."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from klineage.proposer.answer import LARGEST, Answer, Unusable, answer_from
from klineage.proposer.base import Task
from klineage.proposer.command.instructions import task_text
from klineage.proposer.model.request import shown
from klineage.workload import WORKLOAD_FILE

TASK_FILE = "TASK.md"
WORK = "work"
ANSWER = "answer"
ANSWER_FILE = "answer.json"
_MANY = 10_000  # files of a folder that are looked at
_NAMED = 3


@dataclass(frozen=True)
class Scratch:
    """A prepared folder, alone in another. ``before``: digest of each file that was put there, by its path in the folder."""

    folder: Path
    kernel: str
    task: str
    before: Mapping[str, str]


def prepare(around: Path, task: Task, faults: Sequence[str] = ()) -> Scratch:
    """Put the kernel, the workload, the task and an empty place for the answer into a new folder in an empty one.

    faults: what was wrong with earlier answers to this task. The hidden size of the workload is not shown.
    """
    text = task_text(task, f"{ANSWER}/{task.kernel.filename}", f"{ANSWER}/{ANSWER_FILE}", faults)
    files = {
        task.kernel.filename: task.kernel.source,
        WORKLOAD_FILE: shown(task.workload).encode(),
        TASK_FILE: text.encode("utf-8", "surrogateescape"),
    }
    folder = around / WORK
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / ANSWER).mkdir()
    before = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return Scratch(folder, task.kernel.filename, text, before)


def left_behind(folder: Path, task: Task) -> Scratch:
    """The folder of a run about ``task`` that nobody watched to its end."""
    digest = hashlib.sha256(task.kernel.source).hexdigest()
    return Scratch(folder, task.kernel.filename, "", {task.kernel.filename: digest})


class Nothing(Exception):
    """The command says that no mechanism is left; the message is its reason."""


def read_answer(scratch: Scratch) -> tuple[Answer, bytes]:
    """The answer and the kernel in it.

    Raises Unusable for none, half of one, or two kernels; Nothing where it says that nothing is left.
    """
    place = scratch.folder / ANSWER
    names = (
        sorted(entry.name for entry in os.scandir(place)) if place.is_dir() and not place.is_symlink() else []
    )
    suffix = Path(scratch.kernel).suffix
    kernels = [name for name in names if name == scratch.kernel or Path(name).suffix == suffix]
    record = _record(place / ANSWER_FILE) if ANSWER_FILE in names else None
    if isinstance(record, dict) and not kernels and str(record.get("nothing", "")).strip():
        raise Nothing(" ".join(str(record["nothing"]).split())[:300])
    if not kernels:
        instead = "; it changed the kernel beside it, which is not taken" if _is_changed(scratch) else ""
        raise Unusable(f"it wrote no kernel to {ANSWER}/{scratch.kernel}{instead}")
    if len(kernels) > 1:
        raise Unusable(
            f"it answered with {len(kernels)} kernels ({', '.join(kernels[:_NAMED])}); one is asked for"
        )
    if ANSWER_FILE not in names:
        raise Unusable(f"it wrote a kernel and no {ANSWER}/{ANSWER_FILE} that says what it does")
    return answer_from(record), _read(place / kernels[0])


def _record(path: Path) -> object:
    try:
        return json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise Unusable(f"its {path.name} is not JSON: {str(error)[:120]}") from error


def _is_changed(scratch: Scratch) -> bool:
    found = _digest(scratch.folder / scratch.kernel)
    return bool(found) and found != scratch.before[scratch.kernel]


def meddling(scratch: Scratch) -> tuple[str, ...]:
    """What the command did in the folder beside its answer, and around the folder, a sentence each. None of it is taken."""
    now, complete = _files(scratch.folder)
    suffix = Path(scratch.kernel).suffix
    answers = {f"{ANSWER}/{ANSWER_FILE}", f"{ANSWER}/{scratch.kernel}"}
    answers |= {name for name in now if name.startswith(f"{ANSWER}/") and Path(name).suffix == suffix}
    changed = [name for name, digest in scratch.before.items() if name in now and now[name] != digest]
    removed = [name for name in scratch.before if name not in now and complete]
    made = [name for name in sorted(now) if name not in scratch.before and name not in answers]
    around, _ = _files(scratch.folder.parent, skipped=scratch.folder)
    made += [f"../{name}" for name in sorted(around)]
    done = (("changed", changed), ("removed", removed), ("made", made))
    return tuple(f"it {word} {_listed(names)}, which is not taken" for word, names in done if names)


def _files(folder: Path, skipped: Path | None = None) -> tuple[dict[str, str], bool]:
    """Digests of the files below ``folder`` by their path in it, without those below ``skipped``; and whether these are all."""
    found: dict[str, str] = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(where) / name != skipped]
        for name in sorted(names):
            if len(found) >= _MANY:
                return found, False
            path = Path(where) / name
            found[str(path.relative_to(folder))] = _digest(path)
    return found, True


def _digest(path: Path) -> str:
    """The digest of a plain file; of anything else what it is."""
    try:
        return hashlib.sha256(_read(path)).hexdigest()
    except Unusable as problem:
        return str(problem)


def _read(path: Path) -> bytes:
    """The bytes of a plain file that is no larger than a kernel. Never follows a link, never waits for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unusable(f"its {path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unusable(f"its {path.name} is not a plain file")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unusable(f"its {path.name} is larger than any kernel")
    return data


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
