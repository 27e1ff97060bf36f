"""Measure kernels on the GPU that is here, by CUDA events. Raw samples come back, no verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from klineage.worker.faults import KernelFault, WorkerError
from klineage.worker.triton_errors import translated
from klineage.worker.triton_load import Entry

Launch = Callable[[], Any]

_WARM_UP = 3
_SLACK = 2.0  # the device waits this many times the host's launch time before a sample starts


def device() -> dict[str, Any] | None:
    """The GPU that kernels run on: name, platform, sizes in bytes, versions. None when there is none."""
    import torch

    if not torch.cuda.is_available():
        return None
    import triton

    found = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": found.name,
        "platform": f"nvidia-sm{found.major}{found.minor}",
        "multiprocessors": found.multi_processor_count,
        "memory_bytes": found.total_memory,
        "cache_bytes": found.L2_cache_size,
        "shared_bytes": int(getattr(found, "shared_memory_per_block_optin", 0)),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
    }


def measure(
    candidate: Entry, baseline: Entry | None, values_sets: list[dict[str, object]], rounds: int
) -> dict[str, Any]:
    """Time two Triton entries against each other: ``measure_calls`` on every set of arguments.

    Raises KernelFault when an entry fails, WorkerError when there is no GPU.
    """
    other = baseline or candidate
    calls = [(_call(candidate, values), _call(other, values)) for values in values_sets]
    with translated(candidate.path, "entry_raised"):
        return measure_calls(calls, rounds, paired=baseline is not None)


def measure_calls(calls: list[tuple[Launch, Launch]], rounds: int, *, paired: bool) -> dict[str, Any]:
    """Time (candidate, baseline) launches, interleaved, and the baseline against itself.

    calls: one pair a set of buffers; rounds take them in turn, so that no cache can help. Each queues its
    kernels on the default stream. Each round runs candidate, baseline, baseline, candidate and four times
    the baseline, every run after the level-2 cache was flushed. Returns candidate_ms and baseline_ms (one number a round: the faster of two
    runs), aa_ms (two such lists for the baseline alone), "timer": "cuda-event". Without ``paired`` the
    candidate is compared with itself and baseline_ms is empty.
    Raises WorkerError when there is no GPU.
    """
    if device() is None:
        raise WorkerError("no_gpu", "this machine has no GPU that torch can use")
    if not calls or rounds < 1:
        raise WorkerError("measure", "measuring needs at least one set of values and one round")
    sampler = _Sampler(max(_warm_up(call) for pair in calls for call in pair))
    samples = [_round(sampler, *calls[i % len(calls)]) for i in range(rounds)]
    return {
        "candidate_ms": [s[0] for s in samples],
        "baseline_ms": [s[1] for s in samples] if paired else [],
        "aa_ms": [[s[2] for s in samples], [s[3] for s in samples]],
        "timer": "cuda-event",
    }


def _call(entry: Entry, values: dict[str, object]) -> Callable[[], Any]:
    if entry.mode != "gpu":
        raise WorkerError("mode", "an entry that is to be measured must be loaded with mode='gpu'")
    arguments = entry.bind(values)
    return lambda: entry.function(**arguments)


def _warm_up(call: Callable[[], Any]) -> float:
    """Seconds that the host needs to launch ``call`` once it is compiled."""
    import torch

    for _ in range(_WARM_UP):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken


class _Sampler:
    """Queues flushed, timed runs. The device idles while the host gets ahead, so launches cost no time."""

    def __init__(self, host_seconds: float) -> None:
        import torch

        self.torch = torch
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.scratch = torch.empty(2 * properties.L2_cache_size, dtype=torch.uint8, device="cuda")
        self.wait_cycles = int(_SLACK * host_seconds * 2e9)  # at most 2 GHz

    def run(self, calls: list[Callable[[], Any]]) -> list[float]:
        """Milliseconds of each call, in order."""
        events = []
        for call in calls:
            begin = self.torch.cuda.Event(enable_timing=True)
            end = self.torch.cuda.Event(enable_timing=True)
            self.scratch.zero_()
            self.torch.cuda._sleep(self.wait_cycles)
            begin.record()
            call()
            end.record()
            events.append((begin, end))
        self.torch.cuda.synchronize()
        taken = [float(begin.elapsed_time(end)) for begin, end in events]
        if min(taken) <= 0:
            raise KernelFault("impossible_time", "the device reports that the entry took no time")
        return taken


def _round(
    sampler: _Sampler, candidate: Callable[[], Any], baseline: Callable[[], Any]
) -> tuple[float, float, float, float]:
    order = [candidate, baseline, baseline, candidate, baseline, baseline, baseline, baseline]
    t = sampler.run(order)
    return min(t[0], t[3]), min(t[1], t[2]), min(t[4], t[7]), min(t[5], t[6])
