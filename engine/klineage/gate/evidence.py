"""What a gate asks for beside its stages: sanitizers, and counters of a profiler."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

from klineage.gate import cache
from klineage.gate.policy import Policy
from klineage.gate.request import COUNT_SEED, workload_job
from klineage.gate.session import Session, failed
from klineage.gate.verdict import StageResult, Verdict
from klineage.workload import Workload


def _job(op: str, kernel: dict[str, Any], workload: Workload, size: str, policy: Policy) -> dict[str, Any]:
    return {
        "op": op,
        "kernel": kernel,
        "workload": workload_job(workload, str(kernel["surface"])),
        "size": size,
        "dims": workload.sizes[size],
        "seed": COUNT_SEED,
        "limits": policy.limits,
    }


def count_job(kernel: dict[str, Any], workload: Workload, size: str, policy: Policy) -> dict[str, Any]:
    """The job that counts the instructions of one call of a built C kernel."""
    return _job("count_c", kernel, workload, size, policy)


def sanitized_size(workload: Workload) -> str:
    """Where tails are: ``ragged``, unless it is far larger than ``small``."""
    volume = {name: math.prod(workload.sizes[name].values()) for name in ("small", "ragged")}
    return "ragged" if volume["ragged"] <= 4 * volume["small"] else "small"


def sanitize(session: Session, passed: StageResult) -> StageResult:
    """After correctness passed: once under AddressSanitizer and UndefinedBehaviorSanitizer, at one small size.

    A finding is the stage's failure. Where sanitizers cannot run, ``passed`` says so and stands.
    """
    workload, kernel = session.request.workload, session.kernel
    size = sanitized_size(workload)
    job = _job("sanitize_c", kernel, workload, size, session.policy)
    name = hashlib.sha256(
        repr((session.request.kernel.hash, workload.hash, job["dims"], cache.compiler("c"))).encode()
    ).hexdigest()
    known = cache.load_counts(name)
    if known is None:
        session.say("correctness", "under sanitizers")
        answer = session.executor.submit(
            "native", job, timeout=session.policy.total_seconds + 30, cancel=session.cancel
        )
        if answer["verdict"] == "fail":
            return failed("correctness", {**answer, "log": f"{answer.get('log', '')}\n{passed.log}".strip()})
        if answer["verdict"] != "pass":
            return _without(passed, "not sanitized", answer)
        cache.store_counts(name, {"sanitized": 1})
    return replace(
        passed,
        summary=f"{passed.summary}; ASan and UBSan at {size} found nothing",
        numbers={**passed.numbers, "sanitized": 1.0},
    )


def sanitize_on_gpu(session: Session, passed: StageResult) -> StageResult:
    """After correctness passed on a GPU, in an admission or when asked: once under compute-sanitizer."""
    request = session.request
    if passed.verdict is not Verdict.PASS or not (request.sanitize or request.phase == "admission"):
        return passed
    size = sanitized_size(request.workload)
    answer = session.job(
        "correctness",
        "gpu",
        session.policy.total_seconds,
        **_job("sanitize_gpu", session.kernel, request.workload, size, session.policy),
    )
    if answer["verdict"] == "fail":
        return failed("correctness", answer)
    if answer["verdict"] != "pass":
        return _without(passed, "not sanitized", answer)
    return replace(
        passed,
        summary=f"{passed.summary}; memcheck and racecheck at {size} found nothing",
        numbers={**passed.numbers, "sanitized": 1.0},
    )


def _without(result: StageResult, what: str, answer: dict[str, Any]) -> StageResult:
    """A stage without the evidence of a tool that did not run: why, and in the log what the tool said."""
    log = "\n".join(filter(None, (result.log, str(answer.get("log") or ""))))
    return replace(result, summary=f"{result.summary}; {what}: {answer['summary']}", log=log)


def counters_on_gpu(session: Session, profile: StageResult) -> StageResult:
    """The profile with ncu's counters of one run at the timed size, when they were asked for."""
    if not session.request.counters or profile.verdict not in (Verdict.PASS, Verdict.NOISY):
        return profile
    size = next(n for n in ("paper", "bench", "small") if n in session.request.workload.sizes)
    answer = session.job(
        "profile",
        "gpu",
        session.policy.total_seconds,
        **_job("count_gpu", session.kernel, session.request.workload, size, session.policy),
    )
    if answer["verdict"] != "pass":
        return _without(profile, "not counted", answer)
    counts = {name: float(value) for name, value in answer["counts"].items()}
    text = f"ncu at {size}: " + ", ".join(f"{name} {value:.4g}" for name, value in counts.items())
    return replace(profile, numbers={**profile.numbers, **counts}, summary=f"{profile.summary}; {text}")


def instructions(session: Session, profile: StageResult, baseline: dict[str, Any] | None) -> StageResult:
    """The profile with exact instruction counts of both kernels at ``small``, when they were asked for."""
    if profile.verdict not in (Verdict.PASS, Verdict.NOISY):
        return profile
    numbers = dict(profile.numbers)
    told = []
    for label, kernel in (("instructions", session.kernel), ("baseline_instructions", baseline)):
        if kernel is None:
            continue
        session.say("profile", "counting instructions")
        answer = session.executor.submit(
            "native",
            count_job(kernel, session.request.workload, "small", session.policy),
            timeout=session.policy.total_seconds + 30,
            cancel=session.cancel,
        )
        if answer["verdict"] != "pass":
            return _without(profile, "not counted", answer)
        numbers[label] = float(answer["counts"]["instructions"])
        told.append(f"{answer['counts']['instructions']:,}")
    text = f"callgrind counts {' of '.join(told)} instructions at small (built for x86-64-v3)"
    return replace(profile, numbers=numbers, summary=f"{profile.summary}; {text}")
