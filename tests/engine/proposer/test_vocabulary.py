"""The open vocabulary of actions: known words, words of one's own, and slips."""

from __future__ import annotations

import pytest
from klineage.errors import KlineageError
from klineage.kernel import SURFACES
from klineage.proposer import rules
from klineage.proposer.features import mechanisms
from klineage.proposer.vocabulary import ACTIONS, checked, completions, nearest, normal


def test_every_rule_speaks_the_vocabulary() -> None:
    spoken = {rule.action for some in rules.RULES.values() for rule in some}
    assert spoken
    assert spoken - set(ACTIONS) == set()


def test_every_detector_speaks_the_vocabulary() -> None:
    for surface in SURFACES:
        spoken = {*mechanisms.seen(surface), *mechanisms.meant(surface)}
        assert spoken
        assert spoken - set(ACTIONS) == set()


def test_no_word_of_the_vocabulary_is_taken_for_a_slip_of_another() -> None:
    for word in ACTIONS:
        assert nearest(word) is None
        assert checked(word) == word


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pipline", "pipeline"), ("tilling", "tiling"), ("simdd", "simd"), ("layout_pak", "layout_pack")],
)
def test_a_slip_is_refused_with_the_word_that_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(KlineageError, match=f"did you mean '{meant}'"):
        checked(typed)


def test_a_word_of_ones_own_is_taken() -> None:
    assert checked("branch_free_softmax") == "branch_free_softmax"


def test_a_word_that_a_detector_uses_is_no_slip() -> None:
    assert checked("pipelines", known=["pipelines"]) == "pipelines"


def test_the_normal_form_joins_and_spells_alike() -> None:
    assert normal(" Cache-Block + SIMD+simd ") == "cache_block+simd"


@pytest.mark.parametrize("text", ["", "+", "tiling+", "1st", "a\x1b[31m", "x" * 41, "é"])
def test_what_is_no_word_is_refused(text: str) -> None:
    with pytest.raises(KlineageError, match="no name of an action"):
        normal(text)


def test_completions_put_what_is_likely_first_and_beginnings_before_the_rest() -> None:
    assert completions("", ["simd"])[0] == "simd"
    found = completions("pipe")
    assert found[0] == "pipeline"
    assert "loop_pipeline" in found
    assert completions("no such thing") == []
