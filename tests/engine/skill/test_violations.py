"""Violations: each breaks one thing of a state, and leaves everything else as it was."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.kernel import Kernel
from klineage.proposer.rules import features
from klineage.skill.card import Card, Precondition, Probe
from klineage.skill.checks.constants import constants, with_constant
from klineage.skill.checks.facts import ITEMSIZE, tensors
from klineage.skill.probe import SETTINGS, State, Untestable, spoken, state_of, violated, violation
from klineage.skill.probe.renumbering import changed_by
from klineage.skill.transitions import Transition
from klineage.workload import load

GEMM = load("gemm")
C = Kernel("c", "kernel.c", "gemm", b"#define TILE 8\n#define WIDE (TILE * 4)\nvoid gemm(void) {}\n")
PLAIN = State(C, replace(C, source=C.source + b"// fast\n"), GEMM, "cpu-x86-64-v3", settings={"TILE": "8"})


def _state(known: tuple[Transition, ...], name: str, action: str) -> State:
    return state_of(next(t for t in known if t.lineage == name and t.step.action == action))


@given(dim=st.sampled_from(GEMM.dims), value=st.integers(1, 900))
def test_a_size_changes_one_dimension_of_every_size(dim: str, value: int) -> None:
    broken = violated(PLAIN, "size", {"dim": dim, "value": str(value)})
    assert (broken.before, broken.after, broken.platform) == (PLAIN.before, PLAIN.after, PLAIN.platform)
    every = {**GEMM.sizes, "": GEMM.hidden or {}}
    changed = {**broken.workload.sizes, "": broken.workload.hidden or {}}
    assert changed == {name: {**dims, dim: value} for name, dims in every.items()}
    assert broken.workload.hash != GEMM.hash
    ast.parse(broken.workload.source)


@given(buffer=st.sampled_from(("x", "weight", "y")), power=st.integers(3, 9))
def test_a_stride_leaves_no_size_whose_rows_begin_at_multiples(buffer: str, power: int) -> None:
    broken = violated(PLAIN, "stride", {"buffer": buffer, "bytes": str(1 << power)})
    for name, dims in broken.workload.sizes.items():
        found = tensors(broken.workload, "c", dims)[buffer]
        assert found.row_bytes % (1 << power) != 0
        moved = [abs(dims[d] - GEMM.sizes[name][d]) for d in dims]
        assert sorted(moved)[:-1] == [0, 0] and max(moved) <= 3


def test_a_base_is_moved_by_whole_elements_and_nothing_else_of_the_workload() -> None:
    broken = violated(PLAIN, "misalign", {"buffer": "x, y", "bytes": "5"})
    assert broken.workload.offsets == {"x": 8, "y": 8}
    assert broken.workload.sizes == GEMM.sizes
    every = violated(PLAIN, "misalign", {"buffer": "*", "bytes": "1"})
    assert every.workload.offsets == dict.fromkeys(("x", "weight", "y"), ITEMSIZE["fp32"])
    assert {t.alignment for t in tensors(every.workload, "c", GEMM.sizes["small"]).values()} == {4}


def test_a_platform_below_builds_both_kernels_for_it() -> None:
    broken = violated(PLAIN, "platform", {"platform": "cpu-x86-64-v2"})
    assert broken.before.flags == broken.after.flags == ("-march=x86-64-v2",)
    assert broken.platform == "cpu-x86-64-v2"
    gpu = replace(PLAIN, platform="nvidia-sm90")
    assert violated(gpu, "platform", {"platform": "nvidia-sm80"}).after == gpu.after


def test_an_element_type_is_that_of_the_kernels_language_alone() -> None:
    broken = violated(PLAIN, "dtype", {"element": "fp64"})
    assert broken.workload.element == {**GEMM.element, "c": "fp64"}


def test_a_setting_is_put_on_anew_by_the_rule(known: tuple[Transition, ...]) -> None:
    state = _state(known, "softmax-c", "register_tiling")
    broken = violated(state, "setting", {"name": "UNROLL", "value": "x4"})
    assert broken.before == state.before
    assert constants(broken.after)["UNROLL"] == 4 * int(state.settings["UNROLL"])
    assert violated(state, "setting", {"name": "*", "value": "x4"}).after == broken.after
    stages = violated(
        _state(known, "gemm-triton", "pipeline"), "setting", {"name": "num_stages", "value": "7"}
    )
    assert b"num_stages=7" in stages.after.source


def test_a_feature_is_taken_out_of_both_kernels(known: tuple[Transition, ...]) -> None:
    state = _state(known, "gemm-c", "prefetch")
    broken = violated(state, "feature", {"name": "unroll"})
    for kernel, own in ((broken.before, state.before), (broken.after, state.after)):
        gone = {f.name for f in features(own)} - {f.name for f in features(kernel)}
        assert gone == {"unroll"}
    assert "prefetch" in {f.name for f in features(broken.after)}


@pytest.mark.parametrize(
    ("change", "settings", "why"),
    [
        ("size", {"dim": "rows", "value": "4"}, "gemm has no dimension rows; it has m, n, k"),
        ("size", {"dim": "k"}, "needs the setting value"),
        ("size", {"dim": "k", "value": "much"}, "neither a whole number nor a change"),
        ("size", {"dim": "k", "value": "0"}, "value is 0; the least is 1"),
        ("size", {"dim": "k", "value": "1" * 40}, "neither a whole number nor a change"),
        ("size", {"dim": "k", "value": "99999999"}, "times the elements of the largest"),
        ("stride", {"buffer": "q", "bytes": "16"}, "gemm has no buffer q"),
        ("stride", {"buffer": "x", "bytes": "4"}, "whatever k is"),
        ("misalign", {"buffer": "q", "bytes": "4"}, "gemm has no buffer q"),
        ("misalign", {"buffer": "x", "bytes": "4096"}, "OFFSETS must map"),
        ("dtype", {"element": "fp32"}, "the elements are fp32 already"),
        ("dtype", {"element": "fp31"}, "unknown type"),
        ("feature", {"name": "simd"}, "no rule takes simd out"),
        ("platform", {"platform": "cpu-x86-64-v4"}, "is not below cpu-x86-64-v3"),
        ("platform", {"platform": "nvidia-sm80"}, "another kind"),
        ("platform", {"platform": "toaster"}, "unknown platform"),
        ("setting", {"name": "WIDE", "value": "7"}, "no setting 'WIDE' that can be changed"),
        ("setting", {"name": "TILE", "value": "8"}, "8 already"),
        ("setting", {"name": "TILE", "value": "/0"}, "neither a whole number"),
        ("setting", {"name": "TILE", "value": "²"}, "no whole number"),
        ("weather", {}, "there is no change 'weather'"),
    ],
)
def test_what_cannot_be_made_is_said_in_one_sentence(
    change: str, settings: Mapping[str, str], why: str
) -> None:
    with pytest.raises(Untestable) as refused:
        violated(PLAIN, change, settings)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@given(own=st.integers(1, 10**6), by=st.integers(1, 10**6))
def test_relative_values_are_of_the_instances_own(own: int, by: int) -> None:
    assert [changed_by(f"{sign}{by}")(own) for sign in ("", "+", "-", "x", "/")] == [
        by, own + by, own - by, own * by, own // by,
    ]  # fmt: skip


@given(value=st.integers(0, 10**6))
def test_a_constant_that_is_changed_is_read_back(value: int) -> None:
    changed = with_constant(C, "TILE", str(value))
    assert changed is not None
    assert constants(changed) == {"TILE": value, "WIDE": value * 4}
    assert changed.source.count(b"\n") == C.source.count(b"\n")
    assert with_constant(C, "WIDE", "3") is None


def _card(*preconditions: Precondition) -> Card:
    return Card("c.tile", "Tile it", "tiling", "c", preconditions=preconditions)


@pytest.mark.parametrize(
    ("check", "change", "settings"),
    [
        ("k % 16 == 0", "size", {"dim": "k", "value": "511"}),
        ("k >= 100", "size", {"dim": "k", "value": "64"}),
        ("m <= 512", "size", {"dim": "m", "value": "513"}),
        ("row_alignment('x') >= 64", "stride", {"buffer": "x", "bytes": "16"}),
        ("alignment('weight') >= 32", "misalign", {"buffer": "weight", "bytes": "4"}),
        ("alignment() >= 32", "misalign", {"buffer": "*", "bytes": "4"}),
        ("vector_bytes >= 32", "platform", {"platform": "cpu-x86-64-v2"}),
        ("element in ('fp32', 'fp16')", "dtype", {"element": "bf16"}),
        ("setting('TILE') * itemsize <= 64", "setting", {"name": "TILE", "value": "32"}),
    ],
)
def test_the_nearest_change_that_makes_a_check_fail_is_chosen(
    check: str, change: str, settings: Mapping[str, str]
) -> None:
    own = Precondition("p1", "layout", "It must hold.", check)
    found = violation(_card(own), own, PLAIN)
    assert (found.change, found.settings, found.also) == (change, settings, ())


def test_a_change_that_breaks_nothing_else_is_preferred_and_what_else_breaks_is_told() -> None:
    own = Precondition("p1", "layout", "Few columns.", "k >= 100")
    odd = Precondition("p2", "layout", "Even columns.", "k > 64")
    even = Precondition("p3", "layout", "Even columns.", "k % 2 == 0")
    found = violation(_card(own, odd), own, PLAIN)
    assert found.also == ("p2",)
    assert found.words == "k = 64 (which breaks p2 too)"
    first = Precondition("p1", "layout", "Multiples of 4.", "k % 4 == 0")
    assert violation(_card(first, even), first, PLAIN).settings == {"dim": "k", "value": "510"}


def test_a_probe_that_does_not_violate_its_check_is_refused() -> None:
    own = Precondition("p1", "layout", "Columns.", "k % 16 == 0", Probe("size", {"dim": "k", "value": "64"}))
    with pytest.raises(Untestable, match="k = 64 does not violate it"):
        violation(_card(own), own, PLAIN)
    bare = replace(own, check="", probe=None)
    with pytest.raises(Untestable, match="neither a probe nor a check"):
        violation(_card(bare), bare, PLAIN)


def test_every_kind_of_change_is_spoken_of() -> None:
    for change, names in SETTINGS.items():
        said = spoken(change, dict.fromkeys(names, "z9"))
        assert "z9" in said and "None" not in said


_WORDS = st.sampled_from(
    (
        "k",
        "x",
        "*",
        "TILE",
        "64",
        "x4",
        "/0",
        "-1",
        "²",
        "٣",
        "1e9",
        "",
        " 8 ",
        "fp16",
        "cpu-x86-64",
        "0x10",
        "\0",
    )
)


@given(
    change=st.sampled_from((*SETTINGS, "weather")),
    settings=st.dictionaries(
        st.sampled_from(("dim", "value", "buffer", "bytes", "element", "name", "platform", "code")),
        _WORDS | st.text(max_size=8),
    ),
)
def test_whatever_a_card_asks_for_is_made_or_refused(change: str, settings: dict[str, str]) -> None:
    triton = replace(PLAIN, before=_TRITON, after=replace(_TRITON, source=_TRITON.source + b"# fast\n"))
    for state in (PLAIN, triton):
        try:
            broken = violated(state, change, settings)
        except Untestable as refused:
            assert "\n" not in str(refused)
        else:
            assert broken != state
            assert broken.workload.sizes.keys() == GEMM.sizes.keys()


_TRITON = Kernel(
    "triton",
    "kernel.py",
    "gemm",
    b"import triton\n@triton.jit\ndef k(x):\n    pass\ndef gemm(x):\n    k[(1,)](x, TILE=8)\n",
    config=(("TILE", 8),),
)
