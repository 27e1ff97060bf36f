"""The CUDA rules: on the shipped expert in every order, on honest kernels of others, and on small ones."""

from __future__ import annotations

import random
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from klineage.kernel import Kernel
from klineage.proposer.candidate import Candidate
from klineage.proposer.rules import RULES, NotApplicable, after, derive, features, propose, why_not
from klineage.surface.cuda_launch import declared
from klineage.surface.tree import parse

from . import cuda_on_cpu

TESTS = Path(__file__).parents[2]
FORMS = Path(__file__).parent / "kernels" / "forms.cu"
needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
OTHERS = sorted([*TESTS.glob("jury/honest/cuda/*.cu"), *TESTS.glob("engine/cuda/kernels/*.cu")])


def kernel(source: str | bytes) -> Kernel:
    text = source.encode() if isinstance(source, str) else source
    return Kernel("cuda", "kernel.cu", "+".join(declared(text).launched), text)


def offered(given: Kernel) -> set[str]:
    return {c.proposer.removeprefix("rules:") for c in propose(given)}


def reasons(given: Kernel) -> dict[str, str]:
    return {n.rule.name: n.reason for n in why_not(given)}


def step(given: Kernel, rule: str) -> Kernel:
    """What a rule makes of a kernel, after checking that its forward edit restores every byte."""
    candidate = next(c for c in propose(given) if c.proposer == f"rules:{rule}")
    simpler = after(given, candidate)
    assert derive(rule, simpler, candidate.locus, candidate.settings) == given.source
    assert parse("cuda", "kernel.cu", simpler.source).broken_lines() == ()
    return simpler


@pytest.fixture(scope="module")
def walked(expert, first_walk) -> list[tuple[Kernel, Candidate]]:
    """The walk of the shipped expert."""
    return first_walk(expert("add_rmsnorm", "cuda"))


@pytest.fixture(scope="module")
def forms(first_walk) -> list[tuple[Kernel, Candidate]]:
    """The walk of the kernels that hold one mechanism each."""
    return first_walk(kernel(FORMS.read_bytes()))


def test_the_first_proposals_lead_to_a_simplest_form(walked) -> None:
    assert len(walked) >= 8
    assert features(after(*walked[-1])) == []


def test_dependents_go_before_their_prerequisites(walked) -> None:
    actions = [c.action for _, c in walked]
    for dependent, prerequisite in [
        ("unroll", "vectorize"),
        ("vectorize", "mask_specialize"),
        ("vectorize", "register_tiling"),
        ("unroll", "warp_exchange"),
    ]:
        assert actions.index(dependent) < actions.index(prerequisite)


def test_every_reachable_step_is_exact_and_reversible(expert, reachable, check_step) -> None:
    states = set()
    steps = reachable(expert("add_rmsnorm", "cuda"))
    for state, candidate, simpler in islice(steps, 25):  # of some hundred
        assert check_step(state, candidate, simpler), f"{candidate.proposer} was not restored to the byte"
        states.add(simpler.hash)
    assert len(states) > 15


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_kernels_of_others_are_taken_apart_exactly(path, first_walk, check_step) -> None:
    for state, candidate in first_walk(kernel(path.read_bytes())):
        simpler = after(state, candidate)
        assert check_step(state, candidate, simpler), candidate.proposer
        assert parse("cuda", "kernel.cu", simpler.source).broken_lines() == ()


def test_a_launch_that_is_shared_out_keeps_its_bounds() -> None:
    """Without them its registers are what the greediest role wants, for every thread: the launch would be refused."""
    plain = """extern "C" __global__ void __launch_bounds__(384, 1) f(float *x) {
  asm volatile("TRADE");
  x[threadIdx.x] = 1.0f;
}
"""
    trading = plain.replace("TRADE", "setmaxnreg.inc.sync.aligned.u32 240;")
    assert "launch-bounds" in offered(kernel(plain))
    assert "launch-bounds" not in offered(kernel(trading))


def test_comments_at_the_ends_of_lines_stay(walked, check_comments) -> None:
    for seed, (state, _) in enumerate(walked[::3]):
        print("seed", seed)
        check_comments(state, random.Random(seed))


