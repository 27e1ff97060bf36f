"""How a correctness job shares its cases among pairs of children."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from klineage.worker.correctness import shares

VARIANTS = st.sampled_from(["", "", "again", "perturbed", "ghost"])


@given(st.lists(VARIANTS, min_size=1), st.integers(1, 9))
def test_every_case_has_one_lane_and_a_variant_follows_what_it_varies(variants: list[str], most: int) -> None:
    cases: list[dict[str, Any]] = [{"variant": variant} for variant in ["", *variants]]
    lanes = shares(cases, most)
    assert sorted(number for lane in lanes for number in lane) == list(range(len(cases)))
    assert 1 <= len(lanes) <= most
    assert lanes[0][0] == 0
    for lane in lanes:
        assert lane == sorted(lane)
        for before, number in pairwise(lane):
            assert before == number - 1 or not cases[number]["variant"]
    sizes = [sum(not cases[number]["variant"] for number in lane) for lane in lanes]
    assert max(sizes) - min(sizes) <= 1
