"""CUDA kernels through the real compiler: what it reports, what is refused, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from klineage.kernel import Kernel
from klineage.walk.reading import read_kernel
from klineage.worker import cuda_build, cuda_elf, cuda_tools
from klineage.worker.faults import KernelFault, Unsupported, WorkerError
from klineage.workload import Workload

Make = Callable[..., Kernel]
SPILLING = "float a[120]; for (int k = 0; k < 120; k++) a[k] = x[i + k]; for (int k = 0; k < 120; k++) y[i] += a[(k * 7 + rows) % 120];"


@pytest.fixture
def build(cache: Path, nvcc: None) -> Callable[..., dict[str, Any]]:
    def run(kernel: Kernel, *flags: str, platform: str = "nvidia-sm90") -> dict[str, Any]:
        return cuda_build.build(kernel.source, kernel.filename, (*kernel.flags, *flags), platform, cache)

    return run


def test_a_build_reports_every_kernel(
    build: Callable[..., dict[str, Any]], shipped_kernel: Callable[..., Kernel]
) -> None:
    built = build(shipped_kernel("gemm_split", "gemm"))
    assert set(built["kernels"]) == {"split_kernel", "join_kernel"}
    split = built["kernels"]["split_kernel"]
    assert 16 < split["registers"] < 80
    assert (split["spill_bytes"], split["shared_bytes"]) == (0, 0)  # its shared memory is dynamic
    assert split["instructions"]["total"] > 50
    assert Path(built["cubin"]).read_bytes()[:4] == b"\x7fELF"
    assert "ptxas info" not in built["log"]


def test_the_histogram_names_instructions(build: Callable[..., dict[str, Any]], cuda: Make) -> None:
    if cuda_tools.disassembler() is None:
        pytest.skip("needs cuobjdump")
    counts = build(
        cuda("__shared__ float t[128]; t[threadIdx.x] = x[i]; __syncthreads(); alpha = t[127 - threadIdx.x];")
    )["kernels"]["scale"]["instructions"]
    assert {"LDG", "STG", "FFMA", "BAR", "STS", "LDS", "total"} <= set(counts)
    assert counts["total"] == sum(n for name, n in counts.items() if name != "total")


def test_an_inlined_asm_and_a_template_reach_the_code(
    build: Callable[..., dict[str, Any]], shipped_kernel: Callable[..., Kernel]
) -> None:
    built = build(shipped_kernel("rmsnorm_ptx", "add_rmsnorm"))
    assert built["kernels"]["rmsnorm_ptx"]["shared_bytes"] == 16
    assert "--use_fast_math -DTHREADS=128" in built["command"]


def test_a_tensor_map_reaches_the_copy_engine(build: Callable[..., dict[str, Any]], rows: Workload) -> None:
    kernel = read_kernel(Path(__file__).parent / "kernels" / "rows_tma.cu", rows)
    found = build(kernel)["kernels"]
    assert set(found) == {"scale_kernel", "plain_kernel"}
    if cuda_tools.disassembler() is not None:
        assert "UTMALDG" in found["scale_kernel"]["instructions"]
        assert "UTMALDG" not in found["plain_kernel"]["instructions"]


def test_the_second_build_is_found_and_a_damaged_one_made_again(
    build: Callable[..., dict[str, Any]], cuda: Make
) -> None:
    kernel = cuda("// cached")
    first = build(kernel)
    assert not first["cached"]
    assert build(kernel) == {**first, "cached": True}
    Path(first["cubin"]).write_bytes(b"damage")
    assert build(kernel) == first


def test_a_cache_may_be_the_current_folder(
    cuda: Make, tmp_path: Path, nvcc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = cuda_build.build(cuda().source, "kernel.cu", (), "nvidia-sm90", Path())
    assert tmp_path in Path(built["cubin"]).parents


def test_registers_and_spills_follow_the_flags(build: Callable[..., dict[str, Any]], cuda: Make) -> None:
    kernel = cuda(SPILLING)
    free, tight = (build(kernel, *flags)["kernels"]["scale"] for flags in ((), ("-maxrregcount=24",)))
    assert tight["registers"] <= 24 < free["registers"]
    assert tight["stack_bytes"] > 0


PRINTF = 'extern "C" __device__ int printf(const char *, ...);'
BIG = "__shared__ float t[90000]; t[threadIdx.x] = x[i]; __syncthreads(); y[i] = t[0];"
HEAP = "float *p = (float *)malloc(8); p[0] = x[i]; y[i] = p[0]; free(p);"
BROKEN = {
    "undeclared": ("int k = nothing;", "", "compile", 'kernel.cu:5: identifier "nothing" is undefined'),
    "ptx": ('asm("no.such.op;");', "", "compile", "error"),
    "too much static": (BIG, "", "compile", "shared"),
    "malloc": (HEAP, "", "symbols", "free()"),
    "printf": ('if (alpha > 3) printf("%f", alpha);', PRINTF, "symbols", "printf()"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_says_where(name: str, build: Callable[..., dict[str, Any]], cuda: Make) -> None:
    body, head, reason, words = BROKEN[name]
    with pytest.raises(KernelFault) as fault:
        build(cuda(body, head=head))
    assert fault.value.reason == reason, fault.value
    assert words in str(fault.value)


@pytest.mark.parametrize(
    "flag", ["-Xptxas", "-o", "--ptxas-options=-O0", "-I/", "-DA=$(ls)", "-include", "-std=c++11"]
)
def test_flags_that_reach_out_are_refused(flag: str) -> None:
    with pytest.raises(KernelFault, match="may not declare the compiler flag"):
        cuda_build.options((flag,), "sm_90a")


def test_platforms_name_their_full_instruction_set() -> None:
    names = ("nvidia-sm80", "nvidia-sm89", "nvidia-sm90", "nvidia-sm100", "nvidia-sm120")
    assert [cuda_build.architecture(p) for p in names] == ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"]


def test_another_platform_is_another_build(build: Callable[..., dict[str, Any]], cuda: Make) -> None:
    hashes = {build(cuda(), platform=p)["sha256"] for p in ("nvidia-sm80", "nvidia-sm90")}
    assert len(hashes) == 2


def test_without_a_compiler_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_nvcc", "_nvrtc"):
        monkeypatch.setattr(cuda_tools, name, lambda: None)
    cuda_tools.compiler.cache_clear()
    with pytest.raises(Unsupported, match="pip install nvidia-cuda-nvrtc") as missing:
        cuda_tools.compiler()
    assert missing.value.reason == "no_cuda_compiler"
    assert missing.value.verdict == "unsupported"


@pytest.fixture
def nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Insist on NVRTC; skip where it is not."""
    monkeypatch.setenv("KLINEAGE_CUDA_COMPILER", "nvrtc")
    cuda_tools.compiler.cache_clear()
    try:
        cuda_tools.compiler()
    except Unsupported:
        pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc nvidia-cuda-runtime")


