"""What the static rules say about CUDA files: which pass, and how each wrong one is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.resources import shipped
from klineage.surface.cuda_static import check, notes
from klineage.surface.dispatch import entry_of, flags_of
from klineage.surface.tree import apply_edits, parse
from klineage.walk.reading import read_kernel
from klineage.workload import Workload, load

Make = Callable[..., Kernel]


def test_the_shipped_kernel_passes() -> None:
    workload = load("add_rmsnorm")
    kernel = read_kernel(shipped("experts") / "add_rmsnorm" / "cuda" / "kernel.cu", workload)
    assert (kernel.surface, kernel.entry) == ("cuda", "add_rmsnorm_kernel")
    assert check(kernel, workload) == []


@pytest.mark.parametrize(
    ("name", "workload"), [("gemm_tiled", "gemm"), ("gemm_split", "gemm"), ("rmsnorm_ptx", "add_rmsnorm")]
)
def test_the_test_kernels_pass(name: str, workload: str, shipped_kernel: Callable[..., Kernel]) -> None:
    kernel = shipped_kernel(name, workload)
    assert check(kernel, load(workload)) == []
    assert parse("cuda", kernel.filename, kernel.source).broken_lines() == ()


def with_map(rows: Workload, source: bytes | None = None) -> Kernel:
    kernel = read_kernel(Path(__file__).parent / "kernels" / "rows_tma.cu", rows)
    return kernel if source is None else Kernel("cuda", kernel.filename, kernel.entry, source)


def test_a_kernel_with_a_tensor_map_passes(rows: Workload) -> None:
    kernel = with_map(rows)
    assert kernel.entry == "scale_kernel+plain_kernel"
    assert check(kernel, rows) == []


WRONG_MAPS = {
    b"x_map x box": (
        b"z_map x box",
        "signature",
        "declare it: // klineage: tensor_map x_map BUFFER box=(...)",
    ),
    b" x box": (b" z box", "launch", "tensor_map x_map: z is no buffer (bias, x, y)"),
    b"box=(1, BLOCK)": (b"box=(1, WIDTH)", "launch", "WIDTH is no dimension of cuda (rows, columns)"),
}


@pytest.mark.parametrize("text", WRONG_MAPS)
def test_a_map_that_fits_nothing_is_refused(text: bytes, rows: Workload) -> None:
    other, reason, words = WRONG_MAPS[text]
    found = check(with_map(rows, with_map(rows).source.replace(text, other, 1)), rows)
    assert {p.reason for p in found} == {reason}
    assert words in found[0].message


def test_an_output_may_be_written_through_a_map(rows: Workload) -> None:
    source = b"""// klineage: tensor_map y_map y box=(1, 64)
