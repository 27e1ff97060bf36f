"""A child of a child: forked once the inputs are there, so that they are made once for many processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

from klineage.worker.faults import KernelFault, Unsupported, WorkerError
from klineage.worker.process import fault_record

Body = Callable[[], dict[str, Any]]


def nested(body: Body) -> dict[str, Any]:
    """Run ``body`` in a fork of this process and return its answer, which must be JSON.

    A KernelFault of the body is raised here. When the fork dies, this process dies the same way, so
    that whoever watches it sees how. It stays in this process's group, and is killed with it.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(body, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    if os.WEXITSTATUS(status) or not data:
        os._exit(os.WEXITSTATUS(status))
    answer: dict[str, Any] = json.loads(data)
    if "fault" in answer:
        raise _fault(answer["fault"])
    return answer


def _child(body: Body, write: int) -> None:
    status = 1
    try:
        try:
            answer = body()
        except KernelFault as fault:
            answer = {"fault": fault_record(fault)}
        except MemoryError:
            answer = {"fault": {"verdict": "fail", "reason": "memory", "summary": "ran out of memory"}}
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(write, data) :]
        status = 0
    finally:
        os._exit(status)


def _fault(record: dict[str, Any]) -> KernelFault:
    kind = {"unsupported": Unsupported, "error": WorkerError}.get(record.pop("verdict"), KernelFault)
    return kind(record.pop("reason"), record.pop("summary"), **record)