@pytest.fixture(autouse=True)
def look_again() -> Any:
    """The compiler that one test insists on is not the next one's."""
    yield
    cuda_tools.compiler.cache_clear()


@pytest.mark.parametrize(("name", "workload"), [("gemm_split", "gemm"), ("rmsnorm_ptx", "add_rmsnorm")])
def test_nvrtc_compiles_the_same_files(
    name: str, workload: str, nvrtc: None, cache: Path, shipped_kernel: Callable[..., Kernel]
) -> None:
    kernel = shipped_kernel(name, workload)
    built = cuda_build.build(kernel.source, kernel.filename, kernel.flags, "nvidia-sm90", cache)
    assert built["compiler"].startswith("nvrtc")
    assert all(k["registers"] > 8 for k in built["kernels"].values())


def test_nvrtc_says_where_a_kernel_is_broken(nvrtc: None, cache: Path, cuda: Make) -> None:
    kernel = cuda("int k = nothing;", head="#include <cstdint>\n#include <cmath>")
    with pytest.raises(KernelFault, match=r'kernel\.cu:6: identifier "nothing" is undefined'):
        cuda_build.build(kernel.source, kernel.filename, (), "nvidia-sm90", cache)


def test_bytes_that_are_no_cubin_are_an_error_of_the_worker(
    build: Callable[..., dict[str, Any]], cuda: Make
) -> None:
    good = Path(build(cuda())["cubin"]).read_bytes()
    for data in (b"", b"\x7fELF", good[:200], good[:-500], bytes(len(good))):
        with pytest.raises(WorkerError):
            cuda_elf.read(data)
    assert set(cuda_elf.read(good).kernels) == {"scale"}


def test_device_variables_are_counted(build: Callable[..., dict[str, Any]], cuda: Make) -> None:
    built = build(cuda("kept[i % 64] = x[i]; y[i] = kept[(i + 1) % 64];", head="__device__ float kept[64];"))
    assert built["global_bytes"] == 256
