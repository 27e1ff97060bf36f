"""One gate in progress: what the stages share, and how a worker's answer becomes a stage result."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from klineage.executor import Died, Executor
from klineage.gate.oracle import Oracle
from klineage.gate.policy import Policy
from klineage.gate.request import GateEvent, GateRequest, OnEvent
from klineage.gate.verdict import FailingCase, StageResult, Trust, Verdict
from klineage.platform import Machine


@dataclass
class Session:
    """Filled in by the stages, in order."""

    request: GateRequest
    policy: Policy
    seeds: tuple[int, ...]
    executor: Executor
    on_event: OnEvent | None
    cancel: threading.Event | None
    trust: Trust = Trust.STATIC
    environment: dict[str, str] = field(default_factory=dict)
    layers: dict[str, bool] = field(default_factory=dict)
    kernel: dict[str, Any] = field(default_factory=dict)  # the kernel as workers get it
    counts: dict[str, int] = field(default_factory=dict)  # what is known of the kernel's work
    asked: Machine | Died | None = None  # what the executor's machine is, once asked
    raised: Exception | None = None  # by the caller's own callback
    oracle: Oracle | None = None  # once correctness has begun
    evidence: dict[str, str] = field(default_factory=dict)
    compiled: dict[str, str] = field(default_factory=dict)  # sha256 of each Triton kernel's code, by name

    @property
    def machine(self) -> Machine:
        """The machine that the workers are on. Raises Died when it cannot be asked."""
        if self.asked is None:
            try:
                self.asked = self.executor.machine(self.cancel)
            except Died as died:
                self.asked = died
        if isinstance(self.asked, Died):
            raise self.asked
        return self.asked

    @property
    def elsewhere(self) -> Machine | None:
        """That machine when it is not this one."""
        return None if self.executor.here else self.machine

    def say(self, stage: str, detail: str = "") -> None:
        if self.on_event:
            try:
                self.on_event(GateEvent(stage, "running", detail))
            except Exception as error:
                self.raised = error
                raise

    def job(self, stage: str, kind: str, seconds: float, **job: Any) -> dict[str, Any]:
        """Run a job and return its answer; progress details are passed on as the stage's."""

        def progress(message: dict[str, Any]) -> None:
            self.say(stage, str(message.get("detail", "")))

        answer = self.executor.submit(
            kind, {"limits": self.policy.limits, **job}, progress, timeout=seconds + 30, cancel=self.cancel
        )
        self.hold(answer)
        return answer

    def hold(self, answer: dict[str, Any]) -> None:
        """A layer holds for a gate when it held in every child of it."""
        for name, held in (answer.get("layers") or {}).items():
            self.layers[name] = self.layers.get(name, True) and held


def failed(stage: str, answer: dict[str, Any]) -> StageResult:
    """A stage result from an answer that is no pass."""
    case = answer.get("case")
    return StageResult(
        stage=stage,
        verdict=Verdict(answer["verdict"]),
        reason=str(answer["reason"]),
        summary=str(answer["summary"]),
        numbers={name: float(value) for name, value in (answer.get("numbers") or {}).items()},
        case=_case(case, answer) if case else None,
        log=str(answer.get("log") or ""),
    )


def _case(case: dict[str, Any], answer: dict[str, Any]) -> FailingCase:
    """The hidden size keeps its secret: a report is read by proposers too."""
    secret = case["size"] == "hidden"
    return FailingCase(
        size=case["size"],
        dims={} if secret else case["dims"],
        seed=case["seed"],
        output=str(answer.get("output", "")),
        index=tuple(answer.get("index") or ()),
        got=answer.get("got", ""),
        expected=answer.get("expected", ""),
        recipe=str(case.get("recipe", "normal")),
    )
