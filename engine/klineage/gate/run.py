"""Run the stages of a gate in order, stop at the first that fails, and write the report."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace

from klineage.executor import Cancelled, Died, Executor, current
from klineage.gate import cache, correctness, cuda, evidence, interpreted, native, prepared, warmth
from klineage.gate.policy import POLICY, Policy
from klineage.gate.prepared import Prepared
from klineage.gate.reproduce import reproduce
from klineage.gate.request import GateEvent, GateRequest, OnEvent, fresh_seeds, kernel_job
from klineage.gate.session import Session
from klineage.gate.verdict import STAGES, Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.workload import Workload

Stage = Callable[[Session], StageResult]


def gate(
    request: GateRequest,
    on_event: OnEvent | None = None,
    cancel: threading.Event | None = None,
    *,
    fresh: bool = False,
    keep: bool = True,
    profiled: bool = True,
    policy: Policy = POLICY,
    executor: Executor | None = None,
) -> Report:
    """Judge a kernel. Light in this process, so call it from any thread; everything heavy is in workers.

    ``on_event`` is called in this thread. ``cancel`` ends the gate within a tenth of a second: the stage
    then reads "skipped", reason "cancelled". ``fresh`` ignores a cached report; ``keep`` stores
    the new one. ``profiled``: False leaves the profile out, which a kernel that is only confirmed does not need; such
    a report is not kept.
    Never raises for a bad kernel, a bad workload, a missing tool or a host that is away: those are verdicts.
    """
    session = Session(
        request,
        policy,
        request.seeds or fresh_seeds(policy, request.phase),
        executor or current(),
        on_event,
        cancel,
    )
    name = _name(session)
    found = cache.load_report(name) if name and not fresh else None
    if found is not None:
        for result in found.stages:
            _done(on_event, result)
        return found
    stages = _stages(request)
    if not profiled:
        stages["profile"] = _not_asked
    report = _report(session, tuple(_run(session, stages)))
    if name and keep and profiled:
        cache.store_report(name, report, request.kernel.source)
    return report


def _report(session: Session, results: tuple[StageResult, ...]) -> Report:
    """What the stages came to, with everything that the verdict rests on."""
    request, oracle = session.request, session.oracle
    return Report(
        kernel=request.kernel.hash,
        workload=request.workload.hash,
        platform=request.platform,
        policy=session.policy.name,
        trust=session.trust,
        stages=results,
        baseline=request.baseline.hash if request.baseline else None,
        seeds=session.seeds,
        environment={**_environment(session), **session.environment},
        layers=dict(session.layers),
        finished=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        phase=request.phase,
        fixed_seed=request.seeds is not None,
        oracle=oracle.grade if oracle else "",
        oracle_reasons=oracle.reasons if oracle else (),
        evidence=dict(session.evidence),
        reproduce=reproduce(request, session.seeds, results),
    )


def _name(session: Session) -> str:
    """Where the report is kept; empty when the machine that decides it cannot be asked."""
    try:
        return cache.key(session.request, session.policy.name, session.elsewhere)
    except (Died, Cancelled):
        return ""


def _stages(request: GateRequest) -> dict[str, Stage]:
    table: tuple[Stage, ...]
    if request.kernel.surface == "c":
        table = (static, native.compile_kernel, _native_correctness, native.profile)
    elif request.kernel.surface == "cuda":
        table = (static, cuda.compile_kernel, cuda.check, cuda.profile)
    else:
        table = (static, interpreted.compile_kernel, interpreted.check, interpreted.profile)
    return dict(zip(STAGES, table))  # noqa: B905 - strict= is of Python 3.10, and a batch runs under 3.9


def _not_asked(session: Session) -> StageResult:
    return StageResult("profile", Verdict.SKIPPED, "not_asked", "not asked for")


def _native_correctness(session: Session) -> StageResult:
    session.trust = Trust.MEASURED_CPU
    found = correctness.check(session, "native")
    if found.verdict is not Verdict.PASS or session.request.phase == "screening":
        return found
    return evidence.sanitize(session, found)


def _run(session: Session, stages: dict[str, Stage]) -> list[StageResult]:
    results: list[StageResult] = []
    stopped = ""
    for name, stage in stages.items():
        if stopped:
            results.append(StageResult(name, Verdict.SKIPPED, "earlier", f"not run: {stopped}"))
            continue
        session.say(name)
        begin = time.monotonic()
        try:
            if session.cancel is not None and session.cancel.is_set():
                raise Cancelled
            result = stage(session)
        except Cancelled:
            result = StageResult(name, Verdict.SKIPPED, "cancelled", "cancelled")
        except Died as died:
            result = StageResult(name, Verdict.ERROR, died.reason, str(died), log=died.words)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if error is session.raised:
                raise
            result = _unreadable(name, error)
        result = replace(result, seconds=round(time.monotonic() - begin, 4))
        results.append(result)
        _done(session.on_event, result)
        if result.verdict is not Verdict.PASS and not cuda.unjudged(result):
            stopped = "cancelled" if result.reason == "cancelled" else f"{name} did not pass"
    return results


def _unreadable(stage: str, error: Exception) -> StageResult:
    """A worker's answer, which a kernel or another machine may have had a hand in, lacks what the stage reads."""
    text = f"what the worker answered cannot be read ({type(error).__name__}: {error}); gate again, and report it if it stays"
    log = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return StageResult(stage, Verdict.ERROR, "answer", text, log=log)


def _done(on_event: OnEvent | None, result: StageResult) -> None:
    if on_event:
        on_event(GateEvent(result.stage, "done", result.summary, result))


def static(session: Session) -> StageResult:
    """What the text alone says."""
    kernel = session.request.kernel
    known = prepared.get(kernel.hash) or prepare(kernel, session.request.workload)
    session.kernel = dict(known.job)
    if known.static.verdict is Verdict.PASS:
        warmth.begin(session.executor, kernel.surface, session.request.platform)
    return known.static


def prepare(kernel: Kernel, workload: Workload) -> Prepared:
    """The static stage of a kernel, and the kernel as workers get it."""
    from klineage.surface.dispatch import check, notes

    problems = check(kernel, workload)
    if problems:
        first = problems[0]
        where = f"{kernel.filename}:{first.line}: " if first.line else f"{kernel.filename}: "
        log = "\n".join(f"{kernel.filename}:{p.line}: {p.message} [{p.reason}]" for p in problems)
        return Prepared(StageResult("static", Verdict.FAIL, first.reason, where + first.message, log=log), {})
    said = [f"parses; the entry is {kernel.entry}"]
    said += [f"line {note.line}: {note.message}" for note in notes(kernel)[:1]]
    passed = StageResult("static", Verdict.PASS, "ok", "; ".join(said))
    return Prepared(passed, kernel_job(kernel))


def _environment(session: Session) -> dict[str, str]:
    """The machine and what was installed there; nothing where the machine could not be asked."""
    try:
        found = session.machine
    except (Died, Cancelled):
        return {}
    packages = cache.package_versions(session.elsewhere)
    wanted = tuple(packages) if session.request.kernel.surface == "triton" else ("klineage", "numpy")
    tools = {name: packages[name] for name in wanted}
    tools.update(system=found.system, cpu=found.cpu, cores=str(found.cores))
    return tools | ({"gpu": found.gpu.name, "driver": found.gpu.driver} if found.gpu else {})
