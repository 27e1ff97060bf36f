"""The operation log: which refs each decision moved, so that decisions can be undone and redone.

It only ever grows. An undo is one more operation that moves the refs back; what it leaves behind stays
reachable from the log, so that nothing is lost, not even to ``git gc --prune=now``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from klineage.errors import KlineageError
from klineage.lineage import refs
from klineage.lineage.message import one_line
from klineage.lineage.model import Operation

DECISIONS = ("accept", "reject", "seal", "settle")
Move = tuple[str, str, str]

_HASH = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_REF = re.compile(rf"(refs/\S+) (none|{_HASH}) (none|{_HASH})")


def format_operation(kind: str, title: str, moves: Sequence[Move], of: str = "") -> str:
    """The message of an operation's commit."""
    lines = [f"Operation-Ref: {ref} {old or 'none'} {new or 'none'}" for ref, old, new in moves]
    if of:
        lines.insert(0, f"Operation-Of: {of}")
    return f"{kind}: {one_line(title)}\n\n" + "\n".join(lines) + "\n"


def parse_operation(
    lineage_id: str, commit: str, author: str, when: datetime, message: str
) -> Operation | None:
    """The inverse of ``format_operation``; None when the commit is not an operation (the log ends there).

    Raises KlineageError when an operation would move refs that are not this lineage's.
    """
    subject, _, rest = message.partition("\n\n")
    kind, colon, title = subject.partition(": ")
    if not colon or not rest.startswith("Operation-"):
        return None
    moves: list[Move] = []
    of = ""
    for line in rest.rstrip("\n").split("\n"):
        key, _, value = line.partition(": ")
        match = _REF.fullmatch(value)
        if key == "Operation-Of":
            of = value
        elif key == "Operation-Ref" and match and refs.belongs(match[1], lineage_id):
            moves.append((match[1], match[2].replace("none", ""), match[3].replace("none", "")))
        else:
            raise KlineageError(f"operation {commit[:12]} of {lineage_id} is corrupt: {line[:80]!r}")
    return Operation(commit, kind, title, tuple(moves), of, author, when)


def stacks(log: Sequence[Operation]) -> tuple[list[Operation], list[Operation]]:
    """(what can be undone, what can be redone), the next one last."""
    undo: list[Operation] = []
    redo: list[Operation] = []
    for operation in log:
        if operation.kind in DECISIONS:
            undo.append(operation)
            redo.clear()
        elif operation.kind == "open":
            undo.clear()
            redo.clear()
        elif operation.kind == "undo" and undo:
            redo.append(undo.pop())
        elif operation.kind == "redo" and redo:
            undo.append(redo.pop())
    return undo, redo


def decided(operation: Operation) -> tuple[Move, ...]:
    """The moves that undo takes back: all but the notes, which belong to commits and not to decisions."""
    return tuple(move for move in operation.refs if move[0] != refs.NOTES)


def reverse(moves: Sequence[Move]) -> tuple[Move, ...]:
    return tuple((ref, new, old) for ref, old, new in moves)