def test_line_endings_outside_the_edit_stay(walked, check_line_endings) -> None:
    for seed, (state, _) in enumerate(walked[::3]):
        print("seed", seed)
        check_line_endings(state, random.Random(seed), (b"\n", b"\r\n"))


def test_damaged_files_are_proposed_only_what_is_sound(expert, damaged, check_step) -> None:
    for seed in range(5):
        print("seed", seed)
        broken = damaged(expert("add_rmsnorm", "cuda"), random.Random(seed))
        for candidate in propose(broken):
            try:
                check_step(broken, candidate, after(broken, candidate))
            except NotApplicable as reason:
                assert reason.reason


def test_broken_and_empty_files_are_proposed_nothing() -> None:
    for text in ("", "__global__ void f(", "\x00\x01", "#define A", "#if 1\n"):
        assert propose(kernel(text)) == []


def test_every_form_is_taken_out_and_put_back_exactly(forms, check_step) -> None:
    assert {c.proposer.removeprefix("rules:") for _, c in forms} == {
        rule.name for rule in RULES["cuda"] if rule.name not in ("specialization", "shared-staging")
    }
    for state, candidate in forms:
        assert check_step(state, candidate, after(state, candidate)), candidate.proposer


def results_of_forms(given: Kernel, x: np.ndarray, folder: Path) -> dict[str, np.ndarray]:
    """What every kernel of ``forms.cu`` makes of a matrix of 40 x 128."""
    library = cuda_on_cpu.built(given, folder)
    wide = ("scaled", "halved", "transposed", "permuted", "staged")
    outputs = {name: np.full((40, 128), np.nan, np.float32) for name in wide}
    outputs |= {"multiplied": np.full((40, 40), np.nan, np.float32)}
    outputs |= {"summed": np.full(40, np.nan, np.float32), "tiled": np.full(5000, np.nan, np.float32)}
    outputs |= {"running": np.full(4992, np.nan, np.float32)}
    dims = {"quads": 1280, "rows": 40, "columns": 128, "n": 5000}
    numbers = {
        "scaled": (1280, 0.5),
        "halved": (128,),
        "summed": (128,),
        "transposed": (40, 128),
        "permuted": (40, 128),
        "tiled": (5000,),
        "multiplied": (40, 40, 128),
        "running": (4992,),
    }
    for name, output in outputs.items():
        sizes = dims | {"multiplied": {"columns": 40}, "running": {"n": 4992}}.get(name, {})
        cuda_on_cpu.run(library, given, name, sizes, x, output, *numbers.get(name, ()))
    return outputs


@needs_cpp
def test_every_form_computes_the_same_when_it_is_simplified(forms, tmp_path) -> None:
    given, simplest = forms[0][0], after(*forms[-1])
    x = np.random.default_rng(3).standard_normal((40, 128)).astype(np.float32)
    before = results_of_forms(given, x, tmp_path / "given")
    now = results_of_forms(simplest, x, tmp_path / "simplest")
    for name, value in before.items():
        np.testing.assert_array_equal(now[name], value, err_msg=name)
    np.testing.assert_array_equal(before["scaled"], x * np.float32(0.5))
    np.testing.assert_array_equal(before["halved"], x * np.float32(0.5))
    np.testing.assert_array_equal(before["transposed"].reshape(128, 40), x.T)
    np.testing.assert_array_equal(before["permuted"].reshape(128, 40), x.T)
    np.testing.assert_array_equal(before["staged"], x[:, ::-1])
    np.testing.assert_allclose(before["summed"], np.log(np.exp(x).sum(axis=1)), rtol=1e-5)
    np.testing.assert_allclose(
        before["multiplied"], x.astype(float) @ x.T.astype(float), rtol=1e-4, atol=1e-4
    )
    groups = x.ravel()[:4992].reshape(-1, 32)
    sums = groups.cumsum(axis=1)
    neighbours = sums.reshape(-1, 16, 2)[:, :, ::-1].reshape(-1, 32)
    np.testing.assert_allclose(before["running"].reshape(-1, 32), sums + neighbours, rtol=1e-4, atol=1e-5)
    flat = x.ravel()[:5000]
    np.testing.assert_allclose(before["tiled"], flat / np.sqrt(1 + flat * flat), rtol=1e-5)


