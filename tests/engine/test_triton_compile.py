"""Cross-compilation without a GPU. Functions without ``test_`` run in a child process."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.triton

GEMM = """import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=4, num_stages=3),
        triton.Config({"BM": 128, "BN": 128, "BK": 32}, num_warps=4, num_stages=4),
    ],
    key=["k"],
)
@triton.jit
def gemm_kernel(x, w, y, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, k, BK):
        a = tl.load(x + rm[:, None] * k + (i + rk)[None, :])
        b = tl.load(w + rn[None, :] * k + (i + rk)[:, None])
        acc = tl.dot(a, b, acc)
    tl.store(y + rm[:, None] * n + rn[None, :], acc.to(tl.bfloat16))


@triton.jit
def zero_kernel(y, BLOCK: tl.constexpr):
    tl.store(y + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.bfloat16))


def gemm(x, w, y):
    assert x.is_cuda
    m, k = x.shape
    n = w.shape[0]
    scratch = torch.empty((m, n), dtype=x.dtype, device=x.device)
    for target in (scratch, y):
        zero_kernel[(m * n // 1024,)](target, BLOCK=1024)
    gemm_kernel[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))](x, w, y, n, k)


def nothing(x, w, y):
    pass
"""

RECORD = {
    *("name", "target", "launches", "programs", "registers", "spill_bytes", "stack_bytes", "shared_bytes"),
    *("num_warps", "num_stages", "instructions", "wide_accesses", "artifact", "fp_fusion"),
}


def load(folder: str, text: str, entry: str, config: dict[str, int] | None = None) -> Any:
    from klineage.worker import triton_load

    path = Path(folder) / "kernel.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return triton_load.load(str(path), entry, config, mode="compile")


def gemm(
    folder: str,
    text: str = GEMM,
    entry: str = "gemm",
    target: str = "nvidia-sm90",
    config: dict[str, int] | None = None,
    device: str = "meta",
) -> list[dict[str, Any]]:
    import torch
    from klineage.worker.triton_compile import compile_entry

    values = {name: torch.empty(1024, 1024, dtype=torch.bfloat16, device=device) for name in ("x", "w", "y")}
    return compile_entry(load(folder, text, entry, config), values, target)


def resources(folder: str) -> None:
    records = gemm(folder)
    assert [r["name"] for r in records] == ["zero_kernel", "gemm_kernel"]
    zero, main = records
    assert set(main) == RECORD, set(main) ^ RECORD
    assert (zero["launches"], zero["programs"], zero["shared_bytes"]) == (2, 2048, 0), zero
    assert (main["launches"], main["programs"], main["num_warps"], main["num_stages"]) == (1, 256, 4, 3)
    assert main["instructions"]["HGMMA"] > 0 and main["instructions"]["LDGSTS"] > 0, main["instructions"]
    assert main["instructions"]["total"] == sum(v for k, v in main["instructions"].items() if k != "total")
    assert 30 < main["registers"] <= 255 and main["spill_bytes"] == main["stack_bytes"] == 0
    assert main["shared_bytes"] >= 2 * 3 * (64 + 64) * 32 and main["fp_fusion"] is True
    old = gemm(folder, target="nvidia-sm80")[1]
    assert old["instructions"]["HMMA"] > 0 and "HGMMA" not in old["instructions"]
    assert old["artifact"] != main["artifact"]


def pinned(folder: str) -> None:
    first, second = gemm(folder)[1], gemm(folder, config={"BM": 128, "num_stages": 4})[1]
    assert (second["num_stages"], second["programs"]) == (4, 64)
    assert second["shared_bytes"] > first["shared_bytes"]
    edited = gemm(folder, config={"BM": 64, "num_stages": 1})[1]
    assert edited["num_stages"] == 1 and edited["shared_bytes"] < first["shared_bytes"]
    assert "LDGSTS" not in edited["instructions"]


def content_addressed(folder: str) -> None:
    first = gemm(f"{folder}/a")[1]
    moved = gemm(f"{folder}/b", "# a comment\n\n" + GEMM, device="cpu")[1]
    assert first == moved, {k: (first[k], moved[k]) for k in first if first[k] != moved[k]}
    changed = gemm(f"{folder}/c", GEMM.replace("acc.to(", "(2 * acc).to("))[1]
    assert changed["artifact"] != first["artifact"]


def too_much(folder: str) -> None:
    huge = gemm(folder, config={"BM": 256, "BN": 256, "BK": 64, "num_warps": 4, "num_stages": 4})[1]
    assert huge["shared_bytes"] > 227 << 10  # compiles all the same: the limit is for the gate to check
    assert huge["spill_bytes"] > 0 and huge["stack_bytes"] > 0, huge


def faults(folder: str) -> None:
    from klineage.worker.faults import KernelFault

    def refused(text: str, reason: str, *words: str, entry: str = "gemm") -> None:
        try:
            gemm(folder, text, entry)
        except KernelFault as error:
            assert error.reason == reason, f"{error.reason}: {error}"
            assert all(word in str(error) for word in words), str(error)
        else:
            raise AssertionError(f"compiled, expected {reason}")

    refused(GEMM, "no_launch", "nothing", entry="nothing")
    refused(
        GEMM.replace("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, c, acc)"),
        "compile_error",
        "line 22",
        "c is not defined",
    )
    refused(
        GEMM.replace("tl.arange(0, BK)", "tl.arange(0, BK + 1)"), "compile_error", "line 17", "power of 2"
    )
    refused(GEMM.replace("m, k = x.shape", "m, k = x.shape; y.sum().item()"), "host_compute", "line 33")
    helper = "@triton.jit\ndef twice(a):\n    return a + wrong\n\n\n@triton.jit\ndef zero_kernel"
    text = GEMM.replace("@triton.jit\ndef zero_kernel", helper).replace("acc.to(", "twice(acc).to(")
    refused(text, "compile_error", "line 28", "wrong is not defined")
    refused("import torch\nraise ValueError(3)\n", "import_failed", "line 2")


def shipped(workload: str) -> None:
    import torch
    from klineage.resources import shipped as data
    from klineage.worker import triton_load
    from klineage.worker.triton_compile import compile_entry

    types = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "int32": torch.int32}
    folder = data("experts") / workload
    given = runpy.run_path(str(folder / "workload.py"))
    dims = given["SIZES"]["paper"]
    tensors = given["tensors"](given["ELEMENT"]["triton"], **dims)
    values = {name: torch.empty(shape, dtype=types[t], device="meta") for name, (t, shape) in tensors.items()}
    entry = triton_load.load(str(folder / "triton" / "kernel.py"), workload, mode="compile")
    records = compile_entry(entry, {**values, **dims, **given.get("SCALARS", {})}, "nvidia-sm90")
    for record in records:
        assert record["spill_bytes"] == 0 and record["shared_bytes"] <= 227 << 10, record


CASES = (resources, pinned, content_addressed, too_much, faults)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_compiler(case: Any, compiled: Any, tmp_path: Path) -> None:
    compiled(case, tmp_path)


@pytest.mark.parametrize("workload", ["gemm", "fmha", "add_rmsnorm"])
def test_shipped_experts_compile_within_the_limits_of_their_platform(workload: str, compiled: Any) -> None:
    compiled(shipped, workload)


def test_histogram_reads_predicates_and_leaves_out_padding() -> None:
    from klineage.worker.triton_cubin import histogram

    listing = """
	code for sm_90
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/             @!UP1 UIADD3 UR4, UR5, 0x1, URZ ;
        /*0030*/              @P2  LDG.E R8, desc[UR4][R2.64+0x10] ;
        /*0040*/                   EXIT ;
        /*0050*/                   NOP;
"""
    assert histogram(listing) == {"LDG": 2, "EXIT": 1, "LDC": 1, "UIADD3": 1, "total": 5}
