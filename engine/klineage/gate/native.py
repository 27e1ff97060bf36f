"""Stages of C kernels: built by gcc or clang, measured on this CPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from klineage.errors import KlineageError
from klineage.gate import evidence
from klineage.gate.cache import folder
from klineage.gate.ceiling import IMPOSSIBLE
from klineage.gate.policy import Policy
from klineage.gate.request import fresh_seeds, kernel_job, workload_job
from klineage.gate.session import Session, failed
from klineage.gate.verdict import Effect, Measurement, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.numbers import three
from klineage.workload import Workload

_DRIFTS = 1.25  # changes of the machine's speed, slowest over fastest, that a summary mentions


def compile_kernel(session: Session) -> StageResult:
    """Build the kernel (and, silently, the baseline when its turn comes)."""
    elsewhere = _elsewhere(session)
    if elsewhere:
        return StageResult("compile", Verdict.UNSUPPORTED, "platform", elsewhere)
    answer = _build(session, session.kernel)
    if answer["verdict"] != "pass":
        return failed("compile", answer)
    session.kernel.update(library=answer["library"], sha256=answer["sha256"])
    session.evidence["artifact"] = answer["sha256"]
    session.environment.update(compiler=answer["compiler"], flags=answer["command"])
    flags = " ".join(session.kernel["flags"])
    extra = f" with {flags}" if flags else ""
    warnings = answer["log"].count("warning:")
    noted = f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return StageResult(
        "compile",
        Verdict.PASS,
        "ok",
        f"{answer['bytes'] / 1024:.0f} KiB by {answer['compiler']}{extra}{noted}",
        numbers={"bytes": float(answer["bytes"]), "cached": float(answer["cached"])},
        log=answer["log"],
    )


def _elsewhere(session: Session) -> str:
    """Why the machine that gates cannot stand for the platform; empty when it can."""
    from klineage.platform import parse, satisfies

    platform, here = session.request.platform, session.machine.cpu_platform
    try:
        wanted = parse(platform)
    except KlineageError as error:
        return str(error)
    if wanted.vendor == "cpu" and (wanted.architecture == "native" or satisfies(here, platform)):
        flag = lacking(session.kernel["flags"], here)
        return f"it declares {flag}, and {session.executor.place} is {here}" if flag else ""
    return (
        f"a C kernel is measured on {session.executor.place}, which is {here} and cannot stand for {platform}"
    )


def lacking(flags: Iterable[str], here: str) -> str:
    """The first ``-march=x86-64-vN`` among declared flags that a machine such as "cpu-x86-64-v3" cannot run, or ""."""
    from klineage.platform import CPU_LEVELS, satisfies

    levels = {flag: flag.removeprefix("-march=") for flag in flags if flag.startswith("-march=")}
    return next(
        (
            flag
            for flag, level in levels.items()
            if level in CPU_LEVELS and not satisfies(here, f"cpu-{level}")
        ),
        "",
    )


def _build(session: Session, kernel: dict[str, Any]) -> dict[str, Any]:
    workload = session.request.workload
    return session.job(
        "compile",
        "native",
        session.policy.compile_seconds,
        op="compile_c",
        kernel=kernel,
        dims=workload.sizes["small"],
        workload=workload_job(workload, "c"),
        cache=str(folder() / "c") if session.executor.here else "",
    )


def profile(session: Session) -> StageResult:
    """Time the kernel, interleaved with the baseline when there is one."""
    session.trust = Trust.MEASURED_CPU
    workload, policy = session.request.workload, session.policy
    size = "bench" if "bench" in workload.sizes else "small"
    baseline = _baseline(session, session.request.baseline)
    if isinstance(baseline, StageResult):
        return baseline
    job = time_job(session.kernel, baseline, workload, size, fresh_seeds(policy)[0], policy)
    answer = session.job("profile", "native", policy.total_seconds, **job)
    found = timed(answer, size)
    return evidence.instructions(session, found, baseline) if session.request.counters else found


def time_job(
    kernel: dict[str, Any],
    baseline: dict[str, Any] | None,
    workload: Workload,
    size: str,
    seed: int,
    policy: Policy,
) -> dict[str, Any]:
    """The job that times a built kernel, against a built baseline if there is one."""
    return {
        "op": "time_c",
        "kernel": kernel,
        "baseline": baseline,
        "plan": {
            "rounds": policy.rounds,
            "least_rounds": policy.least_rounds,
            "seconds": policy.profile_seconds,
        },
        "most_seconds": policy.most_profile_seconds,
        "floor": policy.floor,
        "size": size,
        "dims": workload.sizes[size],
        "workload": workload_job(workload, "c"),
        "seed": seed,
        "limits": policy.limits,
    }


def _baseline(session: Session, kernel: Kernel | None) -> dict[str, Any] | StageResult | None:
    """The baseline, built. It passed its own gate, so a failure here is an error of this one."""
    if kernel is None:
        return None
    job = kernel_job(kernel)
    answer = _build(session, job)
    if answer["verdict"] != "pass":
        return StageResult(
            "profile",
            Verdict.ERROR,
            "baseline",
            f"the baseline does not build: {answer['summary']}",
            log=answer.get("log", ""),
        )
    return {**job, "library": answer["library"], "sha256": answer["sha256"]}


def built(session: Session, kernel: Kernel) -> dict[str, Any] | None:
    """A kernel as workers get it, with its library; None when it does not build."""
    job = _baseline(session, kernel)
    return job if isinstance(job, dict) else None


def timed(answer: dict[str, Any], size: str, floor: float | None = None) -> StageResult:
    """A profile from an answer of a timing job. ``floor`` is the least possible milliseconds, if known."""
    if answer["verdict"] == "noisy":
        return _noisy(answer)
    if answer["verdict"] != "pass":
        return failed("profile", answer)
    measurement = _measurement(answer, size, floor)
    ms = measurement.candidate_ms
    if floor is not None and ms < IMPOSSIBLE * floor:
        summary = f"{three(ms)} ms at {size} is impossible: the least traffic and arithmetic alone take {three(floor)} ms"
        return StageResult("profile", Verdict.FAIL, "impossible", summary, measurement=measurement)
    bound = f", floor {three(floor)} ms" if floor is not None else ""
    if measurement.ratio is None:
        summary = f"{three(ms)} ms at {size}, measured alone{bound}"
        return StageResult(
            "profile", Verdict.PASS, "ok", summary, numbers=_numbers(answer), measurement=measurement
        )
    effect, low, high = Effect(answer["effect"]), measurement.low, measurement.high
    before = measurement.baseline_ms
    assert low is not None and high is not None and before is not None, (
        "a ratio has an interval and a baseline"
    )
    summary = (
        f"{effect.value} {three(measurement.ratio)}x [{three(low)}, {three(high)}], "
        f"noise {measurement.noise:.1%}: {three(ms)} ms of {three(before)} ms at {size}{bound}"
    )
    numbers = _numbers(answer)
    if numbers.get("drift", 1.0) > _DRIFTS:
        summary += f"; the machine's speed changed by {numbers['drift']:.2g}x meanwhile, which pairs cancel"
    return StageResult(
        "profile", Verdict.PASS, "ok", summary, numbers=numbers, effect=effect, measurement=measurement
    )


def _noisy(answer: dict[str, Any]) -> StageResult:
    groups = int(answer["groups"])
    rounds = f"{answer['rounds']} rounds in {groups} group{'' if groups == 1 else 's'}"
    summary = (
        str(answer["summary"]) or f"too noisy for a number: ±{min(answer['half'], 9.99):.1%} after {rounds}"
    )
    return StageResult(
        "profile",
        Verdict.NOISY,
        str(answer["reason"]),
        f"{summary}; gate again on a quieter machine",
        numbers=_numbers(answer),
    )


def _numbers(answer: dict[str, Any]) -> dict[str, float]:
    """What stands beside the ratio: scatter, verified outputs, and times with empty caches."""
    names = ("spread", "groups", "drift", "verified")
    numbers = {name: float(answer[name]) for name in names if name in answer}
    cold = answer.get("cold_ms")
    if cold:
        numbers["cold_ms"] = float(cold[0])
        if len(cold) > 1:
            numbers |= {"cold_baseline_ms": float(cold[1]), "cold_ratio": cold[0] / cold[1]}
    return numbers


def _measurement(answer: dict[str, Any], size: str, floor: float | None) -> Measurement:
    return Measurement(
        candidate_ms=answer["candidate_ms"],
        timer=answer["timer"],
        rounds=int(answer["rounds"]),
        size=size,
        floor_ms=floor,
        **{name: answer.get(name) for name in ("baseline_ms", "ratio", "low", "high", "noise")},
    )
