"""Trials: a kernel is gated beside the one that it is compared with, and what it gains is read off the report.

A gain is the quantity without a change over the quantity with it: above 1 is better. A time comes with the interval and
the noise of its measurement; exact counts (bytes, operations, instructions) come without, and say nothing of time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from klineage.errors import KlineageError
from klineage.gate import (
    POLICY,
    Counts,
    GateEvent,
    GateRequest,
    Measurement,
    Policy,
    Report,
    Trust,
    Verdict,
    gate,
)
from klineage.gate.counts import RESOURCES, WORK
from klineage.gate.policy import Phase
from klineage.kernel import Kernel
from klineage.numbers import counted, three
from klineage.skill.card import Effect
from klineage.workload import Workload

TIME = "time"

#: Counts of which fewer is better, and what they add up. What is launched, and how, is neither better nor worse.
WORK_COUNTS = (*WORK, "bytes_loaded", "bytes_stored", "masked_lanes", "integer_operations")
QUANTITIES = (TIME, *WORK_COUNTS, *RESOURCES)

#: What a compiler says of its code, and no run: instructions are those that stand there, however often they run.
COMPILED = ("instructions", *RESOURCES)

#: A measurement that was too noisy, or too coarse to decide, is taken once more for this long: slow kernels have few
#: rounds in the time of a gate.
_TIMES = 5
LONGER = replace(POLICY, most_profile_seconds=_TIMES * POLICY.most_profile_seconds)


@dataclass(frozen=True)
class Gain:
    """What was found of one quantity: baseline over candidate, so above 1 the candidate is better.

    low/high: the 99 % interval of a time; equal to ``gain`` for an exact count.
    noise:    the least difference from 1 that the measurement can show; 0 for an exact count.
    before/after: milliseconds or counts, of the baseline and of the candidate.
    """

    quantity: str
    gain: float
    low: float
    high: float
    trust: str
    size: str
    timer: str = ""
    noise: float = 0.0
    before: float = 0.0
    after: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether it was counted, and not timed."""
        return self.quantity != TIME

    @property
    def shown(self) -> bool:
        """Whether it differs from 1 by more than its interval and its noise allow."""
        return self.better or self.high * (1 + self.noise) < 1

    @property
    def better(self) -> bool:
        """Whether it is shown to be an improvement."""
        return self.low > 1 + self.noise

    @property
    def times(self) -> str:
        """``1.31x``; of an exact count as many digits as show a difference: ``1.0042x``."""
        return f"{counted(self.gain) if self.exact else three(self.gain)}x"

    def __str__(self) -> str:
        """``1.31x [1.29, 1.33] time, measured-cpu``, or ``4.00x bytes_loaded, interpreted``."""
        interval = "" if self.exact else f" [{three(self.low)}, {three(self.high)}]"
        return f"{self.times}{interval} {self.quantity}, {self.trust}"


def judged(
    kernel: Kernel,
    baseline: Kernel | None,
    workload: Workload,
    platform: str,
    phase: Phase = "acceptance",
    *,
    on_event: Callable[[GateEvent], None] | None = None,
    cancel: threading.Event | None = None,
    fresh: bool = False,
    policy: Policy = POLICY,
) -> Report:
    """Gate a kernel for a workload, and profile it against a baseline if there is one.

    phase:   "admission" demands most: twice the seeds of "acceptance".
    fresh:   judge anew, and not from what is remembered.
    A time that was too noisy is measured once more, five times as long.
    Raises KlineageError on cancel; a bad kernel or a missing tool is a verdict of the report.
    """
    request = GateRequest(kernel, workload, platform, baseline=baseline, phase=phase)
    report = gate(request, on_event, cancel, fresh=fresh, policy=policy)
    if _noisy(report) and not _cancelled(cancel):
        longer = replace(policy, most_profile_seconds=_TIMES * policy.most_profile_seconds)
        report = gate(request, on_event, cancel, fresh=fresh, policy=longer)
    if _cancelled(cancel):
        raise KlineageError("cancelled; nothing was written")
    return report


def _noisy(report: Report) -> bool:
    profile = report.stage("profile")
    return profile is not None and profile.verdict is Verdict.NOISY


