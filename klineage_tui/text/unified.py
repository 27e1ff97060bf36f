"""A unified diff as plain text, of two kernels' exact bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klineage.lineage import Op

CONTEXT = 3


def unified_diff(old: bytes, new: bytes, filename: str) -> str:
    """The diff as `git diff` prints it, without a trailing newline; empty when the bytes are equal."""
    from klineage.lineage import line_ops

    if old == new:
        return ""
    before, after = _lines(old), _lines(new)
    lines = [f"--- a/{filename}", f"+++ b/{filename}"]
    for group in _groups(line_ops(old, new)):
        lines += _hunk(group, before, after)
    return "\n".join(lines)


def _lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", errors="replace").split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


def _groups(ops: Sequence[Op]) -> Iterator[list[Op]]:
    """The changed ops, those that share context together."""
    group: list[Op] = []
    for op in ops:
        if op.tag == "equal":
            continue
        if group and op.a0 - group[-1].a1 > 2 * CONTEXT:
            yield group
            group = []
        group.append(op)
    if group:
        yield group


def _hunk(group: Sequence[Op], before: Sequence[str], after: Sequence[str]) -> list[str]:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first.a0, first.b0)
    tail = min(CONTEXT, len(before) - last.a1, len(after) - last.b1)
    a0, a1 = first.a0 - lead, last.a1 + tail
    b0, b1 = first.b0 - lead, last.b1 + tail
    lines = [f"@@ -{_range(a0, a1)} +{_range(b0, b1)} @@"]
    at = a0
    for op in group:
        lines += [" " + line for line in before[at : op.a0]]
        lines += ["-" + line for line in before[op.a0 : op.a1]]
        lines += ["+" + line for line in after[op.b0 : op.b1]]
        at = op.a1
    return lines + [" " + line for line in before[at:a1]]


def _range(start: int, end: int) -> str:
    """A range in a hunk header: 1-based, except that an empty one names the line before it."""
    return f"{start + 1 if end > start else start},{end - start}"
