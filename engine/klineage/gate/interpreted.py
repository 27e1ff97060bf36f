"""Stages of Triton kernels. Without a GPU: a true compile, the interpreter, and exact counts but no time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from klineage.errors import KlineageError
from klineage.executor import Cancelled
from klineage.gate import cache, correctness, evidence
from klineage.gate.capability import TRITON_REMEDY
from klineage.gate.counts import RESOURCES, amount, compiled_counts, opcodes, side_by_side, total_bytes
from klineage.gate.device import time_on_gpu, timed_on_gpu
from klineage.gate.request import COUNT_SEED, checked_sizes, kernel_job, workload_job
from klineage.gate.session import Session, failed
from klineage.gate.verdict import Counts, StageResult, Trust, Verdict
from klineage.kernel import Kernel

_AHEAD_SECONDS = 10.0


def measures(session: Session) -> bool:
    """Whether the GPU of the machine that gates can run code of the request's platform."""
    from klineage.platform import satisfies

    gpu = session.machine.gpu
    return gpu is not None and satisfies(gpu.platform, session.request.platform)


def _missing(session: Session, kind: str, stage: str) -> StageResult | None:
    versions = session.executor.versions(kind, session.cancel)
    for name in ("torch", "triton"):
        if versions and name not in versions:
            where = (
                "installed" if session.executor.here else f"installed for Python on {session.executor.place}"
            )
            way = (
                TRITON_REMEDY
                if session.executor.here
                else "install it there, or name a Python with --host-python"
            )
            text = f"Triton kernels need torch and triton, and {name} is not {where}: {way}"
            return StageResult(stage, Verdict.UNSUPPORTED, f"no_{name}", text)
    if not _known(versions.get("triton", "")):
        text = f"Triton {versions['triton']} on {session.executor.place} is not one that the gate knows (3.6 to 3.9)"
        return StageResult(stage, Verdict.UNSUPPORTED, "triton_version", text)
    session.environment.update({f"worker {name}": version for name, version in versions.items()})
    return None


def _known(triton: str) -> bool:
    """Whether the worker was written for this Triton; an empty text is a worker that could not be asked."""
    return not triton or tuple(triton.split(".")[:2]) in {("3", minor) for minor in "6789"}


def compile_dims(session: Session) -> dict[str, int]:
    """The largest dimensions that the workload has, which a kernel is compiled for."""
    sizes = session.request.workload.sizes
    return sizes.get("paper") or sizes.get("bench") or sizes["small"]


def compile_kernel(session: Session) -> StageResult:
    """Compile for the platform at the paper's dimensions, and check what the platform can launch."""
    from klineage.platform import limits

    try:
        limits(session.request.platform)
        kind = "gpu" if measures(session) else "interpreter"
    except KlineageError as error:
        return StageResult(
            "compile", Verdict.UNSUPPORTED, "platform", f"Triton kernels are compiled for NVIDIA: {error}"
        )
    also = _specialised(session) if kind == "gpu" else []
    first = kind == "gpu" and not session.executor.runs("compiler")
    with _compile_ahead(session, also) if first else contextlib.nullcontext():
        missing = _missing(session, "compiler", "compile")
    if missing:
        return missing
    answer = _compile(session, session.request.kernel, also)
    if answer["verdict"] != "pass":
        return failed("compile", answer)
    broken = _exceeded(answer["kernels"], session.request.platform)
    session.counts.update(compiled_counts(answer["kernels"]))
    session.compiled = {
        name: " ".join(sorted({k["artifact"] for k in answer["kernels"] if k["name"] == name}))
        for name in {k["name"] for k in answer["kernels"]}
    }
    numbers = {name: float(session.counts[name]) for name in ("instructions", *RESOURCES)}
    numbers |= opcodes(answer["kernels"])
    if broken:
        return StageResult("compile", Verdict.FAIL, broken[0], broken[1], numbers=numbers)
    return StageResult(
        "compile", Verdict.PASS, "ok", _compiled(answer["kernels"], session.request.platform), numbers=numbers
    )


def _specialised(session: Session) -> list[dict[str, int]]:
    """Checked dimensions for which Triton makes other code than for the largest: by divisibility, and by ones."""
    seen = {_character(compile_dims(session))}
    found = []
    for _, dims in checked_sizes(session.request.workload, ("small", "ragged", "bench")):
        if _character(dims) not in seen:
            seen.add(_character(dims))
            found.append(dims)
    return found


def _character(dims: dict[str, int]) -> tuple[tuple[bool, bool], ...]:
    return tuple((extent % 16 == 0, extent == 1) for extent in dims.values())


def _compile(session: Session, kernel: Kernel, also: list[dict[str, int]] | None = None) -> dict[str, Any]:
    seconds = session.policy.compile_seconds
    return session.job(
        "compile", "compiler", seconds, op="compile_triton", **_to_compile(session, kernel, also)
    )


def _to_compile(session: Session, kernel: Kernel, also: list[dict[str, int]] | None) -> dict[str, Any]:
    return {
        "kernel": kernel_job(kernel),
        "dims": compile_dims(session),
        "also": also or [],
        "target": session.request.platform,
        "workload": workload_job(session.request.workload, "triton"),
    }