def _cancelled(cancel: threading.Event | None) -> bool:
    return cancel is not None and cancel.is_set()


def gains_of(report: Report) -> tuple[Gain, ...]:
    """Everything that the profile says against the baseline, whether or not it is beyond noise.

    One time where there was a clock; else every exact count that both kernels have, in the order of ``QUANTITIES``.
    Empty for a report that did not pass, or that has no ratio. A count that is zero on one side has no ratio, and is
    left out.
    """
    profile = report.stage("profile")
    if report.verdict is not Verdict.PASS or profile is None or profile.verdict is not Verdict.PASS:
        return ()
    if profile.measurement is not None:
        found = _timed(profile.measurement, str(report.trust))
        return (found,) if found else ()
    if profile.counts is None or profile.baseline_counts is None:
        return ()
    return _counted(profile.counts, profile.baseline_counts, str(report.trust))


def gain_of(report: Report) -> Gain | None:
    """What the profile shows, if it shows anything (see ``leading``)."""
    return leading(gains_of(report))


def leading(gains: Iterable[Gain]) -> Gain | None:
    """Of several gains of one gate the one to speak of; None where no difference could be claimed.

    A time when it is beyond interval and noise. Of exact counts the work (bytes, operations, instructions) that became
    less by most, else that became more by most: larger tiles move fewer bytes, and compute more that is thrown away.
    Resources (registers, shared memory, spills) speak only where no work changed.
    """
    shown = [gain for gain in gains if gain.shown]
    main = [gain for gain in shown if gain.quantity in (TIME, *WORK)]
    wanted = main or [gain for gain in shown if gain.quantity in RESOURCES]
    better = [gain for gain in wanted if gain.better]
    return max(better or wanted, key=lambda gain: abs(math.log(gain.gain)), default=None)


def effect_of(
    gain: Gain,
    platform: str,
    workload: str,
    position: Literal["in-order", "first", "last"] = "in-order",
    evidence: tuple[str, ...] = (),
) -> Effect:
    """A gain as a card declares it, to six digits. ``evidence``: keys of the card's own evidence."""
    return Effect(
        quantity=gain.quantity,
        gain=_six(gain.gain),
        low=_six(gain.low),
        high=_six(gain.high),
        trust=gain.trust,
        platform=platform,
        workload=workload,
        size=gain.size,
        timer=gain.timer,
        position=position,
        evidence=evidence,
    )


def _six(value: float) -> float:
    """Six digits, as the trailers of a step have them."""
    return float(f"{value:.6g}")


def _timed(measurement: Measurement, trust: str) -> Gain | None:
    ratio, low, high = measurement.ratio, measurement.low, measurement.high
    if not ratio or not low or not high:
        return None
    least = POLICY.gpu_floor if trust == "measured-gpu" else POLICY.floor
    return Gain(
        TIME,
        gain=1 / ratio,
        low=1 / high,
        high=1 / low,
        trust=trust,
        size=measurement.size,
        timer=measurement.timer,
        noise=max(measurement.noise or 0.0, least),
        before=measurement.baseline_ms or 0.0,
        after=measurement.candidate_ms,
    )


def _counted(own: Counts, other: Counts, trust: str) -> tuple[Gain, ...]:
    after, before = _with_bytes(own.values), _with_bytes(other.values)
    names = [name for name in QUANTITIES if after.get(name) and before.get(name)]
    ratios = {name: before[name] / after[name] for name in names}
    return tuple(
        Gain(n, g, g, g, trust_of(n, trust), own.size, before=float(before[n]), after=float(after[n]))
        for n, g in ratios.items()
    )


def trust_of(quantity: str, trust: str) -> str:
    """How one quantity of a gate is known: what is read off the code is static, whoever has run the kernel."""
    return str(Trust.STATIC) if quantity in COMPILED and not trust.startswith("measured") else trust


def _with_bytes(values: dict[str, int]) -> dict[str, int]:
    moved = [values[name] for name in ("bytes_loaded", "bytes_stored") if name in values]
    return {**values, "bytes": sum(moved)} if moved else values
