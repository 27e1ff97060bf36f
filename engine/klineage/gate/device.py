"""A profile from times that were taken on a GPU: its floor, its clocks, and what the timer could not see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from klineage.gate import evidence
from klineage.gate.ceiling import floor_ms
from klineage.gate.native import timed
from klineage.gate.request import fresh_seeds, workload_job
from klineage.gate.session import Session
from klineage.gate.verdict import StageResult
from klineage.worker.gpu_state import changed


def time_on_gpu(session: Session, baseline: dict[str, Any] | None) -> tuple[dict[str, Any], str]:
    """Time the kernel beside a baseline, as workers get it: the answer, and the size that was timed."""
    request, policy = session.request, session.policy
    surface = request.kernel.surface
    size = next(name for name in ("paper", "bench", "small") if name in request.workload.sizes)
    answer = session.job(
        "profile",
        "gpu",
        policy.total_seconds,
        op=f"time_{surface}",
        kernel=session.kernel,
        baseline=baseline,
        plan={"rounds": policy.gpu_rounds},
        floor=policy.gpu_floor,
        buffer_sets=policy.gpu_buffer_sets,
        dims=request.workload.sizes[size],
        seed=fresh_seeds(policy)[0],
        workload=workload_job(request.workload, surface),
    )
    return answer, size


def timed_on_gpu(session: Session, answer: dict[str, Any], size: str) -> StageResult:
    """The profile stage from the answer of a timing job; the environment gets the device and its clocks."""
    request = session.request
    found = answer.get("device") or {}
    gpu = session.machine.gpu
    name = gpu.name if gpu else str(found.get("name", ""))
    floor = None
    if answer.get("cost"):
        peak = float(found.get("bytes_per_second", 0.0))
        floor = floor_ms(name, request.workload.element[request.kernel.surface], answer["cost"], peak)
    clocks = answer.get("clocks") or {}
    session.environment.update(_told(found, clocks))
    result = timed(answer, size, floor)
    notes = [str(answer.get("timer_note") or ""), changed(clocks)]
    text = "; ".join([result.summary, *(note for note in notes if note)])
    numbers = {k: float(v) for k, v in clocks.items() if isinstance(v, (int, float))}
    return evidence.counters_on_gpu(
        session, replace(result, summary=text, numbers={**result.numbers, **numbers})
    )


def _told(device: dict[str, Any], clocks: dict[str, Any]) -> dict[str, str]:
    told = {"cuda": str(device["cuda"])} if device.get("cuda") else {}
    if clocks.get("sm_mhz"):
        told["gpu clocks"] = f"{clocks['sm_mhz']} MHz, memory {clocks.get('memory_mhz', 0)} MHz"
    if clocks.get("milliwatts"):
        told["gpu state"] = f"{clocks['milliwatts'] / 1000:.0f} W, {clocks.get('celsius', 0)} °C"
    return told
