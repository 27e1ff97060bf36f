"""What git says about lines: which changed between two texts, and who wrote each."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from klineage.errors import KlineageError
from klineage.lineage.model import Step
from klineage.lineage.plumbing import Git
from klineage.lineage.scratch import scratch_repository

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Op:
    """Lines ``a0:a1`` of the old text became lines ``b0:b1`` of the new one (counted from 0, half open)."""

    tag: Literal["equal", "replace", "delete", "insert"]
    a0: int
    a1: int
    b0: int
    b1: int


@dataclass(frozen=True, slots=True)
class BlameLine:
    """One line, with its line ending, and the step that wrote it."""

    text: bytes
    step: Step


def split_lines(data: bytes) -> list[bytes]:
    """Lines as git counts them: each ends after its LF; only the last may lack one."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def line_ops(old: bytes, new: bytes) -> list[Op]:
    """The line operations from ``old`` to ``new`` by git's histogram diff, covering both completely.

    A missing newline at the end and a CR are differences like any other.
    """
    if old == new:
        size = len(split_lines(old))
        return [Op("equal", 0, size, 0, size)] if size else []
    ops: list[Op] = []
    a = b = 0
    for a0, a1, b0, b1 in _hunks(old, new):
        if a0 > a:
            ops.append(Op("equal", a, a0, b, b0))
        ops.append(Op("delete" if b0 == b1 else "insert" if a0 == a1 else "replace", a0, a1, b0, b1))
        a, b = a1, b1
    end = len(split_lines(old))
    if end > a:
        ops.append(Op("equal", a, end, b, b + end - a))
    return ops


def _hunks(old: bytes, new: bytes) -> list[tuple[int, int, int, int]]:
    try:
        with tempfile.TemporaryDirectory(prefix="klineage-") as name:
            folder = Path(name)
            (folder / "a").write_bytes(old)
            (folder / "b").write_bytes(new)
            out = Git(None, folder).run(
                "diff", "--no-index", "--histogram", "--indent-heuristic", "-U0", "--inter-hunk-context=0",
                "--text", "--no-color", "--no-ext-diff", "--no-textconv", "a", "b", allow=(0, 1),
            )  # fmt: skip
    except OSError as error:
        raise KlineageError(
            f"cannot compare two states: {error.strerror} in {tempfile.gettempdir()}"
        ) from error
    hunks = []
    for match in _HUNK.finditer(out):
        a0, b0 = int(match[1]), int(match[3])
        a_size, b_size = int(match[2] or b"1"), int(match[4] or b"1")
        # A hunk of no lines is numbered by the line before it, the others by their first line.
        a0, b0 = a0 - (a_size > 0), b0 - (b_size > 0)
        hunks.append((a0, a0 + a_size, b0, b0 + b_size))
    return hunks


def blame(git: Git, steps: Sequence[Step], filename: str) -> list[BlameLine]:
    """For each line of ``filename`` in the last of ``steps``, the one of them that wrote it."""
    writers = {step.commit: step for step in steps}
    with scratch_repository(len(steps[-1].commit), git.place / "objects") as plain:
        # The user's repository may name a blame.ignoreRevsFile, which no option can take back.
        out = plain.run("blame", "--porcelain", "--no-textconv", steps[-1].commit, "--", filename)
    lines: list[BlameLine] = []
    writer = steps[-1]
    for line in split_lines(out):
        if line.startswith(b"\t"):
            lines.append(BlameLine(line[1:], writer))
        elif (found := writers.get(line.partition(b" ")[0].decode("ascii", "replace"))) is not None:
            writer = found
    return lines