@contextlib.contextmanager
def _compile_ahead(session: Session, also: list[dict[str, int]]) -> Iterator[None]:
    """In the block, while the compiler's worker imports torch, the native one fills Triton's cache, unless only torch can tell.

    What becomes of it is no matter: the compile stage does it again, and then finds it there. It is not
    waited for long once that worker is there: the native one may have had another job first.
    """
    kernel, executor, enough = session.request.kernel, session.executor, threading.Event()
    if b"torch" in kernel.source or b"torch" in session.request.workload.source:
        yield
        return
    seconds = session.policy.compile_seconds / 2  # a kernel that hangs the compiler does so twice
    limits = {**session.policy.limits, "compile_seconds": seconds}
    job = {"op": "compile_ahead", "limits": limits, **_to_compile(session, kernel, also)}

    answers: list[dict[str, Any]] = []

    def fill() -> None:
        with contextlib.suppress(Cancelled):
            answers.append(executor.submit("native", job, timeout=seconds + 30, cancel=enough))

    thread = threading.Thread(target=fill, name="compile ahead", daemon=True)
    thread.start()
    try:
        yield
        patience = time.monotonic() + _AHEAD_SECONDS
        while thread.is_alive() and time.monotonic() < patience and not _cancelled(session):
            thread.join(0.02)
    finally:
        enough.set()
        thread.join()
        for answer in answers:
            session.hold(answer)


def _cancelled(session: Session) -> bool:
    return session.cancel is not None and session.cancel.is_set()


def _exceeded(kernels: list[dict[str, Any]], platform: str) -> tuple[str, str] | None:
    from klineage.platform import exceeded

    for kernel in kernels:
        found = exceeded(
            platform,
            shared_bytes=kernel["shared_bytes"],
            registers=kernel["registers"],
            threads=32 * kernel["num_warps"],
        )
        if found:
            return found[0], f"{kernel['name']} {found[1]}"
    return None


def _compiled(kernels: list[dict[str, Any]], platform: str) -> str:
    parts = [
        f"{k['name']} {k['registers']} registers, "
        f"{amount(k['shared_bytes'])} shared, {k['spill_bytes']} B spilled"
        for k in kernels
    ]
    return f"{platform}: " + "; ".join(parts)


def check(session: Session) -> StageResult:
    """Correctness in the interpreter, or on the GPU where there is one."""
    measured = measures(session)
    kind = "gpu" if measured else "interpreter"
    missing = _missing(session, kind, "correctness")
    if missing:
        return missing
    session.trust = Trust.MEASURED_GPU if measured else Trust.INTERPRETED
    found = correctness.check(session, kind)
    return evidence.sanitize_on_gpu(session, found) if measured else found


def profile(session: Session) -> StageResult:
    """Times on a GPU; exact counts against the baseline without one."""
    if measures(session):
        return _time(session)
    name = cache.counts_key(session.request.kernel.hash, session.request, session.elsewhere)
    cache.store_counts(name, session.counts)
    baseline = session.request.baseline
    own = Counts("small", dict(session.counts))
    if baseline is None:
        moved, operations = amount(total_bytes(own.values)), own.values["operations"]
        text = f"counts, not time: {moved} moved, {operations:,} operations at small"
        return StageResult("profile", Verdict.PASS, "ok", text, counts=own)
    other = _baseline_counts(session, baseline)
    if isinstance(other, StageResult):
        return other
    return side_by_side(own, Counts("small", other))


def _time(session: Session) -> StageResult:
    baseline = session.request.baseline
    answer, size = time_on_gpu(session, kernel_job(baseline) if baseline else None)
    other = correctness.other_code(session, size, answer.get("launched") or {})
    if other:
        text = f"{other} had other code when it was timed than when it was checked; gate again"
        return StageResult("profile", Verdict.ERROR, "artifact", text)
    return timed_on_gpu(session, answer, size)


def _baseline_counts(session: Session, baseline: Kernel) -> dict[str, int] | StageResult:
    """From the cache when the baseline was gated before, as on a walk it always was."""
    name = cache.counts_key(baseline.hash, session.request, session.elsewhere)
    found = cache.load_counts(name)
    if found is not None:
        return found
    session.say("profile", "counting the baseline")
    workload = session.request.workload
    counted = session.job(
        "profile",
        "interpreter",
        session.policy.run_seconds,
        op="count",
        kernel=kernel_job(baseline),
        seed=COUNT_SEED,
        dims=workload.sizes["small"],
        workload=workload_job(workload, "triton"),
    )
    built = _compile(session, baseline) if counted["verdict"] == "pass" else counted
    if built["verdict"] != "pass":
        return StageResult(
            "profile",
            Verdict.ERROR,
            "baseline",
            f"the baseline cannot be counted: {built['summary']}",
            log=built.get("log", ""),
        )
    counts = {**counted["counts"], **compiled_counts(built["kernels"])}
    cache.store_counts(name, counts)
    return counts
