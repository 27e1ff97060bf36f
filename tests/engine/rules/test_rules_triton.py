"""The Triton rules: on the shipped experts in every order, and on kernels written in other ways."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from klineage.kernel import Feature, Kernel
from klineage.proposer.rules import NotApplicable, after, derive, features, propose

EXPERTS = [("gemm", 5), ("fmha", 4), ("add_rmsnorm", 4)]


@pytest.mark.parametrize(("workload", "least"), EXPERTS)
def test_the_first_proposals_lead_to_a_simplest_form(workload, least, expert, first_walk) -> None:
    steps = first_walk(expert(workload, "triton"))
    assert len(steps) >= least
    assert features(after(*steps[-1])) == []


def test_dependents_go_before_their_prerequisites(expert, first_walk) -> None:
    actions = [c.action for _, c in first_walk(expert("gemm", "triton"))]
    assert actions[0] == "autotune"
    assert actions.index("pipeline") < actions.index("tiling") < actions.index("mma")
    assert len(set(actions)) == len(actions)


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_every_reachable_step_is_exact_and_reversible(workload, expert, reachable, check_step) -> None:
    states = set()
    for state, candidate, simpler in reachable(expert(workload, "triton")):
        assert check_step(state, candidate, simpler), f"{candidate.proposer} was not restored to the byte"
        states.add(simpler.hash)
    assert len(states) > 10


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_comments_at_the_ends_of_lines_stay(workload, expert, first_walk, check_comments) -> None:
    for seed, (state, _) in enumerate(first_walk(expert(workload, "triton"))):
        print("seed", seed)
        check_comments(state, random.Random(seed))


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_line_endings_outside_the_edit_stay(workload, expert, first_walk, check_line_endings) -> None:
    for seed, (state, _) in enumerate(first_walk(expert(workload, "triton"))):
        print("seed", seed)
        check_line_endings(state, random.Random(seed), (b"\n", b"\r\n"))
        check_line_endings(state, random.Random(seed), (b"\r",))


HEAD = "import triton\nimport triton.language as tl\n\n@triton.jit\n"


def kernel(text: str, config: tuple[tuple[str, int], ...] = ()) -> Kernel:
    return Kernel("triton", "kernel.py", "entry", text.encode(), config)


def named(offered: Kernel, rule: str) -> Kernel:
    """What the named rule makes of a kernel."""
    return after(offered, next(c for c in propose(offered) if c.proposer == f"rules:{rule}"))


def seen(given: Kernel) -> set[str]:
    return {f.name for f in features(given)}


GROUPED = (
    HEAD
    + """def k(a, b, M, N, BM: tl.constexpr, BN: tl.constexpr, G: tl.constexpr):
    p = tl.program_id(axis=0)
    rows = tl.cdiv(M, BM)
    cols = tl.cdiv(N, BN)
    # re-order program ID for better L2 performance
    width = cols * G
    group = p // width
    size = min(rows - group * G, G)
    i = group * G + (p % size)
    j = (p % width) // (size)
    ri = i * BM + tl.arange(0, BM)
    rj = j * BN + tl.arange(0, BN)
    mask = (ri < M)[:, None] & (rj < N)[None, :]
    tl.store(b + ri[:, None] * N + rj[None, :], tl.load(a + ri[:, None] * N + rj[None, :], mask=mask), mask=mask)

def entry(a, b):
    grid = lambda META: (triton.cdiv(a.shape[0], META["BM"]) * triton.cdiv(a.shape[1], META["BN"]),)
    k[grid](a, b, a.shape[0], a.shape[1], BM=32, BN=32, G=8)
"""
)


def test_program_order_under_other_names() -> None:
    simpler = named(kernel(GROUPED), "program-order").text
    assert "    i = p // cols\n    j = p % cols\n" in simpler
    assert "width" not in simpler
    assert "G" not in simpler.split("def k")[1].split("META")[0].replace("GRID", "")
    assert "L2" not in simpler
    back = derive("l2_raster", kernel(simpler), "kernel.py::k", {"G": "8"})
    assert seen(kernel(back.decode())) == {"l2_raster"}
    assert b"G=8" in back


PIPELINED = (
    HEAD
    + """def k(x, N, B: tl.constexpr):
    for i in tl.range(0, N, B, num_stages=3):
        tl.store(x + i, tl.load(x + i, eviction_policy="evict_first", cache_modifier=".cg"))

