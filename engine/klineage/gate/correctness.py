"""The correctness stage, the same for every surface: it differs in where it runs and on which sizes."""

from __future__ import annotations

from typing import Any

from klineage.gate.request import COUNT_SEED, cases, checked_sizes, workload_job
from klineage.gate.session import Session, failed
from klineage.gate.verdict import StageResult, Verdict

_SIZES = {
    "native": ("small", "ragged", "bench"),
    "interpreter": ("small", "ragged"),
    "gpu": ("small", "ragged", "bench", "paper"),
}


def check(session: Session, kind: str) -> StageResult:
    """Run the kernel at every size with every seed, and judge what it wrote."""
    workload = session.request.workload
    sizes = checked_sizes(workload, _SIZES[kind])
    listed = cases(sizes, session.seeds)
    if kind == "interpreter":
        # First, so that a kernel's counts exist whatever the seeds are; judged like every other.
        listed.insert(0, {"size": "small", "dims": workload.sizes["small"], "seed": COUNT_SEED, "number": 0})
    answer = session.executor.submit(
        kind,
        {
            "op": "correctness",
            "kernel": session.kernel,
            "cases": listed,
            "limits": session.policy.limits,
            "workload": workload_job(workload, session.request.kernel.surface),
        },
        lambda message: session.say("correctness", _detail(message, listed, session)),
        timeout=session.policy.total_seconds + 30,
        cancel=session.cancel,
    )
    session.hold(answer)
    if answer["verdict"] != "pass":
        return failed("correctness", answer)
    session.counts.update(answer["counts"].get("small") or {})
    names = ", ".join(name for name, _ in sizes)
    worst, rtol = float(answer["worst"]), float(answer["rtol"])
    within = f"worst error {worst:.2g} of {rtol:.2g}" if rtol else "every element equal"
    return StageResult(
        "correctness",
        Verdict.PASS,
        "ok",
        f"{len(session.seeds)} seeds at {names}: {within}",
        numbers={"worst": worst, "rtol": rtol, "cases": float(len(listed))},
        log=str(answer.get("log") or ""),
    )


def _detail(message: dict[str, Any], listed: list[dict[str, Any]], session: Session) -> str:
    if "case" not in message:
        return ""
    case = listed[message["case"]]
    return (
        f"seed {case['number']} of {len(session.seeds)}, {case['size']}"
        if case["number"]
        else f"counting, {case['size']}"
    )
