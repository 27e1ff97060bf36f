"""The server's side of a job: fork its children, follow them, and turn what they say into one result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from klineage.worker import check
from klineage.worker.process import MEMORY_EXIT, Channel, Child, Task, end, spawn
from klineage.worker.spares import Spares
from klineage.worker.watch import Control, watch

Progress = Callable[[dict[str, Any]], None]
Body = Callable[[Channel], None]
Result = dict[str, Any]

_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGKILL")


@dataclass(frozen=True)
class Context:
    """What every job gets: the kind of this server, its control line, the job's id, where to report, spare children."""

    kind: str
    control: Control
    job: object
    progress: Progress
    spares: Spares | None = None

    def start(self, name: str, body: Body) -> Child:
        """A child that runs ``body``; one that waits already where there is one and the body is a Task."""
        if not isinstance(body, Task):
            return spawn(name, body)
        return self.spares.start(name, body) if self.spares else spawn(name, body, body.files)


def verdict(word: str, reason: str, summary: str, **more: Any) -> Result:
    return {"verdict": word, "reason": reason, "summary": summary, **more}


def death(child: Child, doing: str) -> Result:
    """Why a child that said nothing more has ended."""
    log = child.text.decode("utf-8", errors="replace")
    how = child.death
    if how == f"exit {MEMORY_EXIT}":
        return verdict("fail", "memory", f"asked for more memory than a gate allows {doing}", log=log)
    if how == "SIGSYS":
        return verdict("fail", "forbidden_call", f"tried to start a process or program {doing}", log=log)
    if how == "SIGXFSZ":
        return verdict("fail", "disk", f"wrote a larger file than a gate allows {doing}", log=log)
    if how == "SIGXCPU":
        return verdict("timeout", "timeout", f"used up its processor time {doing}", log=log)
    if how in _CRASHES:
        return verdict("fail", "crashed", f"crashed with {how} {doing}", log=log, signal=how)
    if how.startswith("exit"):
        return verdict(
            "fail", "no_output", f"ended the process ({how}) before its output was there, {doing}", log=log
        )
    return verdict("fail", "crashed", f"ended by {how} {doing}", log=log, signal=how)


def single(context: Context, body: Body, seconds: float, doing: str, beside: tuple[Body, ...] = ()) -> Result:
    """Run one child to its end. Its last ``result`` message is the result; faults and deaths are typed.

    beside: bodies of helpers that run at the same time and are waited for; what becomes of them is no matter.
    """
    child = context.start(context.kind, body)
    helpers = [spawn(context.kind, helper) for helper in beside]
    deadline = [time.monotonic() + seconds]
    answer: Result | None = None
    try:
        for source, message in watch([child, *helpers], deadline, context.control, context.job):
            if source in helpers:
                continue
            if "timeout" in message:
                if answer is not None:
                    return answer
                return verdict(
                    "timeout", "timeout", f"took longer than {seconds:g} s {doing}", log=_log(child)
                )
            if "flood" in message:
                return _flood(child)
            if "fault" in message:
                return {"log": _log(child), **message["fault"]}
            if "progress" in message:
                context.progress(message["progress"])
            if "result" in message:
                answer = message["result"]
            if "finished" in message and answer is not None and not helpers:
                return answer
            if "exit" in message and answer is None:
                return death(child, doing)
    finally:
        end([child, *helpers])
    if answer is not None:
        return answer
    raise AssertionError("a child ended without a word")


def _log(child: Child) -> str:
    return child.text.decode("utf-8", errors="replace")


def _flood(child: Child) -> Result:
    return verdict(
        "fail", "output_flood", "printed more than 1 MB; a kernel prints nothing", log=_log(child)[:4096]
    )


def loud_workload(request: Result, log: str) -> Result:
    """The verdict on a workload that floods its output."""
    text = f"{request['workload']['path']}: printed more than 1 MB; a workload prints nothing"
    return verdict("error", "workload", text, log=log[:4096])


def _threads(doing: str) -> Result:
    return verdict("fail", "threads_left", f"left threads running after it returned, {doing}")


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


class Correctness:
    """One correctness job. ``run`` returns its result."""

    def __init__(self, request: dict[str, Any], context: Context) -> None:
        self.request, self.context = request, context
        self.cases, self.limits = request["cases"], request["limits"]
        self.state = _State(time.monotonic() + self.limits["total_seconds"])

    def run(self) -> Result:
        arena = check.open_arena()
        request, kind = self.request, self.context.kind
        candidate = judge = None
        try:
            candidate = self.context.start("candidate", Task(check.candidate, (request, kind), (arena,)))
            judge = self.context.start("judge", Task(check.judge, (request, kind), (arena,)))
            return self._follow(candidate, judge)
        finally:
            end([child for child in (candidate, judge) if child])
            os.close(arena)

    def _follow(self, candidate: Child, judge: Child) -> Result:
        for number in range(check.REGIONS):
            candidate.send(go=number)
        deadline = [self.state.total_deadline]
        for child, message in watch([candidate, judge], deadline, self.context.control, self.context.job):
            if child is None:
                return self._timeout(candidate)
            handle = self._candidate if child is candidate else self._judge
            result = handle(message, candidate, judge)
            if result is None and self.state.broken and self.state.judged >= self.state.ready:
                result = self.state.broken
            if result is not None:
                return {
                    "layers": self.state.layers,
                    "counts": self.state.counts,
                    "kernels": self.state.kernels,
                    "artifact": self.state.artifact,
                    "unordered": self.state.unordered,
                    "log": _log(candidate),
                    **result,
                }
            deadline[0] = self._deadline()
        raise AssertionError("both children ended without a verdict")

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
                self.context.progress({"case": number, "size": self.cases[number]["size"]})
        elif "artifact" in message:
            state.artifact, state.unordered = str(message["artifact"]), bool(message["unordered"])
        elif message.get("ready") == state.ready and state.ready < len(self.cases):
            size = self.cases[state.ready]["size"]
            state.counts.setdefault(size, message.get("counts") or {})
            state.kernels.setdefault(size, message.get("kernels") or {})
            if self._threads_left(candidate):
                state.broken = state.broken or self._placed(_threads(self._doing("candidate")))
                return None
            state.ready += 1
            state.doing["candidate"] = ("idle", state.ready, time.monotonic())
            judge.send(ready=state.ready - 1)
        elif "fault" in message:
            state.broken = state.broken or self._placed(message["fault"])
        elif "flood" in message:
            state.broken = state.broken or _flood(candidate)
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
            return loud_workload(self.request, _log(judge))
        elif "exit" in message:
            return verdict(
                "error",
                "judge",
                f"the process that computes the reference ended with {judge.death}",
                log=_log(judge),
            )
        return None

    def _deadline(self) -> float:
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
                return verdict("error", "workload_timeout", text, layers=self.state.layers)
        phase, number, since = self.state.doing.get("candidate", ("load", -1, now))
        seconds = min(self.limits["run_seconds"], self.limits["total_seconds"])
        result = verdict(
            "timeout",
            "timeout",
            f"ran longer than {seconds:g} s {self._doing('candidate')}",
            log=_log(candidate),
        )
        return {**self._placed(result), "layers": self.state.layers}
