"""Rules on kernels that they have never seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import pytest
from klineage.kernel import Kernel
from klineage.proposer import rules
from klineage.proposer.rules.fitting import Fit, fits
from klineage.resources import shipped
from klineage.skill.admission import less, of_file
from klineage.surface.dispatch import flags_of
from klineage.surface.tree import parse_kernel


@lru_cache
def state(path: str, *without: str) -> Kernel:
    """A shipped kernel with mechanisms taken out."""
    target = of_file(
        shipped("experts") / path, platform="cpu-x86-64-v3" if path.endswith(".c") else "nvidia-sm90"
    )
    return less(target, without).kernel


#: What the rules record on shipped experts, by workload and rule.
STEPS: Mapping[str, Mapping[str, str]] = {
    "gemm register-tile": {"MR": "6", "NV": "2"},
    "softmax register-tile": {"UNROLL": "4"},
    "gemm vector-types": {
        "vector": "vec",
        "attributes": "vector_size(VECTOR_BYTES), may_alias",
        "width": "VECTOR_BYTES",
        "branch.1": "defined(__AVX512F__) ? VECTOR_BYTES=64; MR=12",
        "branch.2": "defined(__AVX2__) ? VECTOR_BYTES=32; MR=6",
        "branch.3": "else ? VECTOR_BYTES=16; MR=6",
    },
    "layernorm prefetch": {"row_variance/for[c]/for[u]": "__builtin_prefetch(y + c + u * LANES, 1)"},
    "gemm prefetch": {"micro_kernel/for[p]": "__builtin_prefetch(b + 16 * NR)"},
    "gemm tile-size": {"BLOCK_M": "256", "BLOCK_N": "128", "BLOCK_K": "64"},
    "gemm tensor-core-dot": {},
    "gemm even-masks": {"EVEN_K": "k % 128 == 0", "of": "x weight"},
    "topk even-masks": {"EVEN": "columns == block", "of": "x"},
    "gemm warps": {"num_warps": "8"},
    "add_rmsnorm reciprocal-root": {"function": "tl.rsqrt"},
    "add_rmsnorm fusion": {"value": "total", "through": "residual_out_ptr"},
    "fmha base-two": {"scale": "math.log2(math.e)"},
    "fmha online-softmax": {"new": "m_new", "rescale": "alpha"},
    "fmha loop-peeling": {"boundary": "whole", "rest": "tl.range(whole, length, BLOCK_N, num_stages=1)"},
    "addmm fused-epilogue": {"total": "acc", "value": "y", "behind.bias_ptr": "b_ptr"},
    "addmm alignment-hints": {"again.1": "max_contiguous(multiple_of(_, 8), 8) of columns"},
    "rmsnorm persistent-programs": {
        "tile": "row",
        "range": "range(tl.program_id(0), rows, tl.num_programs(0))",
        "grid": "(triton.cdiv(rows, 4),)",
        "tiles": "rows",
    },
    "gemm split-sum": {
        "indices": "offs_k",
        "block": "BLOCK_K",
        "part": "part",
        "parts": "triton.cdiv(k, 128)",
        "clear": "y.zero_()",
        "clear.at": "2",
    },
    "rmsnorm split-reduction": {
        "piece": "piece",
        "programs": "row, piece = tl.program_id(0), tl.program_id(1)",
        "pieces": "pieces = triton.cdiv(hidden, 128)",
    },
}

#: The forms of shipped kernels that show what their experts do not.
FORMS = {
    "addmm fused-epilogue": ("addmm/triton/clamped.py", ("pipeline", "alignment", "warps")),
    "addmm alignment-hints": ("addmm/triton/clamped.py", ()),
    "rmsnorm persistent-programs": ("rmsnorm/triton/persistent.py", ()),
    "gemm split-sum": ("gemm/triton/split_k.py", ()),
    "rmsnorm split-reduction": ("rmsnorm/triton/split.py", ("tiling",)),
}


@pytest.mark.parametrize("step", FORMS)
def test_a_second_form_shows_what_the_rules_record(step: str) -> None:
    path, gone = FORMS[step]
    recorded = {c.proposer: dict(c.settings) for c in rules.propose(state(path, *gone))}
    settings = recorded[f"rules:{step.partition(' ')[2]}"]
    assert {name: text for name, text in settings.items() if not name.startswith("comment.")} == STEPS[step]


@pytest.mark.parametrize(
    ("step", "target", "name", "wanted"),
    [
        ("rmsnorm persistent-programs", "layernorm/triton/persistent.py", "persistent_schedule",
         ("for line in range(tl.program_id(0), lines, tl.num_programs(0)):", "[(triton.cdiv(count, 4),)]")),
        ("gemm split-sum", "bmm/triton/split_k.py", "split_or_cluster",
         ("depths = tl.program_id(2) * BLOCK_K", "batch, triton.cdiv(k, 64))", "    y.zero_()\n")),
        ("rmsnorm split-reduction", "add_rmsnorm/triton/split.py", "scan_or_reduce",
         ("row, part = tl.program_id(0), tl.program_id(1)", "parts = triton.cdiv(hidden, 128)")),
        ("addmm fused-epilogue", "addmm/triton/reference.py", "fusion",
         ("y = (acc + bias[None, :]).to(y_ptr.dtype.element_ty)\n    tl.store(y_ptr + y_at, y, mask",)),
        ("addmm alignment-hints", "bmm/triton/clamped.py", "alignment",
         ("columns = tl.max_contiguous(tl.multiple_of(columns, 8), 8)",)),
    ],
)  # fmt: skip
def test_a_second_form_is_put_on_another_kernel_in_its_own_names(
    step: str, target: str, name: str, wanted: tuple[str, ...]
) -> None:
    source = put_on(step.partition(" ")[2], STEPS[step], state(target, name), name)[0][1].source.decode()
    for text in wanted:
        assert text in source
    assert "_epilogue" not in source


def test_what_is_put_on_here_is_what_the_rules_record() -> None:
    kernel = state("softmax/c/kernel.c", "simd")
    recorded = {c.proposer: c.settings for c in rules.propose(state("layernorm/c/kernel.c"))}
    assert recorded["rules:prefetch"] == STEPS["layernorm prefetch"]
    tile = next(c for c in rules.propose(less_aligned(kernel)) if c.proposer == "rules:register-tile")
    assert tile.settings == STEPS["softmax register-tile"]


def less_aligned(kernel: Kernel) -> Kernel:
    aligned = next(c for c in rules.propose(kernel) if c.action == "alignment")
    return aligned.kernel(kernel)


def put_on(rule: str, settings: Mapping[str, str], kernel: Kernel, name: str) -> list[tuple[Fit, Kernel]]:
    """Every way in which the rule brings the mechanism in, and nothing else."""
    had = {feature.name for feature in rules.features(kernel)}
    found = []
    for fit in fits(rule, kernel, settings):
        try:
            made = replace(kernel, source=rules.derive(f"rules:{rule}", kernel, fit.locus, fit.settings))
        except rules.NotApplicable:
            continue
        if {feature.name for feature in rules.features(made)} == had | {name}:
            assert not parse_kernel(made).broken_lines()
            found.append((fit, made))
    return found


def test_a_tile_of_the_same_names_is_carried_over_as_it_is() -> None:
    settings = STEPS["gemm register-tile"]
    fit, made = put_on(
        "register-tile", settings, state("bmm/c/reference.c", "register_tiling"), "register_tiling"
    )[0]
    assert fit.settings == settings
    assert fit.adapted == ()
    assert b"#define MR 6\n" in made.source


def test_a_tile_finds_the_extents_of_another_kernel() -> None:
    settings = STEPS["softmax register-tile"]
    fit, made = put_on(
        "register-tile", settings, state("bmm/c/reference.c", "register_tiling"), "register_tiling"
    )[0]
    assert fit.settings == {"MR": "4"}
    assert "UNROLL=4 became MR=4" in fit.adapted[0]
    assert b"#define MR 4\n" in made.source


def test_vectors_keep_the_tile_that_another_width_had_decided() -> None:
    settings = STEPS["gemm vector-types"]
    kernel = state("rmsnorm/c/reference.c", "simd")
    found = put_on("vector-types", settings, kernel, "simd")
    assert all("MR" not in fit.settings.get("branch.1", "") for fit, _ in found[:2])
    assert b"#define MR" not in found[0][1].source
    loose = next(fit for fit, _ in found if "aligned(4)" in fit.settings["attributes"])
    assert any("aligned to one float" in why for why in loose.adapted)


def test_no_other_macro_is_taken_for_the_width_of_a_vector() -> None:
    settings = STEPS["gemm vector-types"]
    kernel = state("rmsnorm/c/reference.c", "simd")
    assert b"#define UNROLL 4\n" in kernel.source
    widths = {fit.settings["width"] for fit, _ in put_on("vector-types", settings, kernel, "simd")}
    assert widths == {"VECTOR_BYTES"}


def test_a_prefetch_is_written_in_the_names_that_are_here() -> None:
    settings = STEPS["layernorm prefetch"]
    found = put_on("prefetch", settings, state("rmsnorm/c/reference.c", "prefetch"), "prefetch")
    assert any(b"__builtin_prefetch(y + c + u * LANES, 1);" in made.source for _, made in found)
    panels = put_on("prefetch", STEPS["gemm prefetch"], state("addmm/c/reference.c", "prefetch"), "prefetch")
    assert any(b"__builtin_prefetch(b + 16 * NR);" in made.source for _, made in panels)


@pytest.mark.parametrize(
    ("rule", "source", "target", "without", "name"),
    [
        ("tile-size", "gemm", "bmm/triton/naive.py", (), "tiling"),
        ("tile-size", "gemm", "bmm/triton/reference.py", ("tiling",), "tiling"),
        ("tensor-core-dot", "gemm", "addmm/triton/naive.py", (), "mma"),
        ("even-masks", "gemm", "bmm/triton/reference.py", ("mask_specialize",), "mask_specialize"),
        ("even-masks", "topk", "layernorm/triton/reference.py", ("mask_specialize",), "mask_specialize"),
        ("even-masks", "topk", "rmsnorm/triton/reference.py", ("mask_specialize",), "mask_specialize"),
        ("reciprocal-root", "add_rmsnorm", "rmsnorm/triton/naive.py", (), "fast_rsqrt"),
        ("base-two", "fmha", "gqa/triton/reference.py", ("math_approx",), "math_approx"),
        ("online-softmax", "fmha", "softmax/triton/naive.py", (), "online_algorithm"),
        ("fusion", "add_rmsnorm", "layernorm/triton/naive.py", (), "fusion"),
        ("warps", "gemm", "softmax/triton/naive.py", (), "warps"),
    ],
)  # fmt: skip
def test_a_triton_rule_fits_where_its_mechanism_is_wanting(
    rule: str, source: str, target: str, without: tuple[str, ...], name: str
) -> None:
    settings = STEPS[f"{source} {rule}"]
    assert put_on(rule, settings, state(target, *without), name)


def test_a_mask_is_left_out_only_where_its_condition_says_so() -> None:
    settings = STEPS["gemm even-masks"]
    kernel = state("bmm/triton/reference.py", "mask_specialize")
    conditions = {
        value
        for fit, _ in put_on("even-masks", settings, kernel, "mask_specialize")
        if fit.adapted
        for name, value in fit.settings.items()
        if name == "EVEN"
    }
    assert conditions == {"k % 64 == 0"}


def test_a_sum_for_each_result_becomes_a_sweep_over_rows() -> None:
    settings = {"result": "y[i * n + j]", "start": "0.0f"}
    ((fit, made),) = put_on("loop-order", settings, state("grouped_gemm/c/naive.c"), "loop_order")
    assert fit.settings["result"] == "y[r * n + c]"
    wanted = (
        "    for (int64_t r = 0; r < rows; ++r) {\n        for (int64_t c = 0; c < n; ++c)\n            y[r * n + c] = 0.0f;\n"
        "        for (int64_t p = 0; p < k; ++p)\n            for (int64_t c = 0; c < n; ++c)\n"
        "                y[r * n + c] += x[r * k + p] * weight[p * n + c];\n    }\n"
    )
    assert wanted in made.source.decode()


def test_a_pragma_goes_on_every_sum_with_the_flag_that_it_needs() -> None:
    settings = {"mean_square/for[c]": "omp simd reduction(+ : square)"}
    fit, made = put_on("simd-pragma", settings, state("layernorm/c/naive.c"), "simd")[0]
    assert set(fit.settings) == {"row_mean/for[c]", "row_variance/for[c]", "flags"}
    assert b"reduction(+ : sum)\n    for" in made.source
    assert b"reduction(+ : square)\n    for" in made.source
    assert flags_of("c", made.source) == ("-fopenmp-simd",)
    assert made.source.count(b"// klineage: flags -fopenmp-simd\n") == 1


def test_a_loop_whose_masks_have_no_name_is_not_peeled() -> None:
    settings = STEPS["fmha loop-peeling"]
    kernel = state("gemm/triton/kernel.py", "mask_specialize")
    assert put_on("loop-peeling", settings, kernel, "mask_specialize") == []


def test_a_causal_mask_stays_where_the_mask_of_the_end_goes() -> None:
    settings = STEPS["fmha loop-peeling"]
    kernel = state("gqa/triton/reference.py", "mask_specialize")
    made = put_on("loop-peeling", settings, kernel, "mask_specialize")[0][1].source.decode()
    whole = made[made.index("in range(0, whole, BLOCK_N):") : made.index("in range(whole, ")]
    assert "seen = start + keys[None, :] <= queries[:, None]" in whole
    assert "mask=" not in whole


def test_the_base_of_all_exponentials_changes_together() -> None:
    settings = STEPS["fmha base-two"]
    ((fit, made),) = put_on(
        "base-two", settings, state("gdn_forward/triton/kernel.py", "math_approx"), "math_approx"
    )
    assert set(fit.settings) == {"sums", "total"}
    assert b"tl.math.exp(" not in made.source


def test_a_rule_that_knows_no_fit_offers_the_recorded_settings_at_every_place() -> None:
    kernel = state("rmsnorm/c/naive.c")
    found = list(fits("rules:restrict", kernel, {"rmsnorm": "x weight y", "comment.1": "a <- b"}))
    assert {fit.locus for fit in found} == set(parse_kernel(kernel).loci)
    assert all(fit.settings == {"rmsnorm": "x weight y"} for fit in found)
