"""From line operations to rows: unified or side by side, folded, with the changed words of paired lines.

Which lines differ is git's answer (histogram); this module only arranges it. Applying the rows in
order gives both sides back, which the tests hold it to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal, NamedTuple, Protocol

WIDEST = 2_000  # columns: beyond, a line gets no word differences
TALLEST = 200  # lines of a replaced block: beyond, its lines are not compared with each other
_PAIRED = 40  # lines a side: beyond, a replaced block is paired in order, not by likeness
_PRODUCT = 60_000  # tokens times tokens: beyond, only a common start and end are taken off
_ALIKE = 0.35  # share of equal characters below which two lines have nothing to do with each other

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)

Words = tuple[tuple[int, int], ...]


class LineOp(Protocol):
    """One operation: lines ``a0:a1`` of the old text become ``b0:b1`` of the new one."""

    @property
    def tag(self) -> str: ...  # "equal", "replace", "delete" or "insert"
    @property
    def a0(self) -> int: ...
    @property
    def a1(self) -> int: ...
    @property
    def b0(self) -> int: ...
    @property
    def b1(self) -> int: ...


class Op(NamedTuple):
    """A ``LineOp`` made here (the engine has its own)."""

    tag: str
    a0: int
    a1: int
    b0: int
    b1: int


class Row(NamedTuple):
    """One row of a difference; line indices count from 0.

    ``same`` has both lines; ``removed`` the old, ``added`` the new; ``pair`` (side by side only) an old
    line and what became of it; ``fold`` hides ``hidden`` equal lines, the first being ``old`` / ``new``.
    ``other`` is the counterpart of a removed or added line in its replaced block.
    """

    kind: Literal["same", "removed", "added", "pair", "fold"]
    old: int | None
    new: int | None
    other: int | None = None
    hidden: int = 0


@dataclass(frozen=True)
class Diff:
    """Two texts as lines, with the operations between them. Words are compared when asked for."""

    old: Sequence[str]
    new: Sequence[str]
    ops: Sequence[LineOp]
    _pairs: dict[int, list[tuple[int | None, int | None]]] = field(default_factory=dict, repr=False)
    _words: dict[tuple[int, int], tuple[Words, Words]] = field(default_factory=dict, repr=False)

    @property
    def added(self) -> int:
        return sum(op.b1 - op.b0 for op in self.ops if op.tag != "equal")

    @property
    def removed(self) -> int:
        return sum(op.a1 - op.a0 for op in self.ops if op.tag != "equal")

    def unified(self, context: int | None = 3, unfolded: frozenset[int] = frozenset()) -> list[Row]:
        """Rows in one column. ``context`` equal lines stay around a change; None folds nothing.

        ``unfolded`` holds the old-line index of each fold that the reader opened.
        """
        rows: list[Row] = []
        for index, op in enumerate(self.ops):
            if op.tag == "equal":
                rows += self._equal(index, op, context, unfolded)
                continue
            partner = dict(self._block(index)) if op.tag == "replace" else {}
            back = {new: old for old, new in partner.items() if new is not None}
            rows += [Row("removed", i, None, partner.get(i)) for i in range(op.a0, op.a1)]
            rows += [Row("added", None, j, back.get(j)) for j in range(op.b0, op.b1)]
        return rows

    def split(self, context: int | None = 3, unfolded: frozenset[int] = frozenset()) -> list[Row]:
        """Rows in two columns: what was replaced stands beside what replaced it."""
        rows: list[Row] = []
        for index, op in enumerate(self.ops):
            if op.tag == "equal":
                rows += self._equal(index, op, context, unfolded)
            elif op.tag == "replace":
                for old, new in self._block(index):
                    kind: Literal["pair", "removed", "added"] = (
                        "added" if old is None else "removed" if new is None else "pair"
                    )
                    rows.append(Row(kind, old, new))
            else:
                rows += [Row("removed", i, None) for i in range(op.a0, op.a1)]
                rows += [Row("added", None, j) for j in range(op.b0, op.b1)]
        return rows

    def words(self, old: int, new: int) -> tuple[Words, Words]:
        """The changed characters of an old and a new line, as (start, end) ranges in each."""
        key = (old, new)
        if key not in self._words:
            self._words[key] = changed_words(self.old[old], self.new[new])
        return self._words[key]

    def _block(self, index: int) -> list[tuple[int | None, int | None]]:
        if index not in self._pairs:
            op = self.ops[index]
            self._pairs[index] = [
                (None if i is None else op.a0 + i, None if j is None else op.b0 + j)
                for i, j in paired(self.old[op.a0 : op.a1], self.new[op.b0 : op.b1])
            ]
        return self._pairs[index]

    def _equal(self, index: int, op: LineOp, context: int | None, unfolded: frozenset[int]) -> Iterator[Row]:
        length = op.a1 - op.a0
        head = 0 if index == 0 else context or 0
        tail = 0 if index == len(self.ops) - 1 else context or 0
        hidden = length - head - tail
        # A fold takes a row itself, so hiding a single line gains nothing.
        if context is None or hidden < 2 or op.a0 + head in unfolded:
            head, hidden = length, 0
        for k in range(head):
            yield Row("same", op.a0 + k, op.b0 + k)
        if hidden:
            yield Row("fold", op.a0 + head, op.b0 + head, hidden=hidden)
            for k in range(head + hidden, length):
                yield Row("same", op.a0 + k, op.b0 + k)


def paired(old: Sequence[str], new: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Which old line became which new one, in order; an unmatched line stands alone.

    Small blocks are matched by likeness, larger ones line by line.
    """
    if len(old) == len(new) or max(len(old), len(new)) > _PAIRED:
        shared = min(len(old), len(new))
        if max(len(old), len(new)) > TALLEST:
            shared = 0
        return [
            *((i, i) for i in range(shared)),
            *((i, None) for i in range(shared, len(old))),
            *((None, j) for j in range(shared, len(new))),
        ]
    return _aligned(old, new)


