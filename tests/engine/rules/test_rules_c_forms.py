"""The C rules on kernels that are vectorised, stored and ordered in other ways than the shipped experts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from klineage.gate import GateRequest, Verdict, gate
from klineage.kernel import Kernel
from klineage.proposer.rules import NotApplicable, after, derive, features, propose, why_not

from ...gauntlet.running import QUICK, workers, workload

JURY = Path(__file__).parents[2] / "jury" / "honest" / "c"
STREAMED = """#include <immintrin.h>
#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; ++i) {
        int64_t j = 0;
#if defined(__AVX2__)
        for (; j + 8 <= columns; j += 8)
            if (((uintptr_t)(y + i * columns + j) & 31) == 0)
                _mm256_stream_ps(y + i * columns + j, _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(alpha),
                    _mm256_loadu_ps(x + i * columns + j)), _mm256_loadu_ps(bias + j)));
            else
                for (int64_t k = j; k < j + 8; ++k)
                    y[i * columns + k] = alpha * x[i * columns + k] + bias[k];
        _mm_sfence();
#endif
        for (; j < columns; ++j)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
    }
}
"""
MARKED = """#include <stdint.h>

void entry(const float *x, const float *bias, float *y, int64_t rows, int64_t columns, float alpha)
{
    for (int64_t i = 0; i < rows; ++i) {
        #pragma omp simd
        for (int64_t j = 0; j < columns; ++j)
            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];
    }
}
"""
FORMS = {
    "vectors": ((JURY / "rows_vectors.c").read_text(), "rows", ["vector-loop"]),
    "intrinsics": ((JURY / "rows_intrinsics.c").read_text(), "rows", ["prefetch", "vector-loop"]),
    "order": ((JURY / "product_ikj.c").read_text(), "product", ["loop-order"]),
    "marked": (MARKED, "rows", ["simd-pragma"]),
}


def kernel(text: str) -> Kernel:
    return Kernel("c", "kernel.c", "entry", text.encode())


def reasons(given: Kernel) -> dict[str, str]:
    return {n.rule.name: n.reason for n in why_not(given)}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_taken_out_and_put_back(form, first_walk, check_step) -> None:
    text, problem, rules = FORMS[form]
    steps = first_walk(kernel(text))
    assert [c.proposer.removeprefix("rules:") for _, c in steps] == rules
    assert features(after(*steps[-1])) == []
    tried = [after(*steps[-1])]
    for state, candidate in steps:
        simpler = after(state, candidate)
        if not check_step(state, candidate, simpler):  # written in another way: it must compute the same
            source = derive(candidate.proposer, simpler, candidate.locus, candidate.settings)
            tried.append(Kernel("c", "kernel.c", "entry", source))
    assert len(tried) == (2 if form == "intrinsics" else 1)
    for one in tried:
        report = gate(GateRequest(one, workload(problem), "cpu-native"), policy=QUICK, executor=workers())
        assert report.verdict is Verdict.PASS, report.why


def test_stores_past_the_caches_and_their_fence(check_step) -> None:
    given = kernel(STREAMED.replace("#if defined(__AVX2__)\n", "").replace("#endif\n", ""))
    candidate = next(c for c in propose(given) if c.action == "nontemporal_store")
    text = candidate.source.decode()
    assert "_mm256_store_ps(y + i * columns + j, _mm256_add_ps(" in text
    assert "stream" not in text
    assert "sfence" not in text
    assert check_step(given, candidate, after(given, candidate))
    conditional = next(c for c in propose(kernel(STREAMED)) if c.action == "nontemporal_store")
    assert "_mm_sfence();" in conditional.source.decode(), "a fence under an #if does no harm"


def vectorised(scalar: str, vector: str = "_mm256_storeu_ps(y + j, _mm256_loadu_ps(x + j));") -> Kernel:
    return kernel(
        "#include <immintrin.h>\n#include <stdint.h>\nvoid entry(const float *x, float *y, int64_t n, float a)\n{\n"
        f"    int64_t j = 0;\n    for (; j + 8 <= n; j += 8)\n        {vector}\n"
        f"    for (; j < n; ++j)\n        {scalar}\n}}\n"
    )


@pytest.mark.parametrize(
    ("scalar", "wanted"),
    [
        (
            "y[j] = x[j] + a;",
            "_mm256_storeu_ps(y + j, _mm256_add_ps(_mm256_loadu_ps(x + j), _mm256_set1_ps(a)));",
        ),
        ("y[j] *= a;", "_mm256_storeu_ps(y + j, _mm256_mul_ps(_mm256_loadu_ps(y + j), _mm256_set1_ps(a)));"),
        ("y[j] = sqrtf(x[j + 1]);", "_mm256_storeu_ps(y + j, _mm256_sqrt_ps(_mm256_loadu_ps(x + j + 1)));"),
        (
            "y[j] = fmaxf(a, x[j]) / 2.0f;",
            "_mm256_storeu_ps(y + j, _mm256_div_ps(_mm256_max_ps(_mm256_set1_ps(a), _mm256_loadu_ps(x + j)), "
            "_mm256_set1_ps(2.0f)));",
        ),
    ],
)
def test_a_scalar_loop_is_written_for_vectors(scalar, wanted) -> None:
    candidate = next(c for c in propose(vectorised(scalar)) if c.proposer == "rules:vector-loop")
    source = derive("vector-loop", kernel(candidate.source.decode()), candidate.locus, candidate.settings)
    assert wanted in source.decode()


@pytest.mark.parametrize(
    "scalar", ["y[2 * j] = x[j];", "y[j] = y[y[j] > 0];", "a += x[j];", "y[j] = expf(x[j]);"]
)
def test_a_loop_that_could_not_be_written_for_vectors_again_stays(scalar) -> None:
    given = vectorised(scalar)
    assert "vector-loop" not in {c.proposer.removeprefix("rules:") for c in propose(given)}
    assert reasons(given)["vector-loop"].startswith("it could not be put back: ")


def test_a_loop_without_a_scalar_one_behind_it_stays() -> None:
    given = kernel(vectorised("y[j] = x[j];").text.partition("    for (; j < n")[0] + "}\n")
    assert "no scalar loop behind this one" in reasons(given)["vector-loop"]


def test_a_sum_whose_order_is_not_known_stays() -> None:
    text = FORMS["order"][0]
    clearing, again = "j < n; j++)\n            y", "j < k; j++)\n            y"
    changes = [("y[i * n + j] = 0;", "y[i * n + j] = 1;"), ("+= a[", "-= a["), (clearing, again)]
    for old, new in changes:
        assert old in text
        assert "loop_order" not in {f.name for f in features(kernel(text.replace(old, new)))}
    with pytest.raises(NotApplicable, match="computes no z by a sum of its own"):
        derive("loop_order", kernel(text), "kernel.c::entry/for[i]", {"result": "z", "start": "0"})


def test_memory_that_is_asked_for_aligned(check_step) -> None:
    given = kernel(
        "#include <stdlib.h>\nvoid entry(float *y)\n{\n    float *t = aligned_alloc(64, 256);\n"
        "    t[0] = 1;\n    y[0] = t[0];\n    free(t);\n}\n"
    )
    candidate = next(c for c in propose(given) if c.action == "alignment")
    assert "malloc(256)" in candidate.source.decode()
    assert check_step(given, candidate, after(given, candidate))


def test_a_tile_that_no_loop_goes_on_by_keeps_its_size() -> None:
    """The step of the loop is a number here: with a smaller tile the rest of each four would be left out."""
    text = """#include <stdint.h>
#define U 4
void total(const float *x, float *y, int64_t n) {
  float sums[U] = {0};
  for (int64_t i = 0; i + 4 <= n; i += STEP)
    for (int u = 0; u < U; u++) sums[u] += x[i + u];
  y[0] = 0;
  for (int u = 0; u < U; u++) y[0] += sums[u];
}
"""
    fixed = Kernel("c", "total.c", "total", text.replace("STEP", "4").encode())
    assert reasons(fixed)["register-tile"].startswith("no loop goes on by U")
    named = Kernel("c", "total.c", "total", text.replace("STEP", "U").encode())
    assert [c.action for c in propose(named)] == ["register_tiling"]