def entry(x):
    k[(1,)](x, x.shape[0], 16, num_warps=2 if x.shape[0] < 64 else 8)
"""
)


def test_pipelining_of_one_loop_and_computed_warps() -> None:
    given = kernel(PIPELINED)
    assert seen(given) == {"loop_pipeline", "warps", "cache_policy"}
    assert "tl.range(0, N, B, num_stages=1)" in named(given, "pipelining").text
    assert "16, num_warps=4)" in named(given, "warps").text
    assert "tl.load(x + i))" in named(given, "cache-hints").text


HINTED = (
    HEAD
    + """def k(x, y, n, stride, BLOCK: tl.constexpr):
    tl.assume(stride > 0)
    stride = tl.multiple_of(stride, 16)
    if n > 4:
        o = tl.arange(0, BLOCK)
        o = tl.max_contiguous(tl.multiple_of(o, BLOCK), BLOCK)
        tl.store(y + tl.multiple_of(o * stride, 8), tl.load(x + o * stride))

def entry(x, y):
    k[(1,)](x, y, 8, 1, BLOCK=128)
"""
)


def test_hints_on_parameters_in_blocks_and_inside_expressions() -> None:
    candidate = next(c for c in propose(kernel(HINTED)) if c.action == "alignment")
    simpler = candidate.source.decode()
    assert "multiple_of" not in simpler
    assert "assume" not in simpler
    assert "        tl.store(y + o * stride, tl.load(x + o * stride))" in simpler
    back = derive("alignment-hints", kernel(simpler), candidate.locus, candidate.settings).decode()
    assert sorted(back.split()) == sorted(HINTED.split())
    assert seen(kernel(back)) == {"alignment"}


def online(start: str = "tl.zeros([B], dtype=tl.float32)", extra: str = "") -> str:
    return (
        HEAD
        + f"""def k(x, y, N, B: tl.constexpr):
    o = tl.arange(0, B)
    m = tl.full([B], float("-inf"), dtype=tl.float32)
    z = {start}
    for i in range(0, N, B):
        v = tl.load(x + i + o)
        new = tl.maximum(m, v)
        z = z * tl.exp(m - new) + tl.exp(v - new)
        m = new
    tl.store(y + o, z{extra})

def entry(x, y):
    k[(1,)](x, y, x.shape[0], B=16)