@needs_cpp
def test_a_product_without_its_tiles_computes_the_same(first_walk, tmp_path) -> None:
    steps = first_walk(kernel((TESTS / "engine/cuda/kernels/gemm_tiled.cu").read_bytes()))
    assert [c.action for _, c in steps] == ["unroll", "swizzle", "swizzle", "smem_staging", "restrict"]
    given, simplest = steps[0][0], after(*steps[-1])
    assert "__shared__" not in simplest.text
    assert "__syncthreads" not in simplest.text
    m, n, k = 20, 35, 50
    rng = np.random.default_rng(5)
    x, weight = (
        (rng.standard_normal(s).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        for s in ((m, k), (n, k))
    )
    results = []
    for name, one in (("given", given), ("simplest", simplest)):
        y = np.zeros((m, n), np.uint16)
        library = cuda_on_cpu.built(one, tmp_path / name)
        cuda_on_cpu.run(library, one, "gemm_kernel", {"m": m, "n": n, "k": k}, x, weight, y, m, n, k)
        results.append(y)
    np.testing.assert_array_equal(*results)
    wide = [(v.astype(np.uint32) << 16).view(np.float32) for v in (x, weight, results[0])]
    np.testing.assert_allclose(wide[2], wide[0] @ wide[1].T, rtol=2**-7, atol=1e-3)


@needs_cpp
def test_the_simplest_form_of_the_expert_computes_the_same(walked, tmp_path) -> None:
    given, simplest = walked[0][0], after(*walked[-1])
    libraries = [
        cuda_on_cpu.built(one, tmp_path / name) for name, one in (("given", given), ("simplest", simplest))
    ]
    for rows, hidden in ((3, 1536), (2, 1021)):
        rng = np.random.default_rng(hidden)
        x, residual, weight = (
            (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            for shape in ((rows, hidden), (rows, hidden), hidden)
        )
        outputs = []
        for one, library in zip((given, simplest), libraries, strict=True):
            y, total = np.zeros_like(x), np.zeros_like(x)
            dims = {"rows": rows, "hidden": hidden}
            cuda_on_cpu.run(
                library, one, "add_rmsnorm_kernel", dims, x, residual, weight, y, total, hidden, 1e-6
            )
            outputs.append((y, total))
        (y, total), (y_simple, total_simple) = outputs
        np.testing.assert_array_equal(total, total_simple)
        wide = [
            (v.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            for v in (x, residual, weight, y, y_simple)
        ]
        wanted = wide[0] + wide[1]
        wanted = wanted / np.sqrt((wanted**2).mean(axis=1, keepdims=True) + 1e-6) * wide[2]
        for result in wide[3:]:  # sums in another order: a rounding of bf16 more or less
            np.testing.assert_allclose(result, wanted, rtol=2**-7, atol=1e-6)


def test_the_simplest_forms_compile(walked, forms, tmp_path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    for steps in (walked, forms):
        source = tmp_path / "kernel.cu"
        source.write_bytes(after(*steps[-1]).source)
        command = [
            "nvcc",
            "-arch=sm_90",
            "-include",
            "cuda_pipeline_primitives.h",
            "-cubin",
            "-o",
            tmp_path / "k.cubin",
            source,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def launched(
    body: str, head: str = "", block: str = "(64)", parameters: str = "const float *x, float *y, int n"
) -> Kernel:
    return kernel(
        f'// klineage: launch k grid=(4) block={block}\n{head}\nextern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'
    )


SHUFFLE = "  float v = x[threadIdx.x];\n  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(MASK, v, d);\n  y[0] = v;"
STRIDE = "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {\n    BODY\n  }"
TILE = "  __shared__ float t[8][8 + 1];\n  t[threadIdx.y][threadIdx.x] = x[0];\n  __syncthreads();\n  y[0] = READ;"
DOUBLED = """  __shared__ float t[2][64];
  fill(t[0], 0, 0);
  __syncthreads();
  for (int j = 0; j < n; j++) {
    const int i = j & 1;
    if (j + 1 < n) fill(t[0], i ^ 1, j + 1);
    y[j] = READ[threadIdx.x];
    __syncthreads();
  }"""


def staged(
    value: str = "x[s + threadIdx.x]",
    size: str = "8",
    behind: str = "    __syncthreads();\n",
    before: str = "",
) -> Kernel:
    """A kernel that stages a tile of 8 x 8 and reads it by rows."""
    body = (
        f"  __shared__ float t[8][{size}];\n{before}  float sum = 0;\n  for (int s = 0; s < n; s += 8) {{\n"
    )
    body += f"    t[threadIdx.y][threadIdx.x] = {value};\n{behind}"
    body += (
        "    for (int i = 0; i < 8; i++) sum += t[threadIdx.y][i];\n    __syncthreads();\n  }\n  y[0] = sum;"
    )
    return launched(body, block="(8, 8)")


SWIZZLED = "  __shared__ float t[8][EXTENT];\n  t[threadIdx.y][threadIdx.x ^ threadIdx.y] = 1;\n  y[0] = t[n][OTHER];"


@pytest.mark.parametrize(
    ("rule", "given", "why"),
    [
        ("warp-shuffles", launched(SHUFFLE.replace("MASK", "0xffffu")), "does not name every lane"),
        ("warp-shuffles", launched(SHUFFLE.replace("MASK", "~0u"), block="(8, 8)"), "several dimensions"),
        (
            "warp-shuffles",
            launched(SHUFFLE.replace("MASK", "~0u").replace("float v", "half v")),
            "known type",
        ),
        ("warp-shuffles", launched("  y[0] = __shfl_sync(~0u, x[0], 0);"), "form that is not known"),
        ("warp-shuffles", launched("  const half v = __shfl_sync(~0u, x[0], n);"), "known type"),
        ("warp-shuffles", launched("  const float v = __shfl_sync(n, x[0], n);"), "does not name every lane"),
        (
            "warp-shuffles",
            launched("  float self = 0, v = x[0];\n  float w = __shfl_up_sync(~0u, v, n);"),
            "'self' is taken",
        ),
        (
            "grid-stride",
            launched(STRIDE.replace("BODY", "y[i] = x[i]; __syncthreads();")),
            "wait for each other",
        ),
        (
            "grid-stride",
            launched("  float s = 0;\n" + STRIDE.replace("BODY", "s = s + x[i];")),
            "s is carried",
        ),
        (
            "grid-stride",
            launched(STRIDE.replace("BODY", "y[i] = x[i];") + "\n  y[0] = 1;"),
            "more follows the loop",
        ),
        ("grid-stride", launched("  int m = n;\n" + STRIDE.replace("i < n", "i < m")), "m is no parameter"),
        (
            "shared-padding",
            launched(TILE.replace("READ", "t[0][n]"), block="(8, 8)"),
            "n may reach the padding",
        ),
        (
            "shared-padding",
            launched(TILE.replace("READ", "t[0][0]"), block="(9, 8)"),
            "threadIdx.x may reach",
        ),
        (
            "shared-padding",
            launched(TILE.replace("READ", "*t[0]"), block="(8, 8)"),
            "not only used element by",
        ),
        (
            "shared-swizzle",
            launched(SWIZZLED.replace("EXTENT", "8").replace("OTHER", "0"), block="(8, 8)"),
            "t is not permuted there",
        ),
        (
            "shared-swizzle",
            launched(SWIZZLED.replace("EXTENT", "12").replace("OTHER", "0 ^ n"), block="(8, 8)"),
            "not known to be a power of two",
        ),
        ("vectors", launched("  float4 v = *reinterpret_cast<const float4 *>(x + n++);"), "not known here"),
        (
            "vectors",
            launched("  uint4 v = *reinterpret_cast<const uint4 *>(x);"),
            "x is no pointer to unsigned",
        ),
        (
            "vectors",
            launched("  const float4 *v = reinterpret_cast<const float4 *>(x);\n  y[0] = (v + 1)->x;"),
            "v is used other than by its elements",
        ),
        (
            "vectors",
            launched("  f(reinterpret_cast<const float4 *>(x));", "__device__ void f(const float4 *p);"),
            "is kept, not read",
        ),
        (
            "double-buffer",
            launched(DOUBLED.replace("READ", "t[i ^ 1]"), "__device__ void fill(float *t, int i, int j);"),
            "that is being filled",
        ),
        (
            "double-buffer",
            launched(
                DOUBLED.replace("j + 1 < n", "j + 1 <= n"), "__device__ void fill(float *t, int i, int j);"
            ),
            "that there is a next tile",
        ),
        (
            "double-buffer",
            launched(
                DOUBLED.replace("fill(t[0], 0, 0)", "fill(t[0], 0, 1)"),
                "__device__ void fill(float *t, int i, int j);",
            ),
            "the first fill has 1 where later ones have j + 1",
        ),
        ("shared-staging", staged(size="12"), "do not set the whole of t"),
        ("shared-staging", staged(value="y[n]"), "y is written by the kernel that stages it"),
        (
            "shared-staging",
            staged(value="x[i]", before="  const int i = 3;\n"),
            "i means something else where t is read",
        ),
        ("shared-staging", staged(value="x[n++]"), "effects of its own"),
        ("shared-staging", staged(behind=""), "not between one barrier behind them"),
        ("async-copy", launched("  __pipeline_memcpy_async(y, x, 16, n);"), "fills with zeros"),
        ("async-copy", launched("  cuda::memcpy_async(y, x, 16, n);"), "not known here"),
        ("cache-operators", launched("  y[0] = __ldg(x + (int)__ldg(x));"), "inside another"),
        (
            "register-tile",
            launched("  float a[C];\n  for (int i = 0; i < C; i++) a[i] = n & C;", "constexpr int C = 4;"),
            "does more with C than count",
        ),
        (
            "register-tile",
            launched(
                "  float a[C];\n  for (int i = 0; i < C; i++) a[i] = x[i];\n  y[0] = a[n];",
                "#define C 4\n#define T 4096",
                block="(T / C)",
            ),
            "a block of k would have 4096 threads",
        ),
        (
            "register-tile",
            launched(
                "  float a[C];\n  const int at = (blockIdx.x * 64 + threadIdx.x) * C;\n"
                "  for (int i = 0; i < C; i++) a[i] = x[at + i];\n  for (int i = 0; i < C; i++) y[at + i] = a[i];",
                "#define C 4",
            ),
            "neither the launch nor the stride of a loop depends on C",
        ),
        (
            "specialization",
            launched(
                "  if (n) f<4>(y); else f<1>(y);\n  if (n > 1) f<2>(y); else f<1>(y);",
                "template <int N> __device__ void f(float *y) { y[N] = N; }",
            ),
            "chooses 2 times, not once",
        ),
    ],
)
def test_what_is_not_exactly_understood_is_left_alone(rule, given, why) -> None:
    assert rule not in offered(given)
    assert why in reasons(given)[rule]


def test_a_volatile_load_is_no_cache_hint() -> None:
    assert offered(launched("  y[0] = __ldcv(x);")) == set()


def test_padding_and_tiles_that_are_written_as_numbers() -> None:
    body = "  __shared__ float t[8][9];\n  __shared__ float u[8][8];\n  float sum = 0;\n"
    body += "  for (int s = 0; s < n; s += 8) {\n    t[threadIdx.y][threadIdx.x] = x[s + threadIdx.x];\n"
    body += "    u[threadIdx.y][threadIdx.x] =\n        x[n + threadIdx.y];\n    __syncthreads();\n"
    body += "    for (int i = 0; i < 8; i++) sum += t[threadIdx.y][i] * u[i][threadIdx.x];\n    __syncthreads();\n  }\n  y[0] = sum;"
    simpler = step(step(launched(body, block="(8, 8)"), "shared-padding"), "shared-staging")
    assert "sum += (x[s + i]) * (x[n + i]);" in simpler.text
    assert "__s" not in simpler.text.partition("__global__")[2]


def test_blocks_that_stride_over_rows() -> None:
    given = launched("  for (int row = blockIdx.x; row < n; row += gridDim.x) y[row] = x[row];")
    simpler = step(given, "grid-stride")
    assert "launch k grid=(n) block=(64)" in simpler.text
    assert "  const int row = blockIdx.x;\n  if (row < n) y[row] = x[row];" in simpler.text


def test_a_count_and_a_fraction_of_the_special_function_unit() -> None:
    given = launched("  y[0] = n * __fdividef(x[0] + 1.0f, x[1]) - __powf(x[2], 2.0f) * __frsqrt_rn(x[3]);")
    simpler = step(step(given, "fast-math"), "reciprocal-root")
    assert "n * ((x[0] + 1.0f) / x[1]) - powf(x[2], 2.0f) * (1.0f / sqrtf(x[3]))" in simpler.text
