"""What the detectors say of small kernels: present, absent or unknown, with the lines that show it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from klineage.gate import Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.lineage import Settlement
from klineage.proposer.features import Finding, audit, code_of, features
from klineage.proposer.features.c import cues as c_cues
from klineage.proposer.features.cuda import cues as cuda_cues
from klineage.proposer.features.finding import from_cues
from klineage.resources import shipped

TRITON = """\
import triton
import triton.language as {tl}


@triton.jit
def kernel(x_ptr, y_ptr, n, SMS: {tl}.constexpr, BLOCK: {tl}.constexpr):
{body}


def run(x, y, n):
    kernel[(8,)](x, y, n, {launch})
"""
CUDA = """\
#include <cuda_fp16.h>
{top}
__device__ void unused(float *p) {{ {dead} }}
__device__ void helper(const float *a, float *b, int i) {{
  {helper}
}}
extern "C" __global__ void kernel(const float *a, float *b, int n) {{
  {body}
  helper(a, b, n);
}}
"""
C = """\
#include <stdint.h>
{top}
static void unused(float *p) {{ {dead} }}
void kernel(const float *x, float *y, int64_t n)
{{
    {body}
}}
"""


def triton(body: str, launch: str = "SMS=4, BLOCK=16", tl: str = "tl") -> Kernel:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    source = TRITON.format(body=indented, launch=launch, tl=tl)
    return Kernel("triton", "kernel.py", "run", source.encode())


def cuda(body: str = "", *, helper: str = "", top: str = "", dead: str = "") -> Kernel:
    source = CUDA.format(body=body, helper=helper, top=top, dead=dead)
    return Kernel("cuda", "kernel.cu", "kernel", source.encode())


def c(body: str, *, top: str = "", dead: str = "") -> Kernel:
    return Kernel("c", "kernel.c", "kernel", C.format(body=body, top=top, dead=dead).encode())


def of(kernel: Kernel, name: str) -> Finding:
    """The one finding of a name."""
    (found,) = [finding for finding in audit(kernel) if finding.name == name]
    return found


def text_says(kernel: Kernel, name: str) -> str:
    """The state of a mechanism by the text alone, without what rules see."""
    cues = {"c": c_cues, "cuda": cuda_cues}[kernel.surface]
    return next((finding.state for finding in from_cues(cues(kernel)) if finding.name == name), "absent")


def shown(kernel: Kernel, name: str) -> list[str]:
    """The lines of the text that show a mechanism."""
    lines = kernel.text.splitlines()
    return [lines[number - 1].strip() for number in of(kernel, name).lines]


PERSISTENT = "pid = tl.program_id(0)\nfor tile in range(pid, n, SMS):\n    tl.store(y_ptr + tile, 0.0)"
SPLIT_K = (
    "k = tl.program_id(1)\nfor i in range(k * BLOCK, n, BLOCK * SPLIT_K):\n    tl.atomic_add(y_ptr, 1.0)"
)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("persistent_schedule", PERSISTENT),
        ("split_or_cluster", SPLIT_K),
        ("tensor_descriptor", "d = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])\nd.load([0])"),
        ("warp_specialize", "for i in tl.range(0, n, BLOCK, warp_specialize=True):\n    pass"),
        ("unroll", "for i in tl.static_range(4):\n    pass"),
        ("mma", "a = tl.zeros((16, 16), tl.float16)\ntl.dot_scaled(a, a, 'e4m3', a, a, 'e4m3')"),
        ("cache_policy", "tl.store(y_ptr, 0.0, cache_modifier='.cs')"),
        ("launch_overlap", "tl.extra.cuda.gdc_wait()"),
        ("inline_asm", "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [n], tl.int32, True, 1)"),
        ("l2_raster", "i, j = tl.swizzle2d(0, n, n, n, 8)"),
        ("math_approx", "tl.extra.cuda.libdevice.fast_expf(1.0)"),
    ],
)
def test_triton_mechanisms_that_need_no_rule(name: str, body: str) -> None:
    assert of(triton(body), name).state == "present"
    assert of(triton("pass"), name).state == "absent"


def test_calls_are_known_by_what_was_imported_not_by_what_it_is_called() -> None:
    renamed = triton("a = T.zeros((16, 16), T.float16)\nT.dot_scaled(a, a, 'e4m3', a, a, 'e4m3')", tl="T")
    assert of(renamed, "mma").state == "present"
    own = renamed.text.replace(
        "import triton.language as T", "import mine as T\nimport triton.language as tl"
    )
    assert (
        of(Kernel("triton", "kernel.py", "run", own.encode()), "mma").state == "present"
    )  # a method of anything
    assert of(triton("dot(x_ptr)"), "mma").state == "absent"  # a function of the file's own


def test_a_comment_or_a_text_shows_nothing() -> None:
    kernel = triton("# tl.dot and warp_specialize=True\n'tl.inline_asm_elementwise(1)'")
    assert {f.name for f in audit(kernel) if f.state == "present"} == set()


def test_a_kernel_that_nothing_launches_has_no_features() -> None:
    kernel = triton("pass")
    extra = b"\n\n@triton.jit\ndef forgotten(p):\n    tl.dot_scaled(p, p, 'e4m3', p, p, 'e4m3')\n"
    assert of(Kernel("triton", "kernel.py", "run", kernel.source + extra), "mma").state == "absent"


def test_what_the_host_computes_or_leaves_out_is_unknown() -> None:
    loop = "for i in range(0, n, BLOCK):\n    tl.load(x_ptr + i + tl.arange(0, BLOCK))"
    assert of(triton(loop, "SMS=4, BLOCK=width(n)"), "tiling").state == "unknown"
    assert of(triton(loop), "pipeline").state == "unknown"  # the default of Triton pipelines such a loop
    assert of(triton(loop, "SMS=4, BLOCK=16, num_stages=1"), "pipeline").state == "absent"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("vectorize", "float4 v = *reinterpret_cast<const float4 *>(a);"),
        ("vectorize", 'asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];" : : "l"(a));'),
        ("async_copy", 'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(n), "l"(a));'),
        ("async_copy", "__pipeline_memcpy_async(b, a, 16);"),
        ("mma", 'asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0}, %1, %2;" ::);'),
        ("mma", "nvcuda::wmma::mma_sync(c, x, y, c);"),
        (
            "tensor_descriptor",
            'asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global [%0], [%1];" ::);',
        ),
        ("cache_policy", "b[0] = __ldg(a);"),
        ("persistent_schedule", "for (int t = blockIdx.x; t < n; t += gridDim.x) b[t] = 0;"),
        ("warp_exchange", "b[0] = __shfl_xor_sync(~0u, b[0], 1);"),
        ("smem_staging", "__shared__ float tile[32][32]; tile[0][0] = a[0];"),
        ("swizzle", "__shared__ float tile[32][32 + 1]; tile[0][0] = a[0];"),
        ("swizzle", "__shared__ float tile[32][32]; tile[n][n ^ (n & 7)] = a[0];"),
        ("register_redistribution", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");'),
        ("launch_overlap", 'asm volatile("griddepcontrol.wait;");'),
        ("packed_math", "__half2 h = __hadd2(p, q);"),
        ("unroll", "#pragma unroll 4\n  for (int i = 0; i < 4; i++) b[i] = 0;"),
        ("inline_asm", 'asm volatile("bar.warp.sync 0xffffffff;");'),
    ],
)
def test_cuda_mechanisms_in_the_kernel_or_in_what_it_calls(name: str, body: str) -> None:
    assert of(cuda(body), name).state == "present"
    assert text_says(cuda(body), name) == text_says(cuda(helper=body), name) == "present"
    assert text_says(cuda(dead=body), name) == "absent"  # nothing calls it
    assert text_says(cuda(f"#if 0\n{body}\n#endif"), name) == "absent"
    assert of(cuda(f"/* {body.replace('*/', '')} */"), name).state == "absent"


def test_an_instruction_that_carries_a_mechanism_is_no_mechanism_of_its_own() -> None:
    kernel = cuda('asm volatile("cp.async.wait_group 1;");')
    assert of(kernel, "async_copy").state == "present"
    assert of(kernel, "inline_asm").state == "absent"


def test_a_namespace_that_is_only_opened_is_not_used() -> None:
    top = "#include <mma.h>\nusing namespace nvcuda;"
    assert of(cuda("b[0] = a[0];", top=top), "mma").state == "absent"
    assert of(cuda("wmma::mma_sync(c, x, y, c);", top=top), "mma").state == "present"


def test_an_attribute_that_the_parser_does_not_know_is_seen() -> None:
    source = cuda("b[0] = a[0];").source.replace(
        b"__global__ void kernel", b"__global__ void __cluster_dims__(2, 1, 1) kernel"
    )
    assert of(Kernel("cuda", "kernel.cu", "kernel", source), "split_or_cluster").state == "present"
    assert of(cuda("/* __cluster_dims__(2, 1, 1) */"), "split_or_cluster").state == "absent"


def test_a_macro_is_seen_where_it_is_used() -> None:
    top = "#define FETCH(p) __ldg(p)"
    assert of(cuda("b[0] = FETCH(a);", top=top), "cache_policy").state == "present"
    assert shown(cuda("b[0] = FETCH(a);", top=top), "cache_policy") == [top]
    assert of(cuda("b[0] = a[0];", top=top), "cache_policy").state == "absent"


def test_a_condition_that_the_text_does_not_decide_leaves_it_unknown() -> None:
    body = "#if __CUDA_ARCH__ >= 800\n  b[0] = __reduce_add_sync(~0u, n);\n#else\n  b[0] = a[0];\n#endif"
    found = of(cuda(body), "warp_exchange")
    assert found.state == "unknown"
    assert "__CUDA_ARCH__ >= 800" in found.why


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("swizzle", "__shared__ float s[32]; s[n ^ 1] = a[0];"),  # an exchange between lanes looks like it
        ("smem_staging", "__shared__ float s[32]; s[0] = a[0];"),
        ("split_or_cluster", "int SPLIT_K = n; b[SPLIT_K] = 0;"),
        ("persistent_schedule", "for (int t = blockIdx.x * blockDim.x; t < n; t += gridDim.x * blockDim.x) b[t] = 0;"),
        ("math_approx", "b[0] = exp2f(a[0]);"),
        (
            "warp_specialize",
            "int w = threadIdx.x / 32; if (w == 0) { for (;;) b[0] = 0; } else { for (;;) b[1] = 0; }",
        ),
    ],
)  # fmt: skip
def test_ambiguous_cues_in_cuda_are_not_guessed(name: str, body: str) -> None:
    found = of(cuda(body), name)
    assert (found.state, len(found.lines)) == ("unknown", 1)
    assert found.feature not in features(cuda(body))


@pytest.mark.parametrize(
    ("name", "body", "top"),
    [
        ("simd", "__m256 v = _mm256_loadu_ps(x); _mm256_storeu_ps(y, v);", "#include <immintrin.h>"),
        ("simd", "#pragma omp simd\n    for (int64_t i = 0; i < n; i++) y[i] = x[i];", ""),
        ("thread_parallel", "y[omp_get_thread_num()] = 0;", "#include <omp.h>"),
        ("nontemporal_store", "_mm256_stream_ps(y, v);", "#include <immintrin.h>"),
        ("prefetch", "_mm_prefetch((const char *)x, 3);", "#include <immintrin.h>"),
        ("math_approx", "v = _mm256_rsqrt_ps(v);", "#include <immintrin.h>"),
        ("simd", "v4 a = *(v4 *)x; a = a * a; *(v4 *)y = a;", "typedef float v4 __attribute__((vector_size(16)));"),
    ],
)  # fmt: skip
def test_c_mechanisms(name: str, body: str, top: str) -> None:
    assert of(c(body, top=top), name).state == "present"
    assert text_says(c("y[0] = x[0];", top=top, dead=body), name) == "absent"


def test_a_vector_that_only_copies_may_be_no_simd() -> None:
    top = "typedef float v4 __attribute__((vector_size(16)));"
    assert of(c("*(v4 *)y = *(const v4 *)x;", top=top), "simd").state == "unknown"


def test_statements_written_out_are_unrolling_and_fewer_of_them_are_not_guessed() -> None:
    two = "for (int64_t i = 0; i < n; i += {step}) {{\n y[i + 0] = x[i + 0];\n y[i + 1] = x[i + 1];\n }}"
    assert of(c(two.format(step=2)), "unroll").state == "present"
    assert of(c(two.format(step=4)), "unroll").state == "unknown"


def test_a_persons_word_decides_what_is_unknown_and_nothing_else() -> None:
    kernel = cuda("b[0] = exp2f(a[0]) + __ldg(a);")
    unknown, present = of(kernel, "math_approx"), of(kernel, "cache_policy")
    said = [
        Settlement(unknown.feature, "present", "the base was folded", who="A. Curator", cue=unknown.cue),
        Settlement(present.feature, "absent", "no", who="A. Curator", cue=present.cue),
    ]
    findings = {f.name: f for f in audit(kernel, said)}
    assert (findings["math_approx"].state, findings["math_approx"].who) == ("present", "A. Curator")
    assert (findings["cache_policy"].state, findings["cache_policy"].who) == ("present", "")
    assert unknown.feature in features(kernel, said)
    other = cuda("b[0] = exp2(a[0]);")  # another cue is another question
    assert unknown.feature not in features(other, said)


def report(kernel: Kernel, **numbers: float) -> Report:
    compiled = StageResult("compile", Verdict.PASS, "ok", "", numbers={"registers": 40.0, **numbers})
    return Report(kernel.hash, "0" * 64, "nvidia-sm90", "2", Trust.STATIC, (compiled,))


def test_a_value_made_of_its_parts_is_no_wide_access() -> None:
    made = "const float4 v = make_float4(a[0], a[1], a[2], a[3]); b[0] = v.x;"
    assert of(cuda(made), "vectorize").state == "absent"
    assert of(cuda("float4 v = four(a); b[0] = v.x;"), "vectorize").state == "unknown"


def test_shared_memory_that_a_type_only_aligns_is_no_wide_access() -> None:
    room = "extern __shared__ uint4 room[]; float *s = reinterpret_cast<float *>(room); b[0] = s[n];"
    assert of(cuda(room), "vectorize").state == "absent"
    assert of(cuda(f"{room} b[1] = room[n].x;"), "vectorize").state == "unknown"


def test_the_compiled_code_decides_what_the_text_leaves_open() -> None:
    body = "#if FAST\n  b[0] = __reduce_add_sync(~0u, n);\n#endif"
    kernel = cuda(body)

    def state(**numbers: float) -> tuple[str, str]:
        found = {f.name: f for f in audit(kernel, (), report(kernel, **numbers))}["warp_exchange"]
        return found.state, found.by

    some = {"sass LDG": 4.0, "wide_accesses": 0.0}
    assert state(**some, **{"sass REDUX": 2.0}) == ("present", "code")
    assert state(**some) == ("absent", "code")
    assert state(**{"sass LDG": 4.0}) == ("unknown", "text")  # an older report lacks the rare instructions
    other = report(cuda("b[0] = 1;"), **some)  # of other bytes
    assert {f.name: f.state for f in audit(kernel, (), other)}["warp_exchange"] == "unknown"
    code = code_of(report(kernel, **some, **{"sass LDGSTS": 2.0}))
    assert code is not None and "40 registers" in code.text and "LDGSTS 2" in code.text


def test_broken_text_is_read_as_far_as_it_goes() -> None:
    for source in (b"", b"\xff\xfe(((", b"void kernel(", b"#if\n", b"@triton.jit\ndef"):
        for surface, name in (("triton", "k.py"), ("c", "k.c"), ("cuda", "k.cu")):
            audit(Kernel(surface, name, "kernel", source))  # type: ignore[arg-type]


@pytest.mark.parametrize("surface", ["triton", "c", "cuda"])
def test_damaged_kernels_are_read_too(surface: str) -> None:
    name = {"triton": "kernel.py", "c": "kernel.c", "cuda": "kernel.cu"}[surface]
    source = (Path(shipped("experts")) / "add_rmsnorm" / surface / name).read_bytes()
    rng = random.Random(surface)
    for _ in range(25):
        text = bytearray(source)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(40)] = rng.choice(
                [b"", b"(", b"\xff", b"\n#if 0\n", b'asm("', b"{", b"#define A(", b"["]
            )
        found = audit(Kernel(surface, name, "add_rmsnorm", bytes(text)))  # type: ignore[arg-type]
        lines = bytes(text).count(b"\n") + bytes(text).count(b"\r") + 1
        assert all(1 <= line <= lines for finding in found for line in finding.lines)


DESCRIPTORS = """\
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tiled(source, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), source.load([0]))


