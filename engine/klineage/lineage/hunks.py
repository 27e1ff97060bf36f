"""Taking a part of a change: some of its hunks and not the others, to the byte."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from klineage.errors import KlineageError
from klineage.lineage.lines import Op, split_lines


def changes(ops: Sequence[Op]) -> list[Op]:
    """The operations that change something: what a person chooses from, numbered from 1."""
    return [op for op in ops if op.tag != "equal"]


def take_hunks(old: bytes, new: bytes, ops: Sequence[Op], chosen: Collection[int]) -> bytes:
    """``old`` with the chosen changes of ``new``: all of them give ``new`` and none give ``old``, byte for byte.

    ops:    ``line_ops(old, new)``, which cover both sides.
    chosen: numbers of changes, from 1, in the order of the text.
    Raises KlineageError for a number that there is no change of.
    """
    count = len(changes(ops))
    if strange := sorted(set(chosen) - set(range(1, count + 1))):
        there = f"{count} change{'' if count == 1 else 's'}"
        raise KlineageError(f"there is no change number {strange[0]}; the proposal has {there}, from 1")
    before, after = split_lines(old), split_lines(new)
    taken: list[bytes] = []
    number = 0
    for op in ops:
        number += op.tag != "equal"
        from_new = op.tag != "equal" and number in chosen
        taken += after[op.b0 : op.b1] if from_new else before[op.a0 : op.a1]
    return b"".join(taken)
