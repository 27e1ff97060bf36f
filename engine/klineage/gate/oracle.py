"""The self-test of a workload: does its comparison refuse wrong outputs? Once for each workload."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import Any

from klineage.errors import KlineageError
from klineage.executor import Executor, current
from klineage.gate import cache
from klineage.gate.policy import POLICY, Policy
from klineage.gate.request import workload_job
from klineage.workload import Workload

_VERSION = 3  # of the mutants


class WorkloadFault(KlineageError):
    """The workload cannot be tested; ``verdict`` and ``reason`` as a gate says it."""

    def __init__(self, answer: dict[str, Any], path: str, seconds: float) -> None:
        self.verdict, self.reason = str(answer["verdict"]), str(answer["reason"])
        text = str(answer["summary"])
        if self.verdict == "timeout":
            self.verdict, self.reason = "error", "workload_timeout"
            text = f"{path}: inputs() and reference() did not finish within {seconds:g} s for size small"
        super().__init__(text)


@dataclass(frozen=True)
class Oracle:
    """What the self-test found.

    reasons: why the oracle is weak, a sentence each; none when it is strong. distributions: those of the
    inputs that the workload is checked on. dropped: those that do not suit it, with the reason.
    """

    reasons: tuple[str, ...]
    distributions: tuple[str, ...]
    dropped: dict[str, str]

    @property
    def grade(self) -> str:
        return "weak" if self.reasons else "strong"

    @property
    def sentence(self) -> str:
        """For people, when a lineage is begun."""
        if self.reasons:
            return f"weak oracle: {'; '.join(self.reasons)}"
        return f"strong oracle: it refuses every wrong output; inputs {', '.join(self.distributions)}"


def self_test(
    workload: Workload,
    surface: str,
    *,
    executor: Executor | None = None,
    cancel: threading.Event | None = None,
    policy: Policy = POLICY,
) -> Oracle:
    """Test the workload's comparison in a worker, or recall what an earlier test found.

    Raises WorkloadFault when it cannot be tested.
    """
    parts = (_VERSION, workload.hash, workload.element[surface])
    name = hashlib.sha256(repr(parts).encode()).hexdigest()
    found = cache.load_oracle(name)
    oracle = _oracle(found) if found else None
    if oracle is not None:
        return oracle
    answer = (executor or current()).submit(
        "native",
        {
            "op": "oracle",
            "dims": workload.sizes["small"],
            "limits": policy.limits,
            "workload": workload_job(workload, surface),
        },
        timeout=policy.total_seconds + 30,
        cancel=cancel,
    )
    oracle = _oracle(answer) if answer["verdict"] == "pass" else None
    if oracle is None:
        raise WorkloadFault(answer, str(workload.path), policy.workload_seconds)
    cache.store_oracle(name, {key: answer[key] for key in ("reasons", "recipes", "dropped")})
    return oracle


def _oracle(found: dict[str, object]) -> Oracle | None:
    """From stored JSON; None when it is damaged."""
    reasons, recipes, dropped = (found.get(key) for key in ("reasons", "recipes", "dropped"))
    if not isinstance(reasons, list) or not isinstance(recipes, list) or not isinstance(dropped, dict):
        return None
    if not recipes:
        return None
    return Oracle(
        tuple(map(str, reasons)),
        tuple(map(str, recipes)),
        {str(name): str(why) for name, why in dropped.items()},
    )
