"""The folder of one paid call, as both sides of it see it: ``<git dir>/klineage/calls/<id>/``.

| file           | written by | holds |
|----------------|------------|-------|
| ``question.json`` | the parent | what is asked |
| ``lock``       | the parent | held, by inheritance, for as long as the child lives |
| ``pid``        | the child  | its process, which leads a group of its own |
| ``sent``       | the child  | there from the moment before the first byte goes out |
| ``reply.jsonl``| the child  | the reply as it comes, one event a line |
| ``outcome.json`` | the child | how it ended; complete or absent |
| ``settled``    | either     | there once the ledger knows all that will ever be known |
| ``done``       | the parent | there once the answer needs not be offered again |
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.ledger import Ledger
from klineage.proposer.base import ProposerEvent
from klineage.proposer.question import Outcome, Question


class CallFolder:
    """One call on the disk. Methods raise KlineageError where the disk refuses, and OSError never."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def git_dir(self) -> Path:
        """The git directory that the folder is in."""
        return self.path.parents[2]

    def create(self, question: Question, client: dict[str, Any]) -> int:
        """Write down what is asked, and return the lock, held: nobody sees the folder before.

        client: how the child reaches the API; it may be shown.
        """
        hidden = CallFolder(self.path.with_name(f".{self.id}"))
        try:
            hidden.path.mkdir(parents=True, mode=0o700)
            hidden._write(
                "question.json", json.dumps({**question.to_json(), "client": client}, ensure_ascii=True)
            )
            lock = hidden.take()
            assert lock is not None, "nobody else knows this folder"
            hidden.path.rename(self.path)
        except OSError as error:
            raise KlineageError(f"cannot make {self.path}: {error.strerror}; nothing was spent") from error
        except KlineageError as error:
            shutil.rmtree(hidden.path, ignore_errors=True)  # nobody would ever look into it
            raise KlineageError(f"{error}; nothing was spent") from error
        return lock

    def question(self) -> Question | None:
        """What was asked; None where the folder does not say, e.g. after a kill while it was made."""
        record = self._read("question.json")
        try:
            return None if record is None else Question.from_json(record)
        except (KlineageError, KeyError, TypeError, ValueError):
            return None

    def client(self) -> dict[str, Any]:
        record = self._read("question.json") or {}
        return dict(record["client"])

    # -- who is at work -----------------------------------------------------------------------

    def take(self) -> int | None:
        """The lock as an open descriptor, to be inherited by the child; None while a child lives.

        Whoever holds it is the only one that may end the call.
        """
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise KlineageError(f"cannot write to {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def pid(self) -> int | None:
        try:
            return int((self.path / "pid").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def mark(self, name: str, text: str = "") -> None:
        """Write ``pid``, ``sent``, ``settled`` or ``done``; it is on the disk when this returns."""
        self._write(name, text)

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    # -- the reply ----------------------------------------------------------------------------

    def add(self, event: ProposerEvent) -> None:
        """Append a piece of the reply. Only the child does."""
        line = json.dumps({"kind": event.kind, "text": event.text}, ensure_ascii=True) + "\n"
        try:
            with (self.path / "reply.jsonl").open("a", encoding="ascii") as file:
                file.write(line)
        except OSError as error:
            raise KlineageError(f"cannot write {self.path / 'reply.jsonl'}: {error.strerror}") from error

    def events(self, offset: int) -> tuple[list[ProposerEvent], int]:
        """The whole lines of the reply from a byte offset on, and the offset behind them."""
        try:
            with (self.path / "reply.jsonl").open("rb") as file:
                file.seek(offset)
                data = file.read()
        except FileNotFoundError:
            return [], offset
        whole = data[: data.rfind(b"\n") + 1]
        found = [json.loads(line) for line in whole.splitlines()]
        return [ProposerEvent(e["kind"], e["text"]) for e in found], offset + len(whole)

    def outcome(self) -> Outcome | None:
        """How it ended; None while it has not, or where nobody can say."""
        record = self._read("outcome.json")
        try:
            return None if record is None else Outcome.from_json(record)
        except (KlineageError, KeyError, TypeError, ValueError):
            return None

    def finish(self, outcome: Outcome) -> Outcome:
        """Write the outcome down, then settle the call; only the holder of the lock does.

        Both may be done again after a kill in between; the first outcome stays, and is returned.
        """
        first = self.outcome()
        if first is None:
            self._write("outcome.json", json.dumps(outcome.to_json(), ensure_ascii=True))
        settle(Ledger.of(self.git_dir), self.id, first or outcome)
        self.mark("settled")
        return first or outcome

    # -- files --------------------------------------------------------------------------------

    def _write(self, name: str, text: str) -> None:
        """All of it or nothing, whatever happens meanwhile."""
        path = self.path / name
        scratch = path.with_name(f"{name}.{os.getpid()}.new")
        try:
            with scratch.open("w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise KlineageError(f"cannot write {path}: {error.strerror}") from error

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.path / name).read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None


def settle(ledger: Ledger, call_id: str, outcome: Outcome) -> None:
    """Tell the ledger what a call has used. What nobody knows stays there, at most its worst case."""
    if outcome.spent == "exact":
        ledger.settle(call_id, outcome.usage, outcome.status)
    elif outcome.spent == "nothing":
        ledger.release(call_id, outcome.problem or outcome.status)
