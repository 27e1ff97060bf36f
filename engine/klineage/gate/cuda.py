"""Stages of CUDA kernels: a true compile everywhere, judged and timed where there is a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from klineage.errors import KlineageError
from klineage.gate import correctness, evidence
from klineage.gate.cache import folder
from klineage.gate.counts import RESOURCES, amount, opcodes, side_by_side
from klineage.gate.device import time_on_gpu, timed_on_gpu
from klineage.gate.interpreted import compile_dims, measures
from klineage.gate.request import kernel_job, workload_job
from klineage.gate.session import Session, failed
from klineage.gate.verdict import Counts, StageResult, Trust, Verdict
from klineage.kernel import Kernel

NO_GPU = "no_gpu"
_NO_TORCH = "judging a CUDA kernel on the GPU needs torch, for the reference and the clock: pip install torch"


def compile_kernel(session: Session) -> StageResult:
    """Compile for the platform, and check every launch against what the platform can launch."""
    from klineage.platform import limits

    platform = session.request.platform
    try:
        limits(platform)
    except KlineageError as error:
        text = f"CUDA kernels are compiled for NVIDIA: {error}"
        return StageResult("compile", Verdict.UNSUPPORTED, "platform", text)
    answer = _build(session, session.kernel)
    if answer["verdict"] != "pass":
        return failed("compile", answer)
    session.kernel.update({name: answer[name] for name in ("cubin", "sha256")})
    session.evidence["artifact"] = answer["sha256"]
    session.environment.update(compiler=answer["compiler"], flags=answer["command"])
    session.counts.update(static_counts(answer["kernels"]))
    numbers = {name: float(session.counts[name]) for name in ("instructions", *RESOURCES)}
    numbers |= opcodes(answer["kernels"])
    numbers |= {"bytes": float(answer["bytes"]), "cached": float(answer["cached"])}
    broken = _exceeded(answer["kernels"], platform)
    if broken:
        return StageResult("compile", Verdict.FAIL, broken[0], broken[1], numbers=numbers, log=answer["log"])
    kept = answer["global_bytes"]
    state = f"; {amount(kept)} of device variables" if kept else ""
    text = f"{answer['compiler']} for {platform}: {_resources(answer['kernels'])}{state}"
    return StageResult("compile", Verdict.PASS, "ok", text, numbers=numbers, log=answer["log"])


def _build(session: Session, kernel: dict[str, Any]) -> dict[str, Any]:
    request = session.request
    return session.job(
        "compile",
        "native",
        session.policy.compile_seconds,
        op="compile_cuda",
        kernel=kernel,
        dims=compile_dims(session),
        target=request.platform,
        workload=workload_job(request.workload, "cuda"),
        cache=str(folder() / "cuda") if session.executor.here else "",
    )


def _exceeded(launches: list[dict[str, Any]], platform: str) -> tuple[str, str] | None:
    from klineage.platform import exceeded

    for launch in launches:
        found = exceeded(
            platform,
            shared_bytes=launch["shared_bytes"] + launch["dynamic_bytes"],
            registers=launch["registers"],
            threads=launch["threads"],
        )
        if found:
            return found[0], f"{launch['name']} {found[1]}"
    return None


def _resources(launches: list[dict[str, Any]]) -> str:
    return "; ".join(
        f"{x['name']} {x['registers']} registers, {amount(x['shared_bytes'] + x['dynamic_bytes'])} shared, "
        f"{x['spill_bytes']} B spilled"
        for x in launches
    )


def static_counts(launches: list[dict[str, Any]]) -> dict[str, int]:
    """Instructions of all launches together, as they stand in the code; of each resource the largest."""
    shared = [x["shared_bytes"] + x["dynamic_bytes"] for x in launches]
    return {
        "instructions": sum(x["instructions"]["total"] for x in launches),
        "kernels": len(launches),
        "programs": sum(x["programs"] for x in launches),
        "threads": sum(x["programs"] * x["threads"] for x in launches),
        "registers": max(x["registers"] for x in launches),
        "spill_bytes": max(x["spill_bytes"] for x in launches),
        "shared_bytes": max(shared),
    }


def check(session: Session) -> StageResult:
    """Correctness on the GPU. Without one nothing is known of what the kernel computes, and that is said."""
    if not measures(session):
        session.trust = Trust.STATIC
        return StageResult("correctness", Verdict.UNSUPPORTED, NO_GPU, _unjudged(session))
    versions = session.executor.versions("gpu", session.cancel)
    if versions and "torch" not in versions:
        return StageResult("correctness", Verdict.UNSUPPORTED, "no_torch", _NO_TORCH)
    session.environment.update({f"worker {name}": version for name, version in versions.items()})
    session.trust = Trust.MEASURED_GPU
    return evidence.sanitize_on_gpu(session, correctness.check(session, "gpu"))


def _unjudged(session: Session) -> str:
    gpu, place = session.machine.gpu, session.executor.place
    lacking = f"no GPU on {place}" if gpu is None else f"the GPU of {place} is {gpu.platform}"
    return f"{lacking}: compiled and checked statically, not run; gate it on a GPU host (--host USER@HOST)"


def unjudged(result: StageResult) -> bool:
    """Whether correctness was not judged for want of a GPU: the profile still has its counts, and no more."""
    return result.verdict is Verdict.UNSUPPORTED and result.reason == NO_GPU


def profile(session: Session) -> StageResult:
    """Times on a GPU; without one, what the compiler made of the kernel beside the baseline."""
    baseline: dict[str, Any] | None = None
    launches: list[dict[str, Any]] = []
    if session.request.baseline is not None:
        built = _baseline(session, session.request.baseline)
        if isinstance(built, StageResult):
            return built
        baseline, launches = built
    if measures(session):
        return timed_on_gpu(session, *time_on_gpu(session, baseline))
    size = next(n for n in ("paper", "bench", "small") if n in session.request.workload.sizes)
    own = Counts(size, dict(session.counts))
    if baseline is None:
        text = f"counts, not time: {own.values['instructions']:,} instructions, {own.values['programs']:,} blocks at {size}"
        return StageResult("profile", Verdict.PASS, "ok", text, counts=own)
    return side_by_side(own, Counts(size, static_counts(launches)))


def _baseline(session: Session, kernel: Kernel) -> tuple[dict[str, Any], list[dict[str, Any]]] | StageResult:
    """The baseline, built. It passed its own gate, so a failure here is an error of this one."""
    job = kernel_job(kernel)
    answer = _build(session, job)
    if answer["verdict"] != "pass":
        result = failed("profile", answer)
        return replace(
            result,
            verdict=Verdict.ERROR,
            reason="baseline",
            summary=f"the baseline does not build: {result.summary}",
            case=None,
        )
    return {**job, "cubin": answer["cubin"], "sha256": answer["sha256"]}, answer["kernels"]


def built(session: Session, kernel: Kernel) -> dict[str, Any] | None:
    """A kernel as workers get it, with its cubin; None when it does not build."""
    found = _baseline(session, kernel)
    return None if isinstance(found, StageResult) else found[0]
