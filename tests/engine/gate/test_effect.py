"""From rounds to verdicts: what is called an effect, what is not, and when measuring may stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from klineage.worker import effect, native_jobs, timing


def groups(
    ratio: float, count: int, seed: int, *, within: float = 0.008, between: float = 0.0015, rounds: int = 8
) -> list[effect.Group]:
    """Processes as they were measured: the speed wanders, rounds scatter, and so do the processes."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        drift = np.exp(np.cumsum(rng.normal(0, 0.05, rounds)))
        luck, twin_luck = rng.normal(0, between, 2)
        base = drift * np.exp(rng.normal(0, within, rounds))
        other = drift * ratio * np.exp(luck + rng.normal(0, within, rounds))
        same = np.exp(rng.normal(0, within, (2, rounds // 2)))
        made.append(
            effect.Group(tuple(other), tuple(base), (tuple(same[0] * math.exp(twin_luck)), tuple(same[1])))
        )
    return made


def sequential(ratio: float, seed: int, most: int = 24, **noise: float) -> effect.Estimate:
    """As the gate does it: one process after the other, until the effect stands."""
    everything = groups(ratio, most, seed, **noise)  # type: ignore[arg-type]
    for count in range(1, most + 1):
        found = effect.estimate(everything[:count])
        if found.decided:
            return found
    return found


def share(effect_: str, ratio: float, tries: int = 300) -> float:
    return sum(sequential(ratio, seed).effect == effect_ for seed in range(tries)) / tries


def test_equal_kernels_are_hardly_ever_called_different() -> None:
    assert share("neutral", 1.0) >= 0.995


@pytest.mark.parametrize("ratio", [1.02, 1 / 1.02, 1.05])
def test_two_percent_are_found(ratio: float) -> None:
    assert share("slower" if ratio > 1 else "faster", ratio) >= 0.98


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(1.2, 50))
def test_a_large_effect_needs_two_processes(seed: int, ratio: float) -> None:
    found = sequential(ratio, seed)
    assert (found.effect, found.groups) == ("slower", 2)
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(ratio, rel=0.03)
    assert sequential(1 / ratio, seed).effect == "faster"


def test_one_process_decides_nothing() -> None:
    assert not effect.estimate(groups(50.0, 1, 1)).decided


def test_a_loud_machine_gets_more_processes_and_then_no_number() -> None:
    quiet = sequential(1.0, 1)
    loud = sequential(1.0, 1, within=0.06, between=0.01)
    assert quiet.groups < loud.groups
    assert sequential(1.0, 1, most=5, within=0.5, between=0.1).effect == "noisy"


def test_outlying_processes_do_not_move_the_effect() -> None:
    good = groups(1.0, 10, 3)
    bad = [effect.Group(tuple(2 * t for t in g.candidate), g.baseline, g.same) for g in good[:3]]
    found = effect.estimate([*good[3:], *bad])
    assert found.effect == "neutral"
    assert found.ratio == pytest.approx(1.0, abs=0.005)


def test_blocks_keep_every_round_in_order() -> None:
    raw = {
        "candidate_ms": [float(i + 1) for i in range(23)],
        "baseline_ms": [1.0] * 23,
        "aa_ms": [[1.0] * 11, [1.0] * 11],
    }
    parts = effect.blocks(raw)
    assert [t for part in parts for t in part.candidate] == raw["candidate_ms"]
    assert sum(len(part.same[0]) for part in parts) == 11
    assert len(effect.blocks({**raw, "candidate_ms": [1.0], "baseline_ms": [1.0]})) == 1


def clock_of(*steps: int) -> timing.Clock:
    ticks = iter(range(0, 10**12, steps[0]))
    return lambda: next(ticks)


def test_pairs_are_interleaved_and_bounded() -> None:
    order: list[str] = []
    plan = timing.Plan(rounds=8, least_rounds=4, seconds=1.0, sample_seconds=0.0)
    raw = timing.paired(
        lambda: order.append("c"),
        lambda: order.append("b"),
        lambda: order.append("t"),
        plan,
        timing.Stopwatch(clock_of(1000)),
        between=lambda: order.append("."),
    )
    assert len(raw["candidate_ms"]) == len(raw["baseline_ms"]) == 8
    assert len(raw["wall_ms"]) == 2
    assert len(raw["aa_ms"][0]) == 4
    assert order[2:16] == list("bccbbttb.cbbc.")


def test_the_cost_of_calling_is_taken_off_but_never_all() -> None:
    watch = timing.Stopwatch(clock_of(3_000_000), overhead=1.0)
    assert watch.sample(lambda: None, 1) == pytest.approx(2.0)
    assert timing.Stopwatch(clock_of(3_000_000), overhead=5.0).sample(lambda: None, 1) > 0


def raw(processes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"processes": processes, "timer": "thread_cpu_time"}


def process(group: effect.Group, **more: Any) -> dict[str, Any]:
    return {
        "candidate_ms": group.candidate,
        "baseline_ms": group.baseline,
        "aa_ms": group.same,
        "wall_ms": [1.0, 1.0],
        **more,
    }


def test_a_thread_that_waits_is_not_faster() -> None:
    answer = native_jobs.settle(raw([process(g) for g in groups(0.2, 4, 1)]))
    assert (answer["verdict"], answer["reason"]) == ("noisy", "clocks_disagree")
    assert "0.2" in answer["summary"]


def test_a_kernel_that_reuses_its_output_is_not_faster() -> None:
    told = [process(g, wall_ms=[0.2, 1.0], fresh_ms=[1.0, 1.0], kept_ms=0.2) for g in groups(0.2, 4, 1)]
    answer = native_jobs.settle(raw(told))
    assert (answer["verdict"], answer["reason"]) == ("fail", "stale")
    honest = [process(g, wall_ms=[0.2, 1.0], fresh_ms=[0.2, 1.0], kept_ms=0.2) for g in groups(0.2, 4, 1)]
    assert native_jobs.settle(raw(honest))["effect"] == "faster"


def test_a_kernel_that_memory_slows_down_once_its_outputs_were_written_is_not_blamed() -> None:
    """Cold, it is no faster than the baseline; but as slow where its output is there already."""
    told = [process(g, wall_ms=[0.2, 1.0], fresh_ms=[1.0, 1.0], kept_ms=0.9) for g in groups(0.2, 4, 1)]
    assert native_jobs.settle(raw(told))["effect"] == "faster"


def test_one_disturbed_process_condemns_no_kernel() -> None:
    """A busy machine makes single calls longer, never shorter."""
    told = [process(g, wall_ms=[0.2, 1.0], fresh_ms=[0.2, 1.0], kept_ms=0.2) for g in groups(0.2, 4, 1)]
    told[0]["fresh_ms"] = [1.1, 1.0]
    assert native_jobs.settle(raw(told))["effect"] == "faster"
