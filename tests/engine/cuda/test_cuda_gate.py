"""CUDA kernels through the gate of a machine without a GPU: what it says, and what it must not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.errors import KlineageError
from klineage.executor import LocalExecutor
from klineage.gate import (
    Effect,
    GateRequest,
    Report,
    StageResult,
    Trust,
    Verdict,
    gate,
    report_from_json,
    report_to_json,
)
from klineage.kernel import Kernel
from klineage.platform import detect
from klineage.resources import shipped
from klineage.walk import Walk, new_lineage, open_workspace, walk_automatically
from klineage.worker import cuda_tools
from klineage.worker.faults import Unsupported
from klineage.workload import Workload

Make = Callable[..., Kernel]
Judge = Callable[..., Report]

pytestmark = [
    pytest.mark.usefixtures("nvcc"),
    pytest.mark.skipif(
        detect().gpu is not None, reason="there is a GPU: benchmarks/gpu/cuda_surface.py judges there"
    ),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of its own."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CACHE", "CONFIG", "STATE", "DATA"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        yield folder


@pytest.fixture(scope="module")
def judge(home: Path, executor: LocalExecutor, rows: Workload) -> Judge:
    def run(
        kernel: Kernel,
        baseline: Kernel | None = None,
        workload: Workload = rows,
        platform: str = "nvidia-sm90",
    ) -> Report:
        return gate(GateRequest(kernel, workload, platform, baseline), fresh=True, executor=executor)

    return run


def stage(report: Report, name: str) -> StageResult:
    found = report.stage(name)
    assert found is not None
    return found


def test_a_kernel_that_nobody_ran_is_not_passed(judge: Judge, cuda: Make) -> None:
    report = judge(cuda())
    assert [s.verdict for s in report.stages] == [
        Verdict.PASS,
        Verdict.PASS,
        Verdict.UNSUPPORTED,
        Verdict.PASS,
    ]
    assert report.verdict is Verdict.UNSUPPORTED
    assert report.trust is Trust.STATIC
    assert report.effect is None
    assert report.why == (
        "no GPU on this machine: compiled and checked statically, not run; gate it on a GPU host (--host USER@HOST)"
    )
    assert stage(report, "correctness").reason == "no_gpu"
    counts = stage(report, "profile").counts
    assert counts is not None
    assert (counts.size, counts.values["programs"], counts.values["threads"]) == ("bench", 512, 65536)
    compiled = stage(report, "compile")
    assert "registers" in compiled.summary
    assert compiled.numbers["instructions"] > 20
    if cuda_tools.disassembler() is not None:
        assert compiled.numbers["sass LDG"] >= 2
    assert report.environment["compiler"].startswith("nvcc")
    assert len(report.evidence["artifact"]) == 64
    assert "no_network" in report.layers
    assert report_from_json(report_to_json(report)) == report


def test_the_profile_counts_against_the_baseline_and_claims_no_time(judge: Judge, cuda: Make) -> None:
    more = cuda("for (int k = 0; k < rows; k++) alpha += sinf(x[i] + k);")
    report = judge(more, baseline=cuda())
    profile = stage(report, "profile")
    assert profile.effect is Effect.MORE_WORK
    assert profile.measurement is None
    assert profile.summary.startswith("counts, not time: instructions ")
    assert report.verdict is Verdict.UNSUPPORTED
    assert stage(judge(cuda(), baseline=cuda()), "profile").effect is Effect.SAME_WORK
    assert stage(judge(cuda(), baseline=more), "profile").effect is Effect.LESS_WORK


def test_two_launches_are_counted_together(judge: Judge, shipped_kernel: Callable[..., Kernel]) -> None:
    from klineage.workload import load

    report = judge(shipped_kernel("gemm_split", "gemm"), shipped_kernel("gemm_tiled", "gemm"), load("gemm"))
    compiled, profile = stage(report, "compile"), stage(report, "profile")
    assert "split_kernel" in compiled.summary
    assert "join_kernel" in compiled.summary
    assert compiled.numbers["shared_bytes"] == 2048
    assert profile.counts is not None
    assert profile.counts.values["kernels"] == 2
    assert "programs 65,536 -> 327,680" in profile.summary


BROKEN = {
    "syntax": ({"body": "int k = ;"}, "compile", "compile", "kernel.cu:5: expected an expression"),
    "dynamic shared": ({"launch": "grid=(1) block=(32) shared=240000"}, "compile", "shared_memory", "240000"),
    "static and dynamic": (
        {"head": "__shared__ char t[40000];", "body": "t[threadIdx.x] = i; alpha = t[0];", "launch": "grid=(1) block=(32) shared=200000"},
        "compile", "shared_memory", "240000",
    ),
    "threads": ({"launch": "grid=(1) block=(32, 64)"}, "compile", "threads", "2048 threads"),
    "grid": ({"launch": "grid=(rows - 64) block=(32)"}, "compile", "launch", "grid (0, 1, 1)"),
    "no launch": ({"launch": "grid=(1) block=(32) when=rows < 9"}, "compile", "launch", "no launch applies at rows=64"),
    "flags": ({"head": "// klineage: flags -Xcompiler -fPIC"}, "compile", "flags", "-Xcompiler"),
    "include": ({"head": "#include <vector>"}, "static", "include", "<vector>"),
    "launch": ({"launch": "grid=(height) block=(32)"}, "static", "launch", "height"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_fails_at_its_stage(name: str, judge: Judge, cuda: Make) -> None:
    how, where, reason, words = BROKEN[name]
    report = judge(cuda(**how))
    assert report.verdict is Verdict.FAIL
    assert stage(report, where).reason == reason, stage(report, where)
    assert words in report.why
    assert stage(report, "profile").verdict is Verdict.SKIPPED


def test_a_small_device_refuses_what_a_large_one_takes(judge: Judge, cuda: Make) -> None:
    kernel = cuda(launch="grid=(1) block=(32) shared=150000")
    assert stage(judge(kernel), "compile").verdict is Verdict.PASS
    refused = stage(judge(kernel, platform="nvidia-sm89"), "compile")
    assert (refused.verdict, refused.reason) == (Verdict.FAIL, "shared_memory")
    assert stage(judge(kernel, platform="amd-gfx942"), "compile").verdict is Verdict.UNSUPPORTED


def test_a_missing_compiler_says_nothing_of_the_kernel(
    home: Path, rows: Workload, cuda: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLINEAGE_CUDA_COMPILER", "nvrtc")
    try:
        cuda_tools.compiler.cache_clear()
        cuda_tools.compiler()
        pytest.skip("NVRTC is here")
    except Unsupported:
        pass
    finally:
        cuda_tools.compiler.cache_clear()
    workers = LocalExecutor()
    try:
        report = gate(GateRequest(cuda(), rows), fresh=True, executor=workers)
    finally:
        workers.close()
    assert (report.verdict, stage(report, "compile").reason) == (Verdict.UNSUPPORTED, "no_cuda_compiler")
    assert "pip install" in report.why


def test_a_lineage_of_it_opens_and_takes_no_step_unjudged(home: Path, tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path / "w", create=True)
    try:
        path = shipped("experts") / "add_rmsnorm" / "cuda" / "kernel.cu"
        walk = Walk(workspace, new_lineage(workspace, path, "add_rmsnorm"))
        state = walk.state()
        assert (walk.id, state.meta.surface, state.meta.platform) == (
            "add_rmsnorm-cuda",
            "cuda",
            "nvidia-sm90",
        )
        assert state.kernel.source == path.read_bytes()
        assert {"restrict", "vectorize", "warp_exchange"} <= {feature.name for feature in state.features}
        assert walk.candidates()
        with pytest.raises(KlineageError, match="no GPU on this machine"):
            walk_automatically(walk)
        simpler = walk.edited(state.kernel.source.replace(b"VECTORS = 2", b"VECTORS = 1"))
        report = walk.gate(simpler)
        assert report.verdict is Verdict.UNSUPPORTED
        with pytest.raises(KlineageError, match="nothing is known of what this kernel computes"):
            walk.accept(simpler, report)
        assert walk.reject(simpler, report, why="no GPU").decision == "rejected"
        assert len(walk.state().steps) == 1
    finally:
        workspace.close()