"""
    )


def test_online_sums_need_a_named_factor() -> None:
    assert "online_algorithm" not in seen(kernel(online()))


FACTOR = "        new = tl.maximum(m, v)\n        decay = tl.exp(m - new)\n        z = z * decay + tl.exp(v - new)\n        m = new\n"


def with_factor(text: str) -> str:
    before, _, rest = text.partition("        new = ")
    return before + FACTOR + rest.partition("        m = new\n")[2]


def test_online_sums_become_two_passes() -> None:
    given = kernel(with_factor(online()))
    simpler = named(given, "online-softmax").text
    assert simpler.count("for i in range(0, N, B):") == 2
    assert "m = tl.maximum(m, v)" in simpler
    assert "z = z + tl.exp(v - m)" in simpler
    assert "decay" not in simpler


@pytest.mark.parametrize(
    "start", ["tl.zeros([B], dtype=tl.float32) + 1.0", "tl.full([B], 1.0, dtype=tl.float32)", "m * 0"]
)
def test_online_sums_that_start_elsewhere_are_left_alone(start: str) -> None:
    given = kernel(with_factor(online(start)))
    assert "online_algorithm" in seen(given)
    assert "online-softmax" not in {c.proposer.removeprefix("rules:") for c in propose(given)}


def test_a_base_that_leaves_the_kernel_stays() -> None:
    text = online().replace("tl.exp(", "tl.exp2(").replace("x.shape[0], B", "x.shape[0] * 1.44269504, B")
    assert "math_approx" not in seen(kernel(text))
    scaled = text.replace(
        "v = tl.load(x + i + o)", "v = tl.load(x + i + o)\n        s = v * 1.4426950408889634"
    )
    assert "math_approx" not in seen(
        kernel(scaled.replace("tl.store(y + o, z)", "tl.store(y + o, tl.log2(z))"))
    )


ROW = (
    HEAD
    + """def k(x, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(x + tl.program_id(0) * n + o, 1.0, mask=o < n)

def entry(x):
    k[(x.shape[0],)](x, x.shape[1], BLOCK=4096, num_stages=4)
"""
)


def test_a_block_that_spans_a_row_is_no_tile_and_stages_without_a_loop_no_pipeline() -> None:
    assert seen(kernel(ROW)) == set()


FLAT = (
    HEAD
    + """def k(x, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + o, 1.0, mask=o < n)

def entry(x):
    grid = (triton.cdiv(x.numel(), 1024),)
    k[grid](x, x.numel(), BLOCK=1024)
"""
)


def test_a_grid_that_repeats_the_block_as_a_number_follows() -> None:
    simpler = named(kernel(FLAT), "tile-size").text
    assert "triton.cdiv(x.numel(), 128)" in simpler
    assert "BLOCK=128" in simpler


def test_two_launches_are_left_alone() -> None:
    twice = FLAT + "    k[grid](x, x.numel(), BLOCK=512)\n"
    assert propose(kernel(twice)) == []


TUNED = (
    FLAT.replace("@triton.jit", "@triton.autotune(configs=get_configs(), key=['n'])\n@triton.jit")
    .replace(", BLOCK=1024", "")
    .replace("(triton.cdiv(x.numel(), 1024),)", "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)")
)


def test_computed_configurations_need_a_pinned_one() -> None:
    assert seen(kernel(TUNED)) == {"autotune"}
    assert propose(kernel(TUNED)) == []
    pinned = kernel(TUNED, (("BLOCK", 2048), ("num_warps", 8)))
    assert seen(pinned) == {"autotune", "tiling", "warps"}
    simpler = named(pinned, "autotune")
    assert simpler.config == ()
    assert "k[grid](x, x.numel(), BLOCK=2048, num_warps=8)" in simpler.text
    assert "autotune" not in simpler.text


def test_large_products_keep_the_matrix_unit() -> None:
    text = (
        HEAD
        + """def k(a, b, c, K, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(a + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :])
    y = tl.load(b + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tl.dot(x, y))

def entry(a, b, c):
    k[(1,)](a, b, c, 1, M=SIZE, N=16)
"""
    )
    assert [c.action for c in propose(kernel(text.replace("SIZE", "16")))] == ["mma"]
    assert propose(kernel(text.replace("SIZE", "4096"))) == []


def test_what_cannot_be_derived_says_why() -> None:
    with pytest.raises(NotApplicable, match="no rule adds 'swizzle' to a triton kernel"):
        derive("swizzle", kernel(FLAT), "kernel.py::k", {})
    with pytest.raises(NotApplicable, match="no setting 'num_warps'"):
        derive("warps", kernel(FLAT), "kernel.py::k", {})
    with pytest.raises(NotApplicable, match="no such loop"):
        derive("pipeline", kernel(FLAT), "kernel.py::k/for[i]", {"num_stages": "3"})


def test_broken_and_empty_files_are_proposed_nothing() -> None:
    for text in ("", "def (", "\x00\x01", FLAT.replace("def entry", "def entry(((")):
        assert propose(kernel(text)) == []


@pytest.mark.triton
@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_the_simplest_forms_pass_the_gate(workload, expert, first_walk) -> None:
    from klineage.gate import GateRequest, Verdict, gate
    from klineage.workload import load

    simplest = after(*first_walk(expert(workload, "triton"))[-1])
    report = gate(GateRequest(simplest, load(workload), seeds=(3,)))
    assert report.verdict is Verdict.PASS, report.why


def test_features_are_listed_by_place_and_word(expert: Callable[[str, str], Kernel]) -> None:
    assert Feature("kernel.py::gemm_kernel/for[k]", "pipeline") in features(expert("gemm", "triton"))


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_damaged_files_are_proposed_only_what_is_sound(workload, expert, damaged, check_step) -> None:
    for seed in range(8):
        print("seed", seed)
        broken = damaged(expert(workload, "triton"), random.Random(seed))
        for candidate in propose(broken):
            try:
                check_step(broken, candidate, after(broken, candidate))
            except NotApplicable as reason:
                assert reason.reason
