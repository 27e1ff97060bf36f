"""git's line operations, exact for every kind of line ending."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.lineage import Op, line_ops
from klineage.lineage.lines import split_lines

LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"x\ry\n", b"\xff\0\n", b"@@ -1 +1 @@\n"]), max_size=9
)
DATA = st.tuples(LINES, st.sampled_from([b"", b"end", b"\r", b"\\"])).map(
    lambda parts: b"".join(parts[0]) + parts[1]
)


@given(DATA, DATA)
@settings(max_examples=80, deadline=None)
def test_operations_cover_both_texts_and_turn_one_into_the_other(old: bytes, new: bytes) -> None:
    a, b = split_lines(old), split_lines(new)
    at_a = at_b = 0
    for op in line_ops(old, new):
        assert (op.a0, op.b0) == (at_a, at_b)
        at_a, at_b = op.a1, op.b1
        if op.tag == "equal":
            assert a[op.a0 : op.a1] == b[op.b0 : op.b1]
            assert op.a1 > op.a0
        else:
            expected = "insert" if op.a0 == op.a1 else "delete" if op.b0 == op.b1 else "replace"
            assert op.tag == expected
    assert (at_a, at_b) == (len(a), len(b))


@pytest.mark.parametrize(
    ("old", "new", "ops"),
    [
        (b"", b"", []),
        (b"", b"a\n", [Op("insert", 0, 0, 0, 1)]),
        (b"a\n", b"", [Op("delete", 0, 1, 0, 0)]),
        (b"a\nb", b"a\nb\n", [Op("equal", 0, 1, 0, 1), Op("replace", 1, 2, 1, 2)]),
        (b"a\nb\n", b"a\r\nb\n", [Op("replace", 0, 1, 0, 1), Op("equal", 1, 2, 1, 2)]),
        (
            b"a\nc\n",
            b"a\nb\nc\n",
            [Op("equal", 0, 1, 0, 1), Op("insert", 1, 1, 1, 2), Op("equal", 1, 2, 2, 3)],
        ),
    ],
)
def test_examples(old: bytes, new: bytes, ops: list[Op]) -> None:
    assert line_ops(old, new) == ops
