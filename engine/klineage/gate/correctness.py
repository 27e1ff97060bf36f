"""The correctness stage, the same for every surface: it differs in where it runs and on which sizes."""

from __future__ import annotations

from typing import Any

from klineage.gate import cache, oracle
from klineage.gate.request import COUNT_SEED, case, checked_sizes, kernel_job, recipe_of, workload_job
from klineage.gate.session import Session, failed
from klineage.gate.verdict import StageResult, Verdict
from klineage.kernel import Kernel

Cases = list[dict[str, Any]]

_SIZES = {
    "native": ("small", "ragged", "bench"),
    "interpreter": ("small", "ragged"),
    "gpu": ("small", "ragged", "bench", "paper"),
}
_PURE_KERNEL = "nothing but the kernel has the buffers' addresses"


def check(session: Session, kind: str) -> StageResult:
    """Run the kernel at every size with every seed, and judge what it wrote."""
    request = session.request
    session.say("correctness", "testing the workload's comparison")
    try:
        session.oracle = oracle.self_test(
            request.workload,
            request.kernel.surface,
            executor=session.executor,
            cancel=session.cancel,
            policy=session.policy,
        )
    except oracle.WorkloadFault as fault:
        return StageResult("correctness", Verdict(fault.verdict), fault.reason, str(fault))
    if request.phase == "admission" and session.oracle.reasons:
        text = f"the workload is a {session.oracle.sentence}; nothing can be admitted on it"
        return StageResult("correctness", Verdict.ERROR, "weak_oracle", text)
    listed = planned(session, kind)
    answer = _submit(session, kind, session.kernel, listed)
    session.hold(answer)
    if answer["verdict"] != "pass":
        return failed("correctness", answer)
    session.counts.update(answer["counts"].get("small") or {})
    _note(session, kind, listed, answer)
    return _uncompiled(session, answer) or _passed(session, kind, listed, answer)


def planned(session: Session, kind: str) -> Cases:
    """Every size with every seed, smallest first; and, beside the first, its variants.

    In the interpreter the first case has a fixed seed: a kernel's counts exist whatever the seeds are.
    """
    workload, seeds = session.request.workload, session.seeds
    allowed = session.oracle.distributions if session.oracle else workload.distributions
    sizes = checked_sizes(workload, _SIZES[kind])
    listed: Cases = []
    if kind == "interpreter":
        first = case("small", workload.sizes["small"], COUNT_SEED, 0, "normal", keep=True)
        listed += [first, *_variants(session, first, kind)]
    for size, dims in sizes:
        for number, seed in enumerate(seeds, 1):
            told = case(size, dims, seed, number, recipe_of(seed, allowed))
            listed.append(told)
            if number == 1 and kind != "interpreter":
                told.update(keep=True, watched=True)
                listed += _variants(session, told, kind) if size == "small" else [_again(told)]
    return listed


def _again(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "variant": "again", "keep": False, "watched": False}


def _variants(session: Session, told: dict[str, Any], kind: str) -> Cases:
    """The second run; the one with other inputs in one place; the one with empty kernels.

    C and CUDA kernels are launched by us alone, so an empty one leaves the poison by construction.
    """
    found = [_again(told)]
    if session.request.phase != "screening":
        found.append({**found[0], "variant": "perturbed", "recipe": "perturbed"})
    if kind != "native" and session.request.kernel.surface == "triton":
        found.append({**found[0], "variant": "ghost"})
    return found


def _submit(session: Session, kind: str, kernel: dict[str, Any], listed: Cases) -> dict[str, Any]:
    request = session.request
    return session.executor.submit(
        kind,
        {
            "op": "correctness",
            "kernel": kernel,
            "cases": listed,
            "limits": session.policy.limits,
            "workload": workload_job(request.workload, request.kernel.surface),
        },
        lambda message: session.say("correctness", _detail(message, listed, session)),
        timeout=session.policy.total_seconds + 30,
        cancel=session.cancel,
    )


def _note(session: Session, kind: str, listed: Cases, answer: dict[str, Any]) -> None:
    """How it is known that the kernel, and nothing else, made these outputs."""
    again = "equal but for rounding" if answer["unordered"] else "equal bit for bit"
    notes = {
        "second run": f"{again}, at other addresses with other poison",
        "inputs": ", ".join(sorted({told["recipe"] for told in listed})),
    }
    ghost = any(told["variant"] == "ghost" for told in listed)
    notes["ghost run"] = "empty kernels left every output as it was" if ghost else _PURE_KERNEL
    ran = [seen["ran"] for seen in answer["kernels"].values() if seen.get("ran")]
    if ran:
        notes["device kernels"] = ", ".join(sorted({name for names in ran for name in names}))
    elif kind == "gpu":
        notes["device kernels"] = "not seen: the profiler reports none here"
    launched = {
        f"{name} at {size}": code
        for size, seen in answer["kernels"].items()
        for name, code in (seen.get("launched") or {}).items()
    }
    notes |= {f"artifact {where}": code for where, code in launched.items()}
    session.evidence.update(notes)


