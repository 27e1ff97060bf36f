"""The C rules: on the shipped experts in every order, and on kernels written in other ways."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from klineage.kernel import Kernel
from klineage.proposer.rules import NotApplicable, after, derive, features, propose

EXPERTS = [("gemm", 5), ("add_rmsnorm", 4)]


@pytest.mark.parametrize(("workload", "least"), EXPERTS)
def test_the_first_proposals_lead_to_a_simplest_form(workload, least, expert, first_walk) -> None:
    steps = first_walk(expert(workload, "c"))
    assert len(steps) >= least
    assert features(after(*steps[-1])) == []


def test_dependents_go_before_their_prerequisites(expert, first_walk) -> None:
    actions = [c.action for _, c in first_walk(expert("gemm", "c"))]
    for dependent, prerequisite in [
        ("prefetch", "simd"),
        ("unroll", "simd"),
        ("simd", "alignment"),
        ("simd", "register_tiling"),
        ("register_tiling", "layout_pack"),
        ("layout_pack", "cache_block"),
    ]:
        assert actions.index(dependent) < actions.index(prerequisite)


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_every_reachable_step_is_exact_and_reversible(workload, expert, reachable, check_step) -> None:
    for state, candidate, simpler in reachable(expert(workload, "c")):
        restored = check_step(state, candidate, simpler)
        written_anew = ("layout_pack",)  # the packer
        assert restored or candidate.action in written_anew, candidate.proposer


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_comments_at_the_ends_of_lines_stay(workload, expert, first_walk, check_comments) -> None:
    for seed, (state, _) in enumerate(first_walk(expert(workload, "c"))):
        print("seed", seed)
        check_comments(state, random.Random(seed))


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_line_endings_outside_the_edit_stay(workload, expert, first_walk, check_line_endings) -> None:
    for seed, (state, _) in enumerate(first_walk(expert(workload, "c"))):
        print("seed", seed)
        check_line_endings(state, random.Random(seed), (b"\n", b"\r\n"))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_the_simplest_form_and_what_is_written_anew_pass_the_gate(workload, expert, first_walk) -> None:
    from klineage.gate import GateRequest, Verdict, gate
    from klineage.workload import load

    steps = first_walk(expert(workload, "c"))
    tried = [after(*steps[-1])]
    for state, candidate in steps:
        derived = derive(candidate.proposer, after(state, candidate), candidate.locus, candidate.settings)
        if derived != state.source:
            tried.append(Kernel("c", state.filename, state.entry, derived))
    for kernel in tried:
        report = gate(GateRequest(kernel, load(workload), platform="cpu-native", seeds=(5,)))
        assert report.verdict is Verdict.PASS, report.why


def kernel(text: str) -> Kernel:
    return Kernel("c", "kernel.c", "entry", text.encode())


def actions(given: Kernel) -> list[str]:
    return [c.action for c in propose(given)]


def step(given: Kernel, action: str) -> Kernel:
    return after(given, next(c for c in propose(given) if c.action == action))


def compiles(given: Kernel, tmp_path: Path) -> bool:
    source = tmp_path / given.filename
    source.write_bytes(given.source)
    command = [
        "gcc",
        "-std=gnu11",
        "-O1",
        "-fopenmp",
        "-Werror",
        "-Wall",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "k.o"),
    ]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


THREADED = """// klineage: flags -fopenmp
#include <stdint.h>
/* #pragma omp parallel for */
void entry(const float *__restrict__ x, float *__restrict__ y, int64_t n)
{
#pragma omp parallel for \\
    schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        #pragma GCC ivdep
        #pragma GCC unroll 8
        for (int64_t j = 0; j < n; ++j)
            y[i] += x[j];
    }
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_threads_unrolling_and_aliasing(tmp_path: Path) -> None:
    given = kernel(THREADED)
    assert actions(given) == ["thread_parallel", "unroll", "restrict"]
    for action in ("thread_parallel", "unroll", "restrict"):
        candidate = next(c for c in propose(given) if c.action == action)
        simpler = after(given, candidate)
        assert compiles(simpler, tmp_path)
        restored = derive(candidate.proposer, simpler, candidate.locus, candidate.settings)
        assert features(kernel(restored.decode())) == features(given)
        given = simpler
    assert given.text.count("#pragma") == 2  # the one in the comment, and ivdep
    assert "const float *x, float *y" in given.text


def test_threads_that_are_asked_for_their_number_stay() -> None:
    asked = THREADED.replace("y[i] += x[j]", "y[omp_get_thread_num()] += x[j]")
    assert "thread_parallel" not in actions(kernel(asked))


def test_a_parallel_region_is_left_alone() -> None:
    region = THREADED.replace("parallel for \\\n    schedule(static)\n", "parallel\n    {\n#pragma omp for\n")
    assert "thread_parallel" not in actions(kernel(region.replace("    }\n}", "    }\n    }\n}")))


VECTOR = """#include <stdint.h>
#define BYTES 32
#define LANES (BYTES / 4)
typedef float v __attribute__((vector_size(BYTES)%s));
static float scratch[64] __attribute__((aligned(64)));
void entry(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        *(v *)(y + i) = *(const v *)(x + i) + *(const v *)scratch;
    for (int64_t i = n / LANES * LANES; i < n; ++i)
        y[i] = x[i] + scratch[i %% LANES];
}
"""


