"""Numbers and columns as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from klineage_tui.text import columns, numbers
from klineage_tui.text.sanitize import sanitize

SAFE = st.text(max_size=40).map(sanitize)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.193, "0.193"), (18.4, "18.4"), (9.999, "10.0"), (999.6, "1000"), (1.77, "1.77"), (41, "41.0"),
     (0, "0"), (1234, "1230"), (0.00012, "0.000120"), (-2.5, "-2.50"), (float("nan"), "nan")],
)  # fmt: skip
def test_three_digits(value: float, text: str) -> None:
    assert numbers.three(value) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0.193, "0.193 ms"), (18.43, "18.4 ms"), (0.042, "42.0 µs"), (1200, "1.20 s"), (0.00005, "50.0 ns")],
)
def test_a_latency_has_its_unit(milliseconds: float, text: str) -> None:
    assert numbers.latency(milliseconds) == text


def test_the_interval_stands_beside_the_ratio() -> None:
    assert numbers.ratio(1.7712, 1.7504, 1.7911) == "1.77x [1.75, 1.79]"
    assert numbers.ratio(0.5) == "0.500x"


def test_exact_counts_stay_whole_while_they_are_short() -> None:
    assert numbers.count(122, "registers") == "122 registers"
    assert numbers.count(9999) == "9,999"
    assert numbers.count(131072) == "131k"
    assert numbers.size(98304) == "96.0 KiB"


@given(SAFE, st.integers(0, 30), st.sampled_from(["left", "right", "center"]))
def test_fitted_text_takes_exactly_its_cells(text: str, cells: int, align: columns.Align) -> None:
    assert cell_len(columns.fit(text, cells, align)) == cells


@given(SAFE, SAFE, st.integers(1, 60))
def test_spread_text_never_overflows(left: str, right: str, cells: int) -> None:
    assert cell_len(columns.spread(left, right, cells)) <= cells


def test_a_wide_character_is_not_cut_in_half() -> None:
    assert columns.clip("你好世界", 5) == "你好…"
