"""The server's side of a job: fork its children, follow them, and turn what they say into one result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
                    "timeout", "timeout", f"took longer than {seconds:g} s {doing}", log=log(child)
                )
            if "flood" in message:
                return flood(child)
            if "fault" in message:
                return {"log": log(child), **message["fault"]}
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


def log(child: Child) -> str:
    """What a child printed."""
    return child.text.decode("utf-8", errors="replace")


def flood(child: Child) -> Result:
    """The verdict on a kernel that floods its output."""
    return verdict(
        "fail", "output_flood", "printed more than 1 MB; a kernel prints nothing", log=log(child)[:4096]
    )


def loud_workload(request: Result, log: str) -> Result:
    """The verdict on a workload that floods its output."""
    text = f"{request['workload']['path']}: printed more than 1 MB; a workload prints nothing"
    return verdict("error", "workload", text, log=log[:4096])


def threads_left(doing: str) -> Result:
    """The verdict on a kernel whose threads outlive it."""
    return verdict("fail", "threads_left", f"left threads running after it returned, {doing}")
