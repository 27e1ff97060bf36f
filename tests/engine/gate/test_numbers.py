"""Types, poison, guards, tolerance and statistics: the parts of the judge that are plain functions."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from klineage.gate import Verdict
from klineage.gate.ceiling import IMPOSSIBLE, floor_ms
from klineage.gate.native import timed
from klineage.worker import buffers
from klineage.worker.compare import compare

FLOATS = st.sampled_from(("fp64", "fp32", "fp16", "bf16"))
TYPES = st.sampled_from(tuple(buffers.ITEMSIZE))
SHAPES = arrays.array_shapes(max_dims=3, max_side=6)


def values(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape)


@given(st.floats(width=32))
def test_bf16_is_the_nearest_value_and_ties_go_to_even(number: float) -> None:
    stored = buffers.encode(np.array([number], np.float32), "bf16")
    got = float(buffers.decode(stored, "bf16")[0])
    if np.isnan(number):
        assert np.isnan(got)
        return
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    below, above = bits & 0xFFFF0000, (bits & 0xFFFF0000) + 0x10000
    if bits - below != above - bits:
        wanted = below if bits - below < above - bits else above
    else:
        wanted = below if (below >> 16) % 2 == 0 else above
    assert int(stored[0]) == (wanted >> 16) & 0xFFFF


@given(TYPES, SHAPES)
def test_stored_values_come_back_exactly(type_: str, shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(1).integers(0, 100, shape)
    assert np.array_equal(buffers.decode(buffers.encode(numbers, type_), type_), numbers)


@given(TYPES)
def test_poison_is_recognised_and_is_no_result(type_: str) -> None:
    stored = np.frombuffer(buffers.poison(type_) * 4, buffers.STORAGE[type_]).copy()
    assert buffers.is_poison(stored, type_).all()
    decoded = buffers.decode(stored, type_)
    if type_ in buffers.FLOATS:
        assert np.isnan(decoded).all()
        assert not buffers.is_poison(buffers.encode(np.full(4, np.nan), type_), type_).any()


@given(st.lists(st.tuples(TYPES, SHAPES), min_size=1, max_size=4))
def test_buffers_are_aligned_apart_and_fenced(declared: list[tuple[str, tuple[int, ...]]]) -> None:
    slots, total = buffers.layout({f"b{i}": entry for i, entry in enumerate(declared)})
    assert total % buffers.PAGE == 0
    end = 0
    for slot in slots:
        assert slot.offset % buffers.PAGE == 0
        assert slot.offset - end >= buffers.GUARD
        end = slot.end
    assert total - end >= buffers.GUARD
    region = np.zeros(total, np.uint8)
    buffers.fill(region, slots, {})
    assert buffers.broken_guard(region, slots) is None
    for slot in slots:
        assert buffers.is_poison(buffers.stored(region, slot), slot.type).all()


@given(st.integers(1, 4096), st.booleans(), st.integers(0, 1))
def test_a_stray_write_is_found_with_its_distance(distance: int, after: bool, which: int) -> None:
    slots, total = buffers.layout({"a": ("fp32", (10,)), "b": ("uint8", (5,))})
    region = np.zeros(total, np.uint8)
    buffers.fill(region, slots, {})
    slot = slots[which]
    if not after and which == 1:
        return  # between two buffers the nearer end is meant, and that is the first one's
    region[slot.end + distance - 1 if after else slot.offset - distance] = 0
    found = buffers.broken_guard(region, slots)
    assert found is not None
    assert (found[0], found[1]) == (slot.name, "after" if after else "before")
    assert found[2] == (distance - 1 if after else distance)


@given(FLOATS, SHAPES)
def test_the_rounded_reference_passes(type_: str, shape: tuple[int, ...]) -> None:
    expected = values(shape)
    found = compare(buffers.encode(expected, type_), expected, type_, buffers.RELATIVE_TOLERANCE[type_])
    assert found.ok, found
    assert 0 <= found.worst <= found.rtol


@given(FLOATS, st.sampled_from((0.0, 1.0, 1e-3)), arrays.array_shapes(min_dims=1, min_side=8, max_side=20))
def test_constants_do_not_pass(type_: str, constant: float, shape: tuple[int, ...]) -> None:
    expected = values(shape) * 1e-4  # small numbers: a bare absolute tolerance would let zeros through
    stored = buffers.encode(np.full(shape, constant), type_)
    assert not compare(stored, expected, type_, buffers.RELATIVE_TOLERANCE[type_]).ok


@given(FLOATS, st.integers(0, 63), st.sampled_from((2.0, -2.0)))
def test_one_wrong_element_is_found_where_it_is(type_: str, position: int, factor: float) -> None:
    expected = values((8, 8))
    rtol = buffers.RELATIVE_TOLERANCE[type_]
    stored = buffers.encode(expected, type_)
    rms = float(np.sqrt(np.mean(expected**2)))
    bad = expected.reshape(-1).copy()
    bad[position] += factor * rtol * (rms + abs(bad[position])) + np.sign(factor) * rtol
    stored = buffers.encode(bad.reshape(8, 8), type_)
    found = compare(stored, expected, type_, rtol)
    assert found.wrong == 1
    assert found.index == divmod(position, 8)
    assert found.worst > rtol


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@given(type_=FLOATS)
def test_special_values_must_be_where_the_reference_has_them(special: float, type_: str) -> None:
    expected = np.array([1.0, special, 2.0])
    rtol = buffers.RELATIVE_TOLERANCE[type_]
    assert compare(buffers.encode(expected, type_), expected, type_, rtol).ok
    finite = buffers.encode(np.array([1.0, 1.0, 2.0]), type_)
    assert compare(finite, expected, type_, rtol).wrong == 1
    assert compare(buffers.encode(expected, type_), np.array([1.0, 1.0, 2.0]), type_, rtol).wrong == 1


def test_a_reference_beyond_the_type_is_infinity() -> None:
    expected = np.array([1e6, -1e6, 1.0])
    assert compare(np.array([np.inf, -np.inf, 1.0], np.float16), expected, "fp16", 2e-3).ok


def test_unwritten_elements_are_counted() -> None:
    stored = buffers.encode(values((4, 4)), "fp32")
    stored.view(np.uint32)[2:] = int.from_bytes(buffers.poison("fp32"), "little")
    found = compare(stored, values((4, 4)), "fp32", 1e-5)
    assert (found.wrong, found.unwritten, found.got) == (8, 8, "poison")


def test_integers_are_exact() -> None:
    expected = np.array([2**53 + 1, 5])
    assert compare(np.array([2**53 + 1, 5]), expected, "int64", 0.0).ok
    assert compare(np.array([2**53, 5]), expected, "int64", 0.0).wrong == 1


def test_a_floor_is_the_larger_of_traffic_and_arithmetic() -> None:
    cost = {"bytes": 3 * 2 * 4096.0**2, "operations": 2 * 4096.0**3}
    assert floor_ms("NVIDIA H200", "bf16", cost) == pytest.approx(0.128, abs=0.001)
    assert floor_ms("NVIDIA H200", "fp32", cost) == pytest.approx(0.0235, abs=0.001)
    assert floor_ms("a device nobody measured", "bf16", cost) is None


def test_no_product_that_was_measured_is_impossible() -> None:
    """The fastest bf16 products that anybody saw on an H200: 0.1734 ms at 4096 cubed, and 894 TFLOP/s on zeros."""
    cost = {"bytes": 3 * 2 * 4096.0**2, "operations": 2 * 4096.0**3}
    floor = floor_ms("NVIDIA H200", "bf16", cost)
    assert floor is not None
    assert floor * IMPOSSIBLE < min(0.1734, 1e3 * cost["operations"] / 894e12)


ANSWER = {"verdict": "pass", "candidate_ms": 0.1, "timer": "cuda-event", "rounds": 50}


def test_a_time_below_the_floor_is_impossible() -> None:
    result = timed(ANSWER, "paper", floor=0.2)
    assert (result.verdict, result.reason) == (Verdict.FAIL, "impossible")
    assert timed({**ANSWER, "candidate_ms": 0.19}, "paper", floor=0.2).verdict is Verdict.PASS
