"""What a gate result must be for a step to rest on it."""

from __future__ import annotations

from klineage.errors import KlineageError
from klineage.gate import Report, Verdict
from klineage.kernel import Kernel
from klineage.lineage import Moved
from klineage.walk.state import WalkState


def check_evidence(report: Report, kernel: Kernel, state: WalkState) -> None:
    """Raises KlineageError unless the report is of exactly this kernel, on this state, and a pass that proves something.

    Moved when it was taken on another state.
    """
    if report.kernel != kernel.hash:
        raise KlineageError("this gate result belongs to other bytes; gate the kernel again, then accept")
    if report.baseline != state.kernel.hash:
        raise Moved("this gate result was taken on another step; gate the kernel again, then accept")
    if report.verdict is Verdict.UNSUPPORTED:
        raise KlineageError(
            f"nothing is known of what this kernel computes, so it is no step yet: {report.why}"
        )
    if report.verdict is not Verdict.PASS:
        raise KlineageError(f"the gate did not pass ({report.why}); edit the kernel or reject it")
    if report.phase == "screening" or report.fixed_seed:
        kind = "replays fixed seeds" if report.fixed_seed else "is a screening"
        raise KlineageError(
            f"this gate result {kind}, which is no evidence; gate the kernel again, then accept"
        )
