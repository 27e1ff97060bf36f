"""What can go wrong with a kernel in a worker, as data that travels back as JSON."""

from __future__ import annotations


class KernelFault(Exception):
    """The kernel is at fault. ``reason`` is a machine-readable code, the message one sentence."""

    verdict = "fail"

    def __init__(self, reason: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.details = details


class Unsupported(KernelFault):
    """This machine or backend cannot judge the kernel; that says nothing of the kernel."""

    verdict = "unsupported"


class WorkerError(KernelFault):
    """The worker or the workload is at fault, not the kernel."""

    verdict = "error"