def test_a_plain_width_and_its_way_back() -> None:
    given = kernel(VECTOR % ", aligned(4)")
    candidate = next(c for c in propose(given) if c.action == "simd")
    assert "#define BYTES 4\n" in candidate.source.decode()
    assert "typedef float v;\n" in candidate.source.decode()
    simpler = after(given, candidate)
    assert derive("simd", simpler, candidate.locus, candidate.settings) == given.source
    assert actions(simpler) == ["alignment"]


def test_alignment_stays_while_aligned_vectors_are_loaded() -> None:
    fixed = (VECTOR % "").replace("vector_size(BYTES)", "vector_size(32)")
    assert actions(kernel(fixed)) == []
    assert actions(kernel((VECTOR % "").replace("int64_t n)", "int64_t n, v w)"))) == ["simd"]


def test_intrinsics_keep_their_width() -> None:
    text = (VECTOR % "").replace("y[i] = x[i]", "y[i] = _mm_cvtss_f32(_mm_set_ss(x[i]))")
    assert "simd" not in actions(kernel(text))


PREFETCHED = """#include <stdint.h>
#define FAR 8 // cache lines
void entry(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
    {
        // the next lines, while this one is used
        __builtin_prefetch(x + i + FAR, 0, 3);
        y[i] = x[i];
    }
}
"""


def test_prefetch_takes_its_comment_and_its_distance_along() -> None:
    given = kernel(PREFETCHED)
    candidate = propose(given)[0]
    simpler = after(given, candidate)
    assert "FAR" not in simpler.text
    assert "//" not in simpler.text
    restored = derive(candidate.proposer, simpler, candidate.locus, candidate.settings).decode()
    assert "#define FAR 8" in restored
    assert "        __builtin_prefetch(x + i + FAR, 0, 3);\n        y[i]" in restored


BLOCKED = """#include <stdint.h>
// A tile of columns stays in L2.
#define COLUMNS 64

static void add(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        y[i] += x[i];
}

void entry(const float *x, float *y, int64_t rows, int64_t n)
{
    for (int64_t c = 0; c < n; c += COLUMNS) {
        int64_t width = n - c < COLUMNS ? n - c : COLUMNS;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < width; ++i)
                add(y + (c + i) * rows, x + c + i, width - i);
    }
}
"""


def test_cache_blocks_and_their_way_back() -> None:
    given = kernel(BLOCKED)
    assert actions(given) == ["cache_block"]
    candidate = propose(given)[0]
    simpler = candidate.source.decode()
    assert "COLUMNS" not in simpler
    assert "L2" not in simpler
    assert "add(y + i * rows, x + i, n - i);" in simpler
    restored = derive("cache_block", kernel(simpler), candidate.locus, candidate.settings).decode()
    assert "int64_t width = n - c < COLUMNS ? n - c : COLUMNS;" in restored
    assert "add(y + (c + i) * rows, x + c + i, width - i);" in restored
    assert features(kernel(restored)) == features(given)


def test_blocks_that_hold_more_than_the_next_loop_stay() -> None:
    inner = "        for (int64_t r = 0; r < rows; r += COLUMNS) {\n            int64_t h = smaller(COLUMNS, rows - r);\n"
    nested = BLOCKED.replace(
        "        for (int64_t r = 0; r < rows; ++r)\n", "        entry(x, y, 0, 0);\n" + inner, 1
    )
    assert actions(kernel(nested.replace("width - i);\n    }", "width - i);\n        }\n    }"))) == []


def test_a_sum_without_a_flag_cannot_be_blocked() -> None:
    candidate = propose(kernel(BLOCKED))[0]
    with pytest.raises(NotApplicable, match="no calls sum over m and add up"):
        derive("cache_block", kernel(candidate.source.decode()), candidate.locus, {"p": "COLUMNS of m as q"})


def test_what_cannot_be_derived_says_why() -> None:
    given = kernel(PREFETCHED)
    with pytest.raises(NotApplicable, match="there is no 'entry/for\\[j\\]' in this file"):
        derive("unroll", given, "kernel.c::entry", {"entry/for[j]": "GCC unroll 4"})
    with pytest.raises(NotApplicable, match="entry has no pointer 'z'"):
        derive("restrict", given, "kernel.c::entry", {"entry": "z"})
    with pytest.raises(NotApplicable, match="no element type 'v' with a width 'BYTES'"):
        derive("simd", given, "kernel.c::entry", {"vector": "v", "attributes": "", "width": "BYTES"})


def test_broken_and_empty_files_are_proposed_nothing() -> None:
    for text in ("", "void f(", "\x00\x01", "#define A", "#if 1\n"):
        assert propose(kernel(text)) == []


@pytest.mark.parametrize("workload", [w for w, _ in EXPERTS])
def test_damaged_files_are_proposed_only_what_is_sound(workload, expert, damaged, check_step) -> None:
    for seed in range(8):
        print("seed", seed)
        broken = damaged(expert(workload, "c"), random.Random(seed))
        for candidate in propose(broken):
            try:
                check_step(broken, candidate, after(broken, candidate))
            except NotApplicable as reason:
                assert reason.reason
