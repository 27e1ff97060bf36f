"""One set of warm workers for every case, and a gate under a policy that waits long only for what may end."""

from __future__ import annotations

import atexit
from dataclasses import replace
from functools import cache

from klineage.executor import LocalExecutor
from klineage.gate import GateRequest, Policy, Report, Verdict, gate
from klineage.kernel import Kernel

from .cases import Case, honest, workload

QUICK = Policy(profile_seconds=5.0, most_profile_seconds=0.3)  # every round, however busy the machine
IMPATIENT = replace(QUICK, run_seconds=5.0)


@cache
def workers() -> LocalExecutor:
    """Started once in this process, and ended with it."""
    started = LocalExecutor()
    atexit.register(started.close)
    return started


def judge(
    case: Case,
    policy: Policy | None = None,
    executor: LocalExecutor | None = None,
    platform: str | None = None,
) -> Report:
    """Gate the case freshly, against an honest rival where it would look faster than it is."""
    kernel = case.kernel()
    baseline = plain(case) if case.expected.stage == "profile" else None
    request = GateRequest(kernel, workload(case.workload), platform or case.platform, baseline)
    chosen = policy or (IMPATIENT if "timeout" in case.expected.reasons else QUICK)
    return gate(request, fresh=True, policy=chosen, executor=executor or workers())


def plain(case: Case) -> Kernel | None:
    """The honest kernel that a cheat would like to look faster than."""
    rival = f"{case.workload}_plain"
    return next((c.kernel() for c in honest() if c.surface == case.surface and c.path.stem == rival), None)


def decided(report: Report) -> tuple[str, str, str]:
    """Verdict, stage and reason of the stage that decided; ("pass", "", "") when all passed."""
    for result in report.stages:
        if result.verdict not in (Verdict.PASS, Verdict.NOISY, Verdict.SKIPPED):
            return result.verdict.value, result.stage, result.reason
    return "pass", "", ""


def complaint(case: Case, report: Report) -> str:
    """What the gate should have said and did not; "" when it was right."""
    verdict, stage, reason = decided(report)
    wanted = case.expected
    if wanted.verdict == "pass":
        return "" if verdict == "pass" else f"refused: {verdict} {stage} {reason}: {report.why}"
    right = verdict == wanted.verdict and stage == wanted.stage and reason in wanted.reasons
    return "" if right else f"wanted {wanted}; got {verdict} {stage} {reason}: {report.why}"