def _uncompiled(session: Session, answer: dict[str, Any]) -> StageResult | None:
    """An error where a GPU ran other code than the compile stage made for this very platform and size."""
    workload, gpu = session.request.workload, session.machine.gpu
    size = next((name for name in ("paper", "bench", "small") if name in workload.sizes), "")
    ran = (answer["kernels"].get(size) or {}).get("launched") or {}
    if not ran or not session.compiled or gpu is None or gpu.platform != session.request.platform:
        return None
    other = [name for name, code in ran.items() if session.compiled.get(name) != code]
    if not other:
        session.evidence["artifact"] = "what ran is what was compiled"
        return None
    text = f"{', '.join(other)} had other code at {size} than the compile stage made; gate again"
    return StageResult("correctness", Verdict.ERROR, "artifact", text)


def other_code(session: Session, size: str, launched: dict[str, str]) -> str:
    """The kernels whose code is not what was checked at this size, by the sha256 of both."""
    checked = {name: session.evidence.get(f"artifact {name} at {size}") for name in launched}
    return ", ".join(name for name, code in launched.items() if checked[name] not in (None, code))


def _passed(session: Session, kind: str, listed: Cases, answer: dict[str, Any]) -> StageResult:
    worst, rtol, rms = (float(answer[name]) for name in ("worst", "rtol", "rms"))
    sizes = ", ".join(dict.fromkeys(told["size"] for told in listed))
    within = f"worst error {worst:.2g} of {rtol:.2g}" if rtol else "every element right"
    numbers = {"worst": worst, "rtol": rtol, "rms": rms, "cases": float(len(listed))}
    numbers["skipped"] = float(answer["skipped"])
    baseline = _baseline_error(session, kind, rms)
    if baseline is not None:
        numbers["baseline_rms"] = baseline
    log = str(answer.get("log") or "")
    most = max(session.policy.error_factor * (baseline or 0.0), session.policy.error_floor)
    if baseline is not None and rms > most:
        text = (
            f"its RMS error is {rms:.2g} of the tolerance, {rms / max(baseline, 1e-12):.2g} times that of the "
            f"baseline; at most {session.policy.error_factor:g} times, or {session.policy.error_floor:g} of "
            "the tolerance, are allowed"
        )
        return StageResult("correctness", Verdict.FAIL, "precision", text, numbers=numbers, log=log)
    cache.store_error(_error_key(session, session.request.kernel, kind), rms)
    summary = f"{len(session.seeds)} seeds at {sizes}: {within}"
    return StageResult("correctness", Verdict.PASS, "ok", summary, numbers=numbers, log=log)


def _error_key(session: Session, kernel: Kernel, kind: str) -> str:
    return cache.counts_key(f"{kernel.hash} {kind}", session.request, session.elsewhere)


def _baseline_error(session: Session, kind: str, own: float) -> float | None:
    """The baseline's RMS error; found out only where it decides, since on a walk it is known already."""
    baseline = session.request.baseline
    if baseline is None:
        return None
    name = _error_key(session, baseline, kind)
    known = cache.load_error(name)
    if known is not None or own <= session.policy.error_floor:
        return known
    session.say("correctness", "the baseline's error")
    found: dict[str, Any] | None = kernel_job(baseline)
    if baseline.surface == "c":
        from klineage.gate import native

        found = native.built(session, baseline)
    elif baseline.surface == "cuda":
        from klineage.gate import cuda

        found = cuda.built(session, baseline)
    if found is None:
        return None
    listed = [told for told in planned(session, kind) if told["size"] == "small" and not told["variant"]]
    answer = _submit(session, kind, found, listed)
    if answer["verdict"] != "pass":
        return None
    cache.store_error(name, float(answer["rms"]))
    return float(answer["rms"])


def _detail(message: dict[str, Any], listed: Cases, session: Session) -> str:
    if "case" not in message:
        return ""
    told = listed[message["case"]]
    if told["variant"]:
        words = {"again": "once more", "perturbed": "other inputs", "ghost": "empty kernels"}
        return f"{words[told['variant']]}, {told['size']}"
    if not told["number"]:
        return f"counting, {told['size']}"
    return f"seed {told['number']} of {len(session.seeds)}, {told['size']}"