def _aligned(old: Sequence[str], new: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """The order-keeping matching of greatest likeness (dynamic programming over at most 40 x 40)."""
    bags = [set(_TOKEN.findall(line[:WIDEST])) for line in (*old, *new)]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    likeness = [[_likeness(bags[i], bags[len(old) + j]) for j in range(len(new))] for i in range(len(old))]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + likeness[i][j])
    pairs: list[tuple[int | None, int | None]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if likeness[i][j] and best[i][j] == best[i + 1][j + 1] + likeness[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    pairs += [(k, None) for k in range(i, len(old))]
    pairs += [(None, k) for k in range(j, len(new))]
    return pairs


def _likeness(a: set[str], b: set[str]) -> float:
    union = sum(len(token) for token in a | b if not token.isspace())
    common = sum(len(token) for token in a & b if not token.isspace())
    share = common / union if union else 0.0
    return share if share >= _ALIKE / 2 else 0.0


def changed_words(old: str, new: str) -> tuple[Words, Words]:
    """The words that differ between two lines; none at all when the lines have too little in common."""
    if max(len(old), len(new)) > WIDEST or old == new:
        return (), ()
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(inner_a) * len(inner_b) > _PRODUCT:
        blocks = [("replace", 0, len(inner_a), 0, len(inner_b))]
    else:
        blocks = list(SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_opcodes())
    kept = sum(len(token.strip()) for token in (*a[:start], *a[len(a) - end :]))
    kept += sum(len(t.strip()) for tag, i, j, _, _ in blocks if tag == "equal" for t in inner_a[i:j])
    if kept < _ALIKE * max(len(old.replace(" ", "")), len(new.replace(" ", ""))):
        return (), ()
    changed = [block for block in blocks if block[0] != "equal"]
    return (
        _ranges(a, [(start + i0, start + i1) for _, i0, i1, _, _ in changed]),
        _ranges(b, [(start + j0, start + j1) for _, _, _, j0, j1 in changed]),
    )


def _ranges(tokens: Sequence[str], parts: Sequence[tuple[int, int]]) -> Words:
    """Token ranges as character ranges; empty ones go, and those with only blanks between join."""
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    merged: list[tuple[int, int]] = []
    last = -1
    for first, end in parts:
        if first == end:
            continue
        if merged and all(token.isspace() for token in tokens[last:first]):
            merged[-1] = (merged[-1][0], offsets[end])
        else:
            merged.append((offsets[first], offsets[end]))
        last = end
    return tuple(merged)
