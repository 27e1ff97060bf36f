"""What is done with a GPU's times, as far as no GPU is needed to see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from klineage.gate import GateRequest, Policy, Verdict
from klineage.gate.ceiling import floor_ms
from klineage.gate.device import time_on_gpu, timed_on_gpu
from klineage.kernel import Kernel
from klineage.worker import buffers, gpu_state, gpu_timing
from klineage.worker.faults import KernelFault
from klineage.worker.problem import load
from klineage.workload import load as load_workload

MARK = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def test_a_run_is_the_span_of_what_lies_between_two_marks() -> None:
    seen = [
        ("Memset (Device)", 0, 90),
        (MARK, 100, 50),
        ("first", 150, 1_000_000),
        ("second", 1_500_000, 500_000),
        (MARK, 2_000_100, 1),
        ("Memset (Device)", 2_000_200, 90),
        (MARK, 3_000_000, 50),
        ("first", 3_000_100, 250_000),
        (MARK, 3_300_000, 1),
    ]
    assert gpu_timing.spans_of(seen) == pytest.approx([1.99985, 0.25])
    assert gpu_timing.spans_of(list(reversed(seen))) == pytest.approx([1.99985, 0.25])


def test_a_run_that_launched_nothing_and_a_kernel_named_like_a_mark_are_seen() -> None:
    assert gpu_timing.spans_of([(MARK, 0, 1), (MARK, 10, 1)]) == []
    seen = [(MARK, 0, 1), ("spin_kernel", 10, 5), (MARK, 20, 1)]
    assert gpu_timing.spans_of(seen) == pytest.approx([5e-6])


def test_a_moving_clock_is_told() -> None:
    steady = [{"sm_mhz": 1900, "memory_mhz": 3200, "milliwatts": 400_000, "celsius": 50, "reasons": 0}] * 3
    told = gpu_state.summarized(steady)
    assert (told["sm_mhz"], told["celsius"], gpu_state.changed(told)) == (1900, 50, "")
    moved = gpu_state.summarized([*steady, {"sm_mhz": 1200, "reasons": 0x24}])
    assert gpu_state.changed(moved) == (
        "the clock moved between 1200 and 1900 MHz, and it was held back by power cap, software thermal slowdown"
    )
    assert gpu_state.changed(gpu_state.summarized([])) == ""


def test_no_library_is_no_error() -> None:
    watcher = gpu_state.Watcher()
    watcher.sample()
    assert "held_back_by" in watcher.summary()


class FakeSampler:
    """Takes every run, at made-up times: the candidate 2 ms, the baseline 1 ms."""

    def __init__(self, host_seconds: float) -> None:
        self.watcher = gpu_state.Watcher()

    def run(self, calls: list[Any]) -> list[float]:
        return [float(call()) for call in calls]


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu_timing, "Sampler", FakeSampler)
    monkeypatch.setattr(gpu_timing, "_warm_up", lambda call: 0.0)


class Checked:
    def __init__(self) -> None:
        self.begun, self.turns = 0, list[int]()

    def begin(self, run: Any) -> None:
        self.begun += 1

    def check(self, turn: int, run: Any) -> None:
        self.turns.append(turn)
        assert run() == [2.0]


def test_rounds_take_the_sets_in_turn_and_some_are_verified(fake_gpu: None) -> None:
    check = Checked()
    pairs: list[Any] = [(lambda: 2.0, lambda: 1.0) for _ in range(4)]
    raw = gpu_timing.measure_calls(pairs, 20, paired=True, check=check)
    assert raw["candidate_ms"] == [2.0] * 20
    assert raw["baseline_ms"] == raw["aa_ms"][0] == raw["aa_ms"][1] == [1.0] * 20
    assert raw["timer"] == "cuda-event"
    assert (check.begun, len(check.turns), raw["verified"]) == (1, 4, 4)
    assert check.turns[-1] == 3  # the last round, on the last set: what rests after many calls rests by then


def test_without_cupti_events_do_and_the_reason_is_told(fake_gpu: None) -> None:
    pairs: list[Any] = [(lambda: 0.02, lambda: 0.01)]
    raw = gpu_timing.measure_calls(pairs, 8, paired=True)
    assert raw["timer"] == "cuda-event"
    assert "CUPTI" in raw["timer_note"]


def outputs(values: list[Any], **more: Any) -> Any:
    torch = pytest.importorskip("torch")
    from klineage.worker.gpu_verify import TimedOutputs

    problem = load((Path(__file__).parent / "workload.py").read_bytes(), "workload.py", "fp32")
    dims = {"rows": 3, "columns": 5}
    slots, total = buffers.layout(problem.tensors(dims))
    memories = [torch.zeros(total, dtype=torch.uint8) for _ in range(2)]
    inputs = {n: torch.from_numpy(a) for n, a in problem.inputs(7, dims).items()}
    verifier = TimedOutputs(problem, dims, inputs, memories, slots)
    slot = next(s for s in slots if s.name == "y")

    def run(turn: int) -> None:
        value = values.pop(0)
        if value is not None:
            memories[turn][slot.offset : slot.end].view(torch.float32).copy_(
                torch.from_numpy(np.full(15, value, np.float32))
            )

    return verifier, run


def test_a_timed_output_must_be_the_first_one_again() -> None:
    verifier, run = outputs([1.5, 1.5, 1.500001, 1.6])
    verifier.begin(lambda: run(0))
    verifier.check(0, lambda: run(0))
    verifier.check(1, lambda: run(1))
    with pytest.raises(KernelFault) as fault:
        verifier.check(1, lambda: run(1))
    assert fault.value.reason == "timed_output"


def test_a_kernel_that_rests_after_some_calls_leaves_poison() -> None:
    verifier, run = outputs([1.5, None])
    verifier.begin(lambda: run(0))
    with pytest.raises(KernelFault):
        verifier.check(0, lambda: run(0))


def test_a_returned_output_is_the_one_that_counts() -> None:
    torch = pytest.importorskip("torch")
    verifier, _ = outputs([])

    def returning(value: float) -> Any:
        def run() -> None:
            verifier.returned[0] = torch.full((3, 5), value)

        return run

    verifier.begin(returning(1.0))
    verifier.check(0, returning(1.0))
    with pytest.raises(KernelFault):
        verifier.check(0, returning(2.0))


def test_an_unmeasured_device_has_the_floor_of_its_memory_clock() -> None:
    cost = {"bytes": 1e9, "operations": 0.0}
    assert floor_ms("a device nobody measured", "bf16", cost, peak=1e12) == pytest.approx(1.0)
    assert floor_ms("NVIDIA H200", "bf16", cost, peak=1e15) == pytest.approx(1e3 / 4276, rel=1e-3)


class Told:
    """As much of a session as the profile needs."""

    class machine:
        class gpu:
            name = "a device nobody measured"

    class request:
        counters = False

        class workload:
            element = {"triton": "bf16"}

        class kernel:
            surface = "triton"

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}


@pytest.mark.parametrize("surface", ["triton", "cuda"])
def test_each_language_is_timed_by_its_own_job_at_its_largest_size(surface: Any) -> None:
    class Asked(Told):
        request = GateRequest(Kernel(surface, "gemm", "gemm", b""), load_workload("gemm"), "nvidia-sm90")
        kernel = {"source": "the candidate's"}
        policy = Policy()

        def job(self, stage: str, kind: str, seconds: float, **job: Any) -> dict[str, Any]:
            self.asked = (stage, kind, seconds, job)
            return {"verdict": "pass"}

    session: Any = Asked()
    answer, size = time_on_gpu(session, {"source": "the baseline's"})
    stage, kind, seconds, job = session.asked
    assert (answer, size) == ({"verdict": "pass"}, "paper")
    assert (stage, kind, seconds) == ("profile", "gpu", session.policy.total_seconds)
    assert job["op"] == f"time_{surface}"
    assert (job["kernel"]["source"], job["baseline"]["source"]) == ("the candidate's", "the baseline's")
    assert job["dims"] == session.request.workload.sizes["paper"]
    assert job["workload"]["element"] == session.request.workload.element[surface]


def test_the_profile_tells_of_clocks_timer_and_floor() -> None:
    answer = {
        "verdict": "pass", "effect": "neutral", "ratio": 1.0, "low": 0.99, "high": 1.01, "noise": 0.001,
        "candidate_ms": 1.5, "baseline_ms": 1.5, "timer": "cuda-event", "rounds": 50, "spread": 1.0, "groups": 5,
        "timer_note": "CUPTI saw 3 of 80 runs, so the launch is part of the time",
        "cost": {"bytes": 1e9, "operations": 1.0}, "device": {"name": "x", "cuda": "13.0", "bytes_per_second": 1e12},
        "clocks": {"sm_mhz": 1900, "sm_mhz_low": 1200, "sm_mhz_high": 1900, "memory_mhz": 3200, "held_back_by": []},
    }  # fmt: skip
    session: Any = Told()
    result = timed_on_gpu(session, answer, "paper")
    assert result.verdict is Verdict.PASS
    assert "floor 1.00 ms" in result.summary
    assert "CUPTI saw 3 of 80" in result.summary
    assert result.summary.endswith("the clock moved between 1200 and 1900 MHz")
    assert session.environment["gpu clocks"] == "1900 MHz, memory 3200 MHz"
    fast = timed_on_gpu(session, {**answer, "candidate_ms": 0.5}, "paper")
    assert (fast.verdict, fast.reason) == (Verdict.FAIL, "impossible")
