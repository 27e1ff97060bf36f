"""Some changes of a proposal and not the others, to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.lineage import changes, line_ops, take_hunks
from klineage.lineage.lines import split_lines

from .test_lines import DATA


@given(DATA, DATA, st.data())
@settings(max_examples=80, deadline=None)
def test_all_give_the_proposal_none_the_head_and_some_exactly_these(
    old: bytes, new: bytes, data: st.DataObject
) -> None:
    ops = line_ops(old, new)
    count = len(changes(ops))
    everything = set(range(1, count + 1))
    assert take_hunks(old, new, ops, everything) == new
    assert take_hunks(old, new, ops, set()) == old
    chosen = data.draw(st.sets(st.sampled_from(sorted(everything)))) if everything else set()
    part = take_hunks(old, new, ops, chosen)
    a, b, lines = split_lines(old), split_lines(new), split_lines(part)
    at = number = 0
    for op in ops:
        number += op.tag != "equal"
        expected = b[op.b0 : op.b1] if number in chosen and op.tag != "equal" else a[op.a0 : op.a1]
        assert lines[at : at + len(expected)] == expected
        at += len(expected)
    assert at == len(lines)


def test_line_endings_and_a_missing_last_newline_stay_as_they_are() -> None:
    old = b"one\r\ntwo\r\nthree\r\nfour"
    new = b"ONE\r\ntwo\nthree\r\nfour\r\n"
    ops = line_ops(old, new)
    assert take_hunks(old, new, ops, {1}) == b"ONE\r\ntwo\nthree\r\nfour"
    assert take_hunks(old, new, ops, {2}) == b"one\r\ntwo\r\nthree\r\nfour\r\n"


@pytest.mark.parametrize("chosen", [{0}, {3}, {1, 9}, {-1}])
def test_a_number_without_a_change_is_refused(chosen: set[int]) -> None:
    old, new = b"a\nb\nc\n", b"A\nb\nC\n"
    with pytest.raises(KlineageError, match="no change number"):
        take_hunks(old, new, line_ops(old, new), chosen)
