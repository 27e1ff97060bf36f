"""A unified diff as plain text, of two kernels' exact bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klineage.lineage import Op

CONTEXT = 3


def unified_diff(old: bytes, new: bytes, filename: str, *, numbered: bool = False) -> str:
    """The diff as `git diff` prints it, without a trailing newline; empty when the bytes are equal.

    numbered: every change has a header of its own that says its number (see ``klineage.lineage.take_hunks``).
    """
    from klineage.lineage import changes, line_ops

    if old == new:
        return ""
    before, after = _lines(old), _lines(new)
    lines = [f"--- a/{filename}", f"+++ b/{filename}"]
    ops = line_ops(old, new)
    if not numbered:
        for group in _groups(ops):
            lines += _hunk(group, before, after)
        return "\n".join(lines)
    single = changes(ops)
    shown = 0  # lines of the old text that stand in a hunk already
    for number, op in enumerate(single, 1):
        end = single[number].a0 if number < len(single) else len(before)
        header, *rest = _hunk([op], before, after, (shown, end))
        lines += [f"{header} change {number} of {len(single)}", *rest]
        shown = min(op.a1 + CONTEXT, end)
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


def _hunk(
    group: Sequence[Op], before: Sequence[str], after: Sequence[str], room: tuple[int, int] | None = None
) -> list[str]:
    """One hunk. ``room``: the lines of the old text that it may show."""
    first, last = group[0], group[-1]
    start, end = room or (0, len(before))
    lead = min(CONTEXT, first.a0 - start, first.b0)
    tail = min(CONTEXT, end - last.a1, len(after) - last.b1)
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
