"""What a gate says of a change, read as gains."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.gate import Counts, Measurement, Report, StageResult, Trust, Verdict
from klineage.kernel import Kernel
from klineage.skill.trial import Gain, effect_of, gain_of, gains_of, judged, leading
from klineage.workload import load

ROWS = Path(__file__).parent.parent / "gate"


def report(profile: StageResult, trust: Trust = Trust.MEASURED_CPU, correct: bool = True) -> Report:
    judged = StageResult("correctness", Verdict.PASS if correct else Verdict.FAIL, "ok", "")
    return Report("a" * 64, "b" * 64, "cpu-x86-64-v3", "2", trust, (judged, profile))


def timed(ratio: float, half: float, noise: float = 0.005) -> Report:
    found = Measurement(
        ratio, "thread_cpu_time", 16, "bench", 1.0, ratio, ratio - half, ratio + half, noise, None
    )
    return report(StageResult("profile", Verdict.PASS, "ok", "", measurement=found))


def counted(own: dict[str, int], other: dict[str, int]) -> Report:
    profile = StageResult(
        "profile",
        Verdict.PASS,
        "ok",
        "",
        counts=Counts("small", own),
        baseline_counts=Counts("small", other),
    )
    return report(profile, Trust.INTERPRETED)


def test_what_is_read_off_the_code_is_static_and_what_ran_is_interpreted() -> None:
    found = gains_of(
        counted(
            {"bytes_loaded": 1, "instructions": 7, "registers": 9},
            {"bytes_loaded": 2, "instructions": 8, "registers": 9},
        )
    )
    assert {gain.quantity: gain.trust for gain in found} == {
        "bytes": "interpreted", "bytes_loaded": "interpreted", "instructions": "static", "registers": "static",
    }  # fmt: skip


def test_a_small_difference_of_counts_is_not_told_as_none() -> None:
    (moved, _) = gains_of(counted({"bytes_loaded": 1000}, {"bytes_loaded": 1004}))
    (same, _) = gains_of(counted({"bytes_loaded": 1000}, {"bytes_loaded": 1000}))
    assert str(moved) == "1.0040x bytes, interpreted"
    assert str(same) == "1.00x bytes, interpreted"


def test_a_time_is_turned_round_with_its_interval() -> None:
    gain = gain_of(timed(0.5, 0.01))
    assert gain is not None
    assert (gain.quantity, gain.gain, gain.trust, gain.size) == ("time", 2.0, "measured-cpu", "bench")
    assert gain.low == pytest.approx(1 / 0.51)
    assert gain.high == pytest.approx(1 / 0.49)
    assert gain.better


@pytest.mark.parametrize(("ratio", "half"), [(0.97, 0.05), (0.995, 0.001), (1.004, 0.001)])
def test_what_is_within_interval_or_noise_is_no_gain(ratio: float, half: float) -> None:
    assert gain_of(timed(ratio, half)) is None
    assert len(gains_of(timed(ratio, half))) == 1


def test_a_wide_floor_of_the_measurement_counts_as_noise() -> None:
    assert gain_of(timed(0.95, 0.001, noise=0.08)) is None
    assert gain_of(timed(0.95, 0.001, noise=0.02)) is not None


def test_a_slower_kernel_is_shown_to_be_slower() -> None:
    gain = gain_of(timed(1.5, 0.01))
    assert gain is not None
    assert gain.shown
    assert not gain.better


def test_counts_are_exact_and_speak_of_no_time() -> None:
    own = {"bytes_loaded": 100, "bytes_stored": 50, "operations": 40, "instructions": 90, "registers": 64}
    other = {"bytes_loaded": 1000, "bytes_stored": 50, "operations": 40, "instructions": 60, "registers": 32}
    found = {gain.quantity: gain for gain in gains_of(counted(own, other))}
    assert found["bytes"].gain == pytest.approx(7.0)
    assert found["bytes_loaded"].gain == pytest.approx(10.0)
    assert found["instructions"].gain == pytest.approx(2 / 3)
    assert all(gain.exact and gain.low == gain.gain == gain.high for gain in found.values())
    assert "time" not in found
    chosen = gain_of(counted(own, other))
    assert chosen is not None and chosen.quantity == "bytes"


def test_what_became_less_leads_before_what_became_more() -> None:
    own, other = {"operations": 300, "instructions": 90}, {"operations": 100, "instructions": 100}
    chosen = gain_of(counted(own, other))
    assert chosen is not None
    assert (chosen.quantity, chosen.better) == ("instructions", True)
    worse = gain_of(counted({**own, "instructions": 100}, other))
    assert worse is not None
    assert (worse.quantity, worse.better) == ("operations", False)


def test_resources_speak_only_where_no_work_changed() -> None:
    same = {"operations": 10, "registers": 20}
    assert getattr(gain_of(counted(same, {**same, "registers": 40})), "quantity", "") == "registers"
    other = {"operations": 11, "registers": 400}
    assert getattr(gain_of(counted(same, other)), "quantity", "") == "operations"


def test_a_count_of_zero_has_no_ratio() -> None:
    found = gains_of(counted({"operations": 1, "spill_bytes": 0}, {"operations": 1, "spill_bytes": 64}))
    assert [gain.quantity for gain in found] == ["operations"]


def test_what_failed_or_was_too_noisy_gains_nothing() -> None:
    profile = timed(0.5, 0.01).stage("profile")
    assert profile is not None
    assert gains_of(report(profile, correct=False)) == ()
    assert gains_of(report(StageResult("profile", Verdict.NOISY, "noisy", ""))) == ()
    assert gains_of(report(StageResult("profile", Verdict.PASS, "ok", "alone"))) == ()


gains = st.builds(
    lambda gain, half, noise: Gain(
        "time", gain, gain - half, gain + half, "measured-cpu", "bench", "t", noise
    ),
    st.floats(0.2, 20),
    st.floats(0, 0.1),
    st.floats(0, 0.1),
)


@given(st.lists(gains))
def test_what_leads_is_always_shown_and_never_the_smaller(found: list[Gain]) -> None:
    chosen = leading(found)
    if chosen is None:
        assert not any(gain.shown for gain in found)
        return
    assert chosen.shown
    rivals = [gain.gain for gain in found if gain.better] or [1 / gain.gain for gain in found if gain.shown]
    assert (chosen.gain if chosen.better else 1 / chosen.gain) == max(rivals)


def test_an_effect_says_what_the_gain_said() -> None:
    gain = gain_of(timed(0.5, 0.01))
    assert gain is not None
    effect = effect_of(gain, "cpu-x86-64-v3", "rows", "last", ("e1",))
    assert effect.quantity == "time"
    numbers = (effect.gain, effect.low, effect.high)
    assert numbers == pytest.approx((gain.gain, gain.low, gain.high), rel=1e-5), "six digits, and no more"
    assert (effect.trust, effect.timer, effect.size) == ("measured-cpu", "thread_cpu_time", "bench")
    assert (effect.position, effect.evidence, effect.workload) == ("last", ("e1",), "rows")


def source(body: str) -> Kernel:
    text = (
        "#include <stdint.h>\nvoid rows_kernel(const float *x, const float *bias, float *y, int64_t rows,\n"
        "                 int64_t columns, float alpha)\n{\n" + body + "}\n"
    )
    return Kernel("c", "kernel.c", "rows_kernel", text.encode())


TWICE = source(
    "    volatile float kept = 0.0f;\n    for (int64_t i = 0; i < rows; ++i)\n"
    "        for (int64_t j = 0; j < columns; ++j) {\n"
    "            for (int64_t t = 0; t < 9; ++t)\n                kept = alpha * x[i * columns + j];\n"
    "            y[i * columns + j] = kept + bias[j];\n        }\n"
)
ONCE = source(
    "    for (int64_t i = 0; i < rows; ++i)\n        for (int64_t j = 0; j < columns; ++j)\n"
    "            y[i * columns + j] = alpha * x[i * columns + j] + bias[j];\n"
)


def test_a_kernel_that_does_less_is_measured_to_be_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = judged(ONCE, TWICE, load(ROWS), "cpu-native", "admission")
    assert found.verdict is Verdict.PASS, found.log
    assert found.phase == "admission"
    assert len(found.seeds) == 10
    profile = found.stage("profile")
    assert profile is not None
    gain = gain_of(found)
    if profile.verdict is Verdict.NOISY:  # on a machine that is too busy to measure even this
        assert gain is None
        return
    assert gain is not None, found.log
    assert gain.better
    assert gain.quantity == "time"
    assert gain.trust == "measured-cpu"


def test_a_cancelled_trial_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(KlineageError, match="cancelled"):
        judged(ONCE, TWICE, load(ROWS), "cpu-native", cancel=cancel)