@triton.jit
def plain(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK)))


def run(x, y):
    tiled[(1,)](TensorDescriptor(x, [16], [1], [16]), y, BLOCK=16)
    plain[(1,)](x, y, BLOCK=16)
"""


def test_a_descriptor_of_the_host_belongs_to_the_kernel_that_loads_through_it() -> None:
    kernel = Kernel("triton", "k.py", "run", DESCRIPTORS.encode())
    places = {f.locus for f in audit(kernel) if f.name == "tensor_descriptor" and f.state == "present"}
    assert places == {"k.py::tiled"}


def test_no_line_is_cited_where_a_rule_can_only_say_that_a_mechanism_is_in_the_file() -> None:
    """The rule leaves this tile alone, so it changes no line; the first line of the function shows nothing."""
    top = "// klineage: launch kernel grid=(4) block=(64)\nconstexpr int C = 4;"
    tile = "float t[C]; for (int i = 0; i < C; i++) t[i] = a[n + i]; for (int i = 0; i < C; i++) b[i] = t[i];"
    found = of(cuda(tile, top=top), "register_tiling")
    assert (found.state, found.by, found.lines) == ("present", "rules:register-tile", ())


def test_a_macro_that_names_a_kernel_makes_it_no_part_of_another() -> None:
    """As files do that list what a template is compiled for."""
    text = 'extern "C" __global__ void first(float *y) { y[0] = 1; }\n'
    text += 'extern "C" __global__ void second(float *y) { y[0] = __fdividef(y[0], 3.0f); }\n#define EACH(T) second(T)\n'
    found = audit(Kernel("cuda", "k.cu", "first+second", text.encode()))
    assert {f.locus for f in found if f.name == "math_approx" and f.lines} == {"k.cu::second"}


def test_a_remark_that_goes_with_a_mechanism_is_not_what_shows_it() -> None:
    body = "    at = tl.arange(0, BLOCK)\n    # a promise to the compiler\n\n    tl.assume(n > 0)\n    tl.store(y_ptr + at, n)"
    kernel = triton(body)
    assert shown(kernel, "alignment") == ["tl.assume(n > 0)"]
