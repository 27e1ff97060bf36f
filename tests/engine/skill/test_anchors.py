"""Anchors: found again in other code, and never an error where they are not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.skill.anchors import find_anchor
from klineage.skill.anchors.making import acted, common_anchor
from klineage.skill.transitions import Transition

SUM = '((for_statement) @anchor\n (#has-descendant? @anchor "assignment_expression" "^s"))'


def c(text: str) -> Kernel:
    return Kernel("c", "kernel.c", "f", text.encode())


LOOPS = c(
    """void f(float *a, float s, int n) {
    for (int i = 0; i < n; ++i)
        s += a[i];
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < 4; ++j)
            a[j] = 0;
    }
}
"""
)


def test_a_query_finds_places_with_their_names_and_lines() -> None:
    (place,) = find_anchor(SUM, LOOPS)
    assert (place.locus, place.line, place.last_line) == ("kernel.c::f/for[i]", 2, 3)
    assert LOOPS.source[place.start : place.end].startswith(b"for (int i")


def test_no_match_and_ten_are_answers() -> None:
    loop = "    for (int i = 0; i < n; ++i) s += a[i];\n"
    ten = c("void f(float *a, float s, int n) {\n" + 10 * loop + "}\n")
    assert len(find_anchor(SUM, ten)) == 10
    assert len({place.locus for place in find_anchor(SUM, ten)}) == 10
    assert find_anchor(SUM, c("void f(void) {}\n")) == ()


@pytest.mark.parametrize(
    ("predicate", "lines"),
    [
        ('(#has-ancestor? @anchor "for_statement")', [5]),
        ('(#not-has-ancestor? @anchor "for_statement")', [2, 4]),
        ('(#has-descendant? @anchor "for_statement")', [4]),
        ('(#not-has-descendant? @anchor "for_statement")', [2, 5]),
        ('(#has-descendant? @anchor "assignment_expression" "=\\\\s*0")', [4, 5]),
    ],
)
def test_predicates_look_around_a_place(predicate: str, lines: list[int]) -> None:
    found = find_anchor(f"((for_statement) @anchor {predicate})", LOOPS)
    assert [place.line for place in found] == lines


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("(for_loop) @anchor", "none of c: Invalid node type at line 1"),
        ("((for_statement) @anchor", "none of c"),
        ("(for_statement) @place", "captures no @anchor"),
        ("", "captures no @anchor"),
        ('((for_statement) @anchor (#inside? @anchor "x"))', "asks #inside\\?, which nobody answers"),
        ("((for_statement) @anchor (#has-ancestor? @anchor))", "asks #has-ancestor\\? of nothing"),
        ('((for_statement) @anchor (#match? @anchor "(a+)+b"))', "could take forever"),
        ('((for_statement) @anchor (#match? @anchor "("))', "none of c"),
        ('((for_statement) @anchor (#has-descendant? @anchor "identifier" "("))', "no regular expression"),
        ("(for_statement) @anchor" + 2000 * " ; x\n", "characters"),
    ],
)
def test_a_query_that_is_none_is_refused_in_one_sentence(query: str, why: str) -> None:
    with pytest.raises(KlineageError, match=why) as caught:
        find_anchor(query, LOOPS)
    assert "\n" not in str(caught.value)


def test_every_transition_is_found_again_in_its_own_state(known: tuple[Transition, ...]) -> None:
    for transition in known:
        place = acted(transition).place
        assert place is not None, transition.name
        assert place in find_anchor(common_anchor([transition]).query, transition.before), transition.name


def test_what_several_share_finds_all_of_them(known: tuple[Transition, ...]) -> None:
    groups: dict[tuple[str, str], list[Transition]] = {}
    for transition in known:
        groups.setdefault((transition.surface, transition.rule), []).append(transition)
    for (_, rule), group in groups.items():
        anchor = common_anchor(group)
        for transition in group:
            assert acted(transition).place in find_anchor(anchor.query, transition.before), rule


def test_an_anchor_says_nothing_of_the_names_and_numbers_of_its_kernel(known: tuple[Transition, ...]) -> None:
    own = {"micro_kernel", "row_mean", "x_panel", "gemm", "softmax", "columns", "depth", "MR", "NV", "LANES"}
    for transition in known:
        words = set(re.findall(r"\w+", common_anchor([transition]).query))
        assert not words & own, transition.name


def test_an_anchor_is_found_on_a_kernel_it_has_never_seen(known: tuple[Transition, ...]) -> None:
    tile = next(t for t in known if t.name == "gemm-c K4")
    assert tile.rule == "register-tile"
    other = next(t for t in known if t.lineage == "softmax-c" and t.rule == "register-tile")
    found = find_anchor(common_anchor([tile]).query, other.before)
    assert any("row_exponentials" in place.locus for place in found)


def test_what_a_transition_brings_in_keeps_the_place_from_being_found_twice(
    known: tuple[Transition, ...],
) -> None:
    for transition in (t for t in known if t.rule in ("prefetch", "restrict")):
        query = common_anchor([transition]).query
        before, after = find_anchor(query, transition.before), find_anchor(query, transition.after)
        assert len(after) < len(before), transition.name


@given(st.text(max_size=60))
def test_any_text_is_a_query_or_is_refused(text: str) -> None:
    try:
        find_anchor(text, LOOPS)
    except KlineageError as error:
        assert str(error)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_searched(source: bytes) -> None:
    kernel = Kernel("c", "kernel.c", "f", source)
    for place in find_anchor(SUM, kernel):
        assert 0 <= place.start < place.end <= len(source)
