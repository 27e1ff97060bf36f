"""The GPU that is here, and Triton entries measured on it. Raw samples come back, no verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klineage.worker import triton_guard
from klineage.worker.faults import WorkerError
from klineage.worker.gpu_timing import measure_calls
from klineage.worker.gpu_verify import TimedOutputs
from klineage.worker.triton_errors import translated
from klineage.worker.triton_load import Entry


def device() -> dict[str, Any] | None:
    """The GPU that kernels run on: name, platform, sizes in bytes, versions. None when there is none."""
    import torch

    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": found.name,
        "platform": f"nvidia-sm{found.major}{found.minor}",
        "multiprocessors": found.multi_processor_count,
        "memory_bytes": found.total_memory,
        "cache_bytes": found.L2_cache_size,
        "shared_bytes": int(getattr(found, "shared_memory_per_block_optin", 0)),
        "torch": torch.__version__,
        "triton": _triton_version(),
        "cuda": torch.version.cuda,
        "bytes_per_second": _peak(found),
    }


def _triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "missing"
    return str(triton.__version__)


def _peak(found: Any) -> float:
    """Bytes a second that the memory could move at its clock; 0 where the driver does not say."""
    kilohertz, bits = getattr(found, "memory_clock_rate", 0), getattr(found, "memory_bus_width", 0)
    return 2.0 * kilohertz * 1e3 * bits / 8


def measure(
    candidate: Entry,
    baseline: Entry | None,
    values_sets: list[dict[str, object]],
    rounds: int,
    check: TimedOutputs | None = None,
) -> dict[str, Any]:
    """Time two Triton entries against each other: ``measure_calls`` on every set of arguments.

    Raises KernelFault when an entry fails, WorkerError when there is no GPU.
    """
    other = baseline or candidate
    kept = check.returned if check else {}
    calls = [
        (_call(candidate, values, kept, number), _call(other, values, {}, number))
        for number, values in enumerate(values_sets)
    ]
    with translated(candidate.path, "entry_raised"):
        return measure_calls(calls, rounds, paired=baseline is not None, check=check)


def _call(entry: Entry, values: dict[str, object], kept: dict[int, Any], number: int) -> Callable[[], Any]:
    """The entry on these values, as one call that keeps what it returns."""
    if entry.mode != "gpu":
        raise WorkerError("mode", "an entry that is to be measured must be loaded with mode='gpu'")
    arguments = entry.bind(values)

    def call() -> None:
        with triton_guard.watching(entry.path):
            kept[number] = entry.function(**arguments)

    return call