// klineage: launch k grid=(1) block=(1)
#include <cuda.h>
extern "C" __global__ void k(const float *x, const __grid_constant__ CUtensorMap y_map) {}
"""
    assert check(Kernel("cuda", "kernel.cu", "k", source), rows) == []
    onto_x = source.replace(b"y_map y", b"y_map x")
    assert [p.reason for p in check(Kernel("cuda", "kernel.cu", "k", onto_x), rows)] == ["no_output"]


def test_inline_assembly_is_noted_and_not_refused(shipped_kernel: Callable[..., Kernel]) -> None:
    (note,) = notes(shipped_kernel("rmsnorm_ptx", "add_rmsnorm"))
    assert note.reason == "inline_asm"
    assert note.line == 8


def test_declared_flags_are_part_of_the_kernel(shipped_kernel: Callable[..., Kernel]) -> None:
    kernel = shipped_kernel("rmsnorm_ptx", "add_rmsnorm")
    assert kernel.flags == flags_of("cuda", kernel.source) == ("-use_fast_math", "-DTHREADS=128")


HEADS = {
    '#include "/etc/passwd"': "include",
    "#include <cub/cub.cuh>": "include",
    "#include <torch/extension.h>": "include",
    "#inc\\\nlude <vector>": "include",
    "/* */ # /* */ include <stdlib.h>": "include",
    "%:include <stdio.h>": "include",
    "#define H <stdio.h>\n#include H": "include",
    "#embed </etc/passwd>": "include",
    'extern "C" int main() { return 0; }': "host_code",
    "void host(float *y) { scale<<<1, 2>>>(y, y, y, 1, 1, 1); }": "host_code",
    "// klineage: lunch scale grid=(1) block=(1)": "launch",
}


@pytest.mark.parametrize("head", HEADS)
def test_a_file_that_reaches_out_is_refused_at_its_line(head: str, cuda: Make, rows: Workload) -> None:
    problems = check(cuda(head=head), rows)
    assert [p.reason for p in problems] == [HEADS[head]]
    assert problems[0].line in (2, 3)


@pytest.mark.parametrize(
    "head",
    ["// #include <vector>", '/*\n#include "x.h"\n*/', "#include <cuda_fp16.h>  // halves", "#include <mma.h>",
     "#include <cooperative_groups/reduce.h>", "#include <cuda/pipeline>", "#include <cuda/std/array>", "#include <cstdint>",
     "#pragma unroll", "constexpr __host__ __device__ int half_of(int a) { return a / 2; }",
     "static inline int helper(int a) { return a / 2; }", "#if 1\n#error_free\n#endif"],
)  # fmt: skip
def test_device_headers_and_helpers_are_fine(head: str, cuda: Make, rows: Workload) -> None:
    assert check(cuda(head=head), rows) == []


LAUNCHES = {
    "grid=(height) block=(32)": ("launch", "height is no dimension of cuda (rows, columns)"),
    "grid=(alpha) block=(32)": ("launch", "alpha is no dimension"),
    "grid=(1) block=(32) args=(x, bias)": ("", ""),
    "grid=(1) block=(32) args=(x, bias, y, rows, columns, alpha, 3)": (
        "launch",
        "takes 6 arguments, 7 are given",
    ),
    "grid=(1) block=(32) args=(width=3)": ("launch", "has no parameter width"),
    "grid=(1) block=(32) args=(x=rows)": (
        "signature",
        "parameter x of scale is a pointer; rows is no buffer",
    ),
    "grid=(1) block=(32) args=(rows=height)": ("signature", "height is no dimension, scalar or constant"),
    "grid=(1) block=(32) args=(x, bias, x)": ("no_output", "no launch can write y"),
}


@pytest.mark.parametrize("launch", LAUNCHES)
def test_a_launch_that_does_not_fit_is_refused(launch: str, cuda: Make, rows: Workload) -> None:
    reason, words = LAUNCHES[launch]
    problems = check(cuda(launch=launch), rows)
    assert [p.reason for p in problems] == ([reason] if reason else [])
    assert all(words in p.message for p in problems)


def test_parameters_that_cannot_be_passed_are_named(rows: Workload) -> None:
    source = (
        b"struct S { int a; };\n// klineage: launch k grid=(1) block=(1)\n"
        b'extern "C" __global__ void k(float *y, S rows, const float *q, int beta) { y[0] = q[0]; }'
    )
    found = check(Kernel("cuda", "k.cu", "k", source), rows)
    assert [p.reason for p in found] == ["signature"] * 3
    assert "parameter rows of k is a S" in found[0].message
    assert "q is no buffer" in found[1].message
    assert "beta is no dimension" in found[2].message


def test_an_entry_without_c_linkage_is_told_how(rows: Workload) -> None:
    source = b"// klineage: launch k grid=(1) block=(1)\n__global__ void k(float *y) { y[0] = 1; }"
    problem = check(Kernel("cuda", "k.cu", "k", source), rows)[0]
    assert problem.reason == "no_entry"
    assert 'extern "C" __global__ void k(...)' in problem.message


@pytest.mark.parametrize(
    ("source", "reason"),
    [(b"a\0b", "binary"), (b" \n", "empty"), (b"\xff\xfe = ;", "no_entry"), (b"not cuda", "no_entry")],
)
def test_files_that_are_no_kernels_are_refused(source: bytes, reason: str, rows: Workload) -> None:
    assert check(Kernel("cuda", "k.cu", "k", source), rows)[0].reason == reason


def many(launched: str = "") -> bytes:
    """45 kernels in one file."""
    comments = "".join(f"// klineage: launch {name} grid=(1) block=(1)\n" for name in launched.split())
    return (
        comments
        + "".join(f'extern "C" __global__ void k{i}(float *y) {{ y[0] = {i}; }}\n' for i in range(45))
    ).encode()


def test_one_of_many_kernels_is_chosen(rows: Workload) -> None:
    assert entry_of("cuda", "k.cu", many("k7"), rows) == "k7"
    assert entry_of("cuda", "k.cu", many("k7 k9"), rows) == "k7+k9"
    assert entry_of("cuda", "k.cu", many("k7 k9"), rows, "k9") == "k9"
    with pytest.raises(KlineageError, match="launch k12 grid=") as refused:
        entry_of("cuda", "k.cu", many("k7"), rows, "k12")
    assert "k0" not in str(refused.value)
    with pytest.raises(KlineageError, match=r"no __global__ function 'no'; it has k0, .* and 37 more"):
        entry_of("cuda", "k.cu", many("k7"), rows, "no")
    with pytest.raises(KlineageError, match=r"does not say how k0 is launched.* and 37 more"):
        entry_of("cuda", "k.cu", many(), rows)
    with pytest.raises(KlineageError, match=r"k\.cu:1: klineage launch: k needs both grid"):
        entry_of("cuda", "k.cu", b"// klineage: launch k\n" + many("k7"), rows)
    with pytest.raises(KlineageError, match=r"k\.cu:1: this is not valid CUDA C"):
        entry_of("cuda", "k.cu", b"%:include <x>\n)", rows)
    with pytest.raises(KlineageError, match="has no __global__ function; add one"):
        entry_of("cuda", "k.cu", b"int a;", rows)


def test_functions_and_loops_have_places() -> None:
    source = (
        b"__device__ int f(int a) { return a; }\n"
        b'extern "C" __global__ __launch_bounds__(256) __cluster_dims__(2, 1, 1) void k(float *y) {\n'
        b"#pragma unroll\n  for (int i = 0; i < 4; i++)\n#pragma unroll 2\n    for (int j = 0; j < 4; ++j) y[i] = j;\n}\n"
    )
    unit = parse("cuda", "k.cu", source)
    assert unit.broken_lines() == ()
    assert [(f.name, f.jit, f.exported) for f in unit.functions] == [("f", False, False), ("k", True, True)]
    assert set(unit.loci) == {"k.cu::f", "k.cu::k", "k.cu::k/for[i]", "k.cu::k/for[i]/for[j]"}
    assert apply_edits(source, ()) == source


def test_line_endings_and_odd_bytes_do_not_matter(tmp_path: Path, cuda: Make, rows: Workload) -> None:
    kernel = cuda(head="// \xe9t\xe9")
    for source in (kernel.source.replace(b"\n", b"\r\n"), kernel.source.decode().encode("latin-1")):
        path = tmp_path / "kernel.cu"
        path.write_bytes(source)
        read = read_kernel(path, rows)
        assert read.source == source
        assert check(read, rows) == []


def test_a_template_is_not_told_to_have_c_linkage(rows: Workload) -> None:
    """No template can: ``extern "C"`` before one is an error of the compiler."""
    text = "// klineage: launch k grid=(1) block=(32)\ntemplate <int N> __global__ void k(float *y) { y[0] = N; }\n"
    (problem, *_) = check(Kernel("cuda", "k.cu", "k", text.encode()), rows)
    assert problem.message.startswith("k is a template and so has no name to be launched by")
