"""One pair of children, candidate and judge, on some cases of a correctness job: who says what, who is to blame."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from klineage.worker import check
from klineage.worker.jobs import Context, Result, death, flood, log, loud_workload, threads_left, verdict
from klineage.worker.process import Child, Task


@dataclass
class _State:
    """How far the two children of a correctness job are."""

    total_deadline: float
    doing: dict[str, tuple[str, int, float]] = field(default_factory=dict)  # child: phase, case, since
    ready: int = 0
    judged: int = 0
    broken: Result | None = None  # how the candidate went wrong, once it has
    layers: dict[str, bool] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)  # size: launched and seen there
    artifact: str = ""
    unordered: bool = False
    worst: float = 0.0
    rtol: float = 0.0
    rms: float = 0.0
    skipped: int = 0


class Lane:
    """The cases of a job that one pair of children goes through; ``numbers`` are their places in the job.

    result: what came of it, once it has ended.
    """

    def __init__(self, request: dict[str, Any], context: Context, numbers: list[int]) -> None:
        self.cases, self.limits = [request["cases"][n] for n in numbers], request["limits"]
        self.request, self.context, self.numbers = {**request, "cases": self.cases}, context, numbers
        self.state = _State(time.monotonic() + self.limits["total_seconds"])
        self.result: Result | None = None
        self.children: list[Child] = []

    @property
    def at(self) -> int:
        """The place of the first case that is not known to be right; past the last one when all are."""
        judged = self.state.judged
        return self.numbers[judged] if judged < len(self.numbers) else self.numbers[-1] + 1

    def start(self) -> None:
        """Start the candidate and the judge, which whoever calls ends."""
        arena = check.open_arena()
        try:
            for name, body in (("candidate", check.candidate), ("judge", check.judge)):
                task = Task(body, (self.request, self.context.kind), (arena,))
                self.children.append(self.context.start(name, task))
        finally:
            os.close(arena)
        for number in range(check.REGIONS):
            self.children[0].send(go=number)

    def hear(self, child: Child, message: dict[str, Any]) -> None:
        """Take in what a child of this lane says; ``result`` is set when that ends it."""
        candidate, judge = self.children
        handle = self._candidate if child is candidate else self._judge
        result = handle(message, candidate, judge)
        if result is None and self.state.broken and self.state.judged >= self.state.ready:
            result = self.state.broken
        self.result = self.result or result

    def expire(self) -> None:
        """Its time is over."""
        self.result = self.result or self._timeout(self.children[0])

    @property
    def log(self) -> str:
        """What the kernel printed."""
        return log(self.children[0])

    def _doing(self, name: str) -> str:
        phase, number, _ = self.state.doing.get(name, ("load", -1, 0.0))
        if number < 0:
            return "while it was loaded"
        return f"at size {self.cases[number]['size']}" + ("" if phase == "kernel" else " before it ran")

    def _candidate(self, message: dict[str, Any], candidate: Child, judge: Child) -> Result | None:
        state = self.state
        if "phase" in message:
            number = int(message.get("case", -1))
            state.doing["candidate"] = (str(message["phase"]), number, time.monotonic())
            state.layers = state.layers or message.get(
                "layers", {}
            )  # the first word is said before the kernel is there
            if message["phase"] == "kernel":
                self.context.progress({"case": self.numbers[number], "size": self.cases[number]["size"]})
        elif "artifact" in message:
            state.artifact, state.unordered = str(message["artifact"]), bool(message["unordered"])
        elif message.get("ready") == state.ready and state.ready < len(self.cases):
            size = self.cases[state.ready]["size"]
            state.counts.setdefault(size, message.get("counts") or {})
            state.kernels.setdefault(size, message.get("kernels") or {})
            if self._threads_left(candidate):
                state.broken = state.broken or self._placed(threads_left(self._doing("candidate")))
                return None
            state.ready += 1
            state.doing["candidate"] = ("idle", state.ready, time.monotonic())
            judge.send(ready=state.ready - 1)
        elif "fault" in message:
            state.broken = state.broken or self._placed(message["fault"])
        elif "flood" in message:
            state.broken = state.broken or flood(candidate)
        elif "exit" in message and state.ready < len(self.cases):
            state.broken = state.broken or self._placed(death(candidate, self._doing("candidate")))
        return None

    def _threads_left(self, candidate: Child) -> bool:
        """Whether the kernel returned and something of it still runs. OpenMP keeps threads; a GPU's driver has some."""
        if self.context.kind not in ("native", "interpreter") or "-fopenmp" in self.request["kernel"].get(
            "flags", ()
        ):
            return False
        patience = time.monotonic() + 0.05  # a thread that was waited for may still be on its way out
        while candidate.threads() > 1:
            if time.monotonic() > patience:
                return True
            time.sleep(0.001)
        return False

    def _placed(self, fault: Result) -> Result:
        """Attach the case at which the candidate broke, when it had one."""
        number = self.state.ready
        if (
            fault.get("verdict") in ("fail", "timeout")
            and number < len(self.cases)
            and self.state.doing.get("candidate", ("", -1))[1] >= 0
        ):
            return {**fault, "case": self.cases[number]}
        return fault

    def _judge(self, message: dict[str, Any], candidate: Child, judge: Child) -> Result | None:
        state = self.state
        if "phase" in message:
            state.doing["judge"] = (message["phase"], int(message.get("case", -1)), time.monotonic())
        elif "judged" in message:
            if "failure" in message:
                return {"verdict": "fail", **message["failure"]}
            if message["rtol"] and (
                state.rtol == 0 or message["worst"] / message["rtol"] > state.worst / state.rtol
            ):
                state.worst, state.rtol = message["worst"], message["rtol"]
            state.rms = max(state.rms, message["rms"])
            state.skipped += bool(message.get("skipped"))
            state.judged += 1
            if state.judged == len(self.cases):
                return verdict(
                    "pass", "ok", "", worst=state.worst, rtol=state.rtol, rms=state.rms, skipped=state.skipped
                )
            candidate.send(go=state.judged + check.REGIONS - 1)
        elif "fault" in message:
            return dict(message["fault"])
        elif "flood" in message:
            return loud_workload(self.request, log(judge))
        elif "exit" in message:
            return verdict(
                "error",
                "judge",
                f"the process that computes the reference ended with {judge.death}",
                log=log(judge),
            )
        return None

    @property
    def deadline(self) -> float:
        """When it must have gone on, as ``time.monotonic`` counts."""
        ends = [self.state.total_deadline]
        for name, (phase, _, since) in self.state.doing.items():
            if phase in ("kernel", "load"):
                ends.append(since + self.limits["run_seconds"])
            elif phase in ("reference", "workload", "inputs") and name:
                ends.append(since + self.limits["workload_seconds"])
        return min(ends)

    def _timeout(self, candidate: Child) -> Result:
        """Who is to blame for the time: the child whose own allowance ran out, else the kernel."""
        now = time.monotonic()
        for phase, number, since in self.state.doing.values():
            if (
                phase in ("reference", "workload", "inputs")
                and now - since >= self.limits["workload_seconds"]
            ):
                function = {"reference": "reference()", "inputs": "inputs()", "workload": "the file"}[phase]
                size = f" for size {self.cases[number]['size']}" if number >= 0 else ""
                path = self.request["workload"]["path"]
                text = f"{path}: {function} did not finish within {self.limits['workload_seconds']:g} s{size}"
                return verdict("error", "workload_timeout", text)
        phase, number, since = self.state.doing.get("candidate", ("load", -1, now))
        seconds = min(self.limits["run_seconds"], self.limits["total_seconds"])
        result = verdict(
            "timeout",
            "timeout",
            f"ran longer than {seconds:g} s {self._doing('candidate')}",
            log=log(candidate),
        )
        return self._placed(result)
