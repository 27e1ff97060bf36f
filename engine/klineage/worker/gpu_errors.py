"""What a CUDA error says about the kernel that caused it, whoever happened to be told of it.

Errors on the device come late: the call that reports one may be a copy, the profiler's end, or a wait.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from klineage.worker.faults import KernelFault

# Errors that a kernel itself causes, by their number in the driver and in the runtime: reason, what happened,
# and the driver's words.
BY_KERNEL = {
    700: ("illegal_access", "read or wrote an address that is no memory of the device", "illegal memory access"),
    701: ("resources", "needs more registers or threads than the device has for a block", "too many resources requested"),
    702: ("timeout", "ran longer than the driver allows", "launch timed out"),
    710: ("assert", "an assert() in it failed", "device-side assert"),
    714: ("crashed", "ended with a hardware stack error", "hardware stack error"),
    715: ("crashed", "ran an illegal instruction", "illegal instruction"),
    716: ("illegal_access", "read or wrote an address that is not aligned to its type", "misaligned address"),
    717: ("illegal_access", "used an address of the wrong kind of memory", "not supported on global/shared address space"),
    718: ("crashed", "jumped to an invalid address", "invalid program counter"),
    719: ("crashed", "ended with an exception on the device", "unspecified launch failure"),
    720: ("resources", "cannot be launched cooperatively: its blocks do not fit the device at once", "cooperative launch too large"),
}  # fmt: skip
_CUDA = re.compile(r"CUDA", re.IGNORECASE)


def number_of(error: BaseException) -> int | None:
    """The number of a CUDA error that a kernel causes, by what torch or Triton raised; None for other errors."""
    code = getattr(error, "error_code", None)  # of torch.AcceleratorError
    if code in BY_KERNEL:
        return int(code)
    text = str(error)
    if not _CUDA.search(text):
        return None
    return next((number for number, (_, _, words) in BY_KERNEL.items() if words in text), None)


def fault_of(error: BaseException, kernel: str) -> KernelFault | None:
    """The fault behind an error, or behind one that led to it; None when no kernel is to blame."""
    seen: BaseException | None = error
    found: KernelFault | None = None
    while seen is not None:
        if isinstance(seen, KernelFault):
            found = seen
        number = number_of(seen)
        if number is not None and found is None:
            reason, what, words = BY_KERNEL[number]
            found = KernelFault(reason, f"{kernel} {what} ({words}, CUDA error {number})")
        seen = seen.__cause__ or seen.__context__
    return found


@contextlib.contextmanager
def blamed(kernel: str) -> Iterator[None]:
    """Inside, kernels of ``kernel`` run: what the device reports is their fault, as a KernelFault."""
    try:
        yield
    except KernelFault:
        raise
    except Exception as error:
        fault = fault_of(error, kernel)
        if fault is None:
            raise
        raise fault from error
