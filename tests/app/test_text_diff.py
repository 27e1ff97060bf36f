"""Rows of a difference: both sides can be read back from them, in either layout."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klineage_tui.text.diff import WIDEST, Diff, Op, changed_words, paired

LINES = st.lists(st.sampled_from(["a", "b = 1", "b = 2", "for k in range(K):", "", "é\r"]), max_size=25)


def diff_of(old, new):
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return Diff(old, new, [Op(*code) for code in codes])


def read_back(rows):
    """The line numbers of both sides, in order, folds opened."""
    old, new = [], []
    for row in rows:
        if row.kind == "fold":
            old += range(row.old, row.old + row.hidden)
            new += range(row.new, row.new + row.hidden)
            continue
        if row.old is not None:
            old.append(row.old)
        if row.new is not None:
            new.append(row.new)
    return old, new


@given(LINES, LINES, st.sampled_from([None, 0, 1, 3]), st.booleans())
def test_both_sides_can_be_read_back(old, new, context, split):
    diff = diff_of(old, new)
    rows = diff.split(context) if split else diff.unified(context)
    assert read_back(rows) == (list(range(len(old))), list(range(len(new))))


@given(LINES, LINES, st.booleans())
def test_rows_that_claim_equality_are_equal(old, new, split):
    diff = diff_of(old, new)
    for row in diff.split(None) if split else diff.unified(None):
        if row.kind == "same":
            assert old[row.old] == new[row.new]


@given(st.text(max_size=80), st.text(max_size=80))
def test_lines_without_their_changed_words_are_equal_or_nothing_is_marked(old, new):
    a, b = changed_words(old, new)
    if a or b:
        assert _without(old, a).split() == _without(new, b).split() or _blanks_only(old, new, a, b)


def _without(text, ranges):
    kept, at = "", 0
    for start, end in ranges:
        kept += text[at:start] + " "
        at = end
    return kept + text[at:]


def _blanks_only(old, new, a, b):
    """Blanks between two marked words are marked with them on one side only."""
    strip = lambda text, ranges: "".join(_without(text, ranges).split())  # noqa: E731
    return strip(old, a) == strip(new, b)


def test_changed_words_are_words():
    old, new = "acc = tl.dot(a, b, acc)", "acc += tl.sum(a, b)"
    a, b = changed_words("num_stages=4, num_warps=8", "num_stages=1, num_warps=8")
    assert [("num_stages=4, num_warps=8")[s:e] for s, e in a] == ["4"]
    assert [("num_stages=1, num_warps=8")[s:e] for s, e in b] == ["1"]
    a, b = changed_words(old, new)
    assert "dot" in [old[s:e] for s, e in a]
    assert "sum" in [new[s:e] for s, e in b]


def test_lines_with_nothing_in_common_are_not_marked_word_by_word():
    assert changed_words("import torch", "}  // end") == ((), ())


def test_a_line_beyond_the_cap_is_not_compared():
    assert changed_words("x" * (WIDEST + 1), "x" * WIDEST + "y") == ((), ())


@pytest.mark.parametrize("noise", ["(", "a ", "()", "a,"])
def test_repetitive_lines_stay_cheap(noise):
    old = noise * (WIDEST // len(noise))
    new = old[1:] + "x"
    before, after = changed_words(old, new)  # would take minutes if compared token by token
    for words, line in ((before, old), (after, new)):
        assert all(0 <= start < end <= len(line) for start, end in words)


def test_a_replaced_line_stands_beside_what_it_became():
    old = ["tile = 64", "stages = 4"]
    new = ["# one tile", "tile = 32", "stages = 1"]
    assert paired(old, new) == [(None, 0), (0, 1), (1, 2)]


def test_far_lines_are_folded_and_can_be_opened():
    old = [str(i) for i in range(100)]
    new = [*old[:50], "new", *old[50:]]
    rows = diff_of(old, new).unified(3)
    assert [row.kind for row in rows] == ["fold", *["same"] * 3, "added", *["same"] * 3, "fold"]
    assert rows[0].hidden == 47
    opened = diff_of(old, new).unified(3, frozenset({0}))
    assert [row.kind for row in opened[:50]] == ["same"] * 50
