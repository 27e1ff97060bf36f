"""What the commits of a library say: who decided what about which cards, and why.

A library's branch only grows. Undo is one more commit, which names the commit that it takes back, so that a branch
that others have pulled never moves backward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from klineage.lineage.message import one_line, paragraphs

SCHEMA = 1

Kind = Literal["begin", "edit", "evidence", "pull", "snapshot", "undo", "redo"]
"""``evidence`` is what machines add (probes, trials): it is no decision, and undo passes over it."""

_KINDS: tuple[str, ...] = get_args(Kind)
_DECISIONS = ("edit", "pull", "")
_TRAILER = re.compile(r"Library-([A-Z][a-z]+): (.*)")


@dataclass(frozen=True)
class Word:
    """What a commit of a library says, before it is one.

    title:  its subject, ``Edit c.prefetch: intent``; reason: in the editor's own words, may be empty.
    of:     for an undo or a redo, the commit that it takes back or takes again.
    source: for a pull or a snapshot, what tells one source from another.
    """

    title: str
    reason: str = ""
    kind: Kind = "edit"
    of: str = ""
    source: str = ""

    def text(self) -> str:
        """The commit message. No title or reason can forge a trailer: only the last paragraph holds them."""
        trailers = [
            ("Kind", self.kind),
            ("Of", self.of),
            ("Source", one_line(self.source)),
            ("Schema", str(SCHEMA)),
        ]
        block = "\n".join(f"Library-{key}: {value}" for key, value in trailers if value)
        parts = (one_line(self.title) or "Edit the library", paragraphs(self.reason), block)
        return "\n\n".join(part for part in parts if part) + "\n"


@dataclass(frozen=True)
class Revision:
    """One commit of a library.

    revision: of a card's history: the hash of the card's file after it, "" where the file went away.
    kind:     "" for a commit made with plain git, which counts as an edit.
    """

    commit: str
    parents: tuple[str, ...]
    who: str
    when: datetime
    title: str
    reason: str
    kind: str
    of: str = ""
    source: str = ""
    revision: str = ""


def read(commit: str, parents: str, who: str, when: datetime, message: str) -> Revision:
    """The inverse of ``Word.text``, for the commit that it became; total, also for messages of plain git."""
    body, _, block = message.rstrip("\n").rpartition("\n\n")
    found = [_TRAILER.fullmatch(line) for line in block.split("\n")]
    values = {match[1]: match[2] for match in found if match}
    if not all(found) or values.get("Kind") not in _KINDS:
        body, values = message, {}
    title, _, reason = body.strip("\n").partition("\n\n")
    return Revision(
        commit, tuple(parents.split()), who, when, title, reason.strip("\n"),
        values.get("Kind", ""), values.get("Of", ""), values.get("Source", ""),
    )  # fmt: skip


def stacks(log: Iterable[Revision]) -> tuple[Sequence[Revision], Sequence[Revision]]:
    """(what can be undone, what can be redone), the next one last. ``log``: oldest first, along first parents."""
    undo: list[Revision] = []
    redo: list[Revision] = []
    for entry in log:
        if entry.kind == "undo" and undo and undo[-1].commit == entry.of:
            redo.append(undo.pop())
        elif entry.kind == "redo" and redo and redo[-1].commit == entry.of:
            undo.append(redo.pop())
        elif entry.kind in _DECISIONS:
            undo.append(entry)
            redo.clear()
    return undo, redo


def undone(log: Iterable[Revision]) -> list[Revision]:
    """The decisions that stand undone, oldest first. ``log``: oldest first, along first parents."""
    entries = list(log)
    out: set[str] = set()
    for entry in entries:
        if entry.kind == "undo":
            out.add(entry.of)
        elif entry.kind == "redo":
            out.discard(entry.of)
    return [entry for entry in entries if entry.commit in out]
