"""From rounds of times to an effect that can be believed, or to none.

Rounds come in *groups*: the processes of one measurement on a CPU, blocks of consecutive rounds on a GPU.
Rounds of a group share one placement of code and data, and one mood of the machine, so they are not
independent; groups nearly are. The effect is the median over groups of each group's median log ratio.

How far groups scatter is known from two sources: around their own median, and, for the baseline
against its own copy, around zero. Both are pooled into one robust scale, and Student's t over it gives a 99 %
interval of the median. An effect is called when it is larger than the floor and the interval lies on one side of 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOOR = 0.01  # of effects on a CPU, from calibration: see docs/gate.md
GPU_FLOOR = 0.02
LEAST = 4  # groups, unless the effect is large
CERTAIN = 8  # groups, before an effect of less than three floors is called
LARGE = math.log(1.1)
_BLOCKS = 5  # of one process, in place of processes
_LEAST_SCALE = 0.0005  # scatter that three equal numbers cannot talk away
_MEDIAN = 1.2533  # the median scatters this much more than the mean
_NORMAL = 1.4826  # median absolute deviation to standard deviation

# Quantiles of Student's t for a two-sided 99 %, by degrees of freedom.
_T99 = {
    1: 63.66, 2: 9.92, 3: 5.84, 4: 4.60, 5: 4.03, 6: 3.71, 7: 3.50, 8: 3.36, 9: 3.25, 10: 3.17,
    12: 3.05, 15: 2.95, 20: 2.85, 30: 2.75, 60: 2.66,
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Rounds measured together, in equal units; ``same`` is the baseline against its copy, round by round."""

    candidate: tuple[float, ...]
    baseline: tuple[float, ...]
    same: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def logs(self) -> np.ndarray[Any, Any]:
        return _logs(self.candidate, self.baseline)

    @property
    def same_logs(self) -> np.ndarray[Any, Any]:
        return _logs(*self.same)


def _logs(over: tuple[float, ...], under: tuple[float, ...]) -> np.ndarray[Any, Any]:
    logs: np.ndarray[Any, Any] = np.log(np.asarray(over) / np.asarray(under))
    return logs


@dataclass(frozen=True)
class Estimate:
    """A paired comparison. ``ratio`` is candidate over baseline, ``low`` and ``high`` its 99 % interval."""

    ratio: float
    low: float
    high: float
    noise: float  # half-width of the interval that the baseline has against itself
    spread: float  # p90 / p10 of the ratios of all rounds
    rounds: int
    groups: int
    effect: str  # "slower", "neutral", "faster", or "noisy": the interval is too wide for a verdict
    decided: bool  # more groups would not change the effect


def estimate(groups: list[Group], floor: float = FLOOR) -> Estimate:
    """Compare, over one group at least. With one group there is no scatter to be seen: see ``blocks``."""
    logs = [group.logs for group in groups]
    middles = np.array([np.median(part) for part in logs])
    same = np.array([np.median(group.same_logs) for group in groups if group.same[0]])
    centre = float(np.median(middles))
    half = _half(np.concatenate([middles - centre, same]), len(groups) - 1 + same.size, len(groups))
    noise = _half(same, same.size, same.size) if same.size else half
    effect, decided = _verdict(centre, half, len(groups), floor)
    p10, p90 = np.quantile(np.concatenate(logs), (0.1, 0.9))
    return Estimate(
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(min(centre + half, 700.0)),
        noise=math.expm1(min(noise, 700.0)),
        spread=math.exp(p90 - p10),
        rounds=sum(part.size for part in logs),
        groups=len(groups),
        effect=effect,
        decided=decided,
    )


def _half(deviations: np.ndarray[Any, Any], freedom: int, groups: int) -> float:
    """Half-width of the 99 % interval of a median of ``groups`` numbers that scatter like ``deviations``."""
    known = max((n for n in _T99 if n <= freedom), default=1)
    scale = max(_NORMAL * float(np.median(np.abs(deviations))), _LEAST_SCALE)
    return _T99[known] * _MEDIAN * scale / math.sqrt(groups)


def _verdict(centre: float, half: float, groups: int, floor: float) -> tuple[str, bool]:
    """The effect, and whether it stands: the interval excludes either no effect, clearly, or twice the floor."""
    size = abs(centre)
    direction = "slower" if centre > 0 else "faster"
    if size - half > LARGE and groups > 1:
        return direction, True
    if size > math.log1p(floor) and size > half:
        needed = CERTAIN if size < 3 * floor else LEAST
        return direction, groups >= needed and size - half > floor / 2
    clear = size + half < math.log1p(2 * floor)
    return ("neutral" if clear or half <= 2 * floor else "noisy"), groups >= LEAST and clear


def blocks(raw: dict[str, Any]) -> list[Group]:
    """The rounds of one process, cut into blocks of consecutive ones that stand for groups."""
    rounds = len(raw["candidate_ms"])
    count = max(1, min(_BLOCKS, rounds // 2))
    same = raw["aa_ms"]
    parts = []
    for i in range(count):
        mine = slice(rounds * i // count, rounds * (i + 1) // count)
        twins = slice(len(same[0]) * i // count, len(same[0]) * (i + 1) // count)
        parts.append(
            Group(
                tuple(raw["candidate_ms"][mine]),
                tuple(raw["baseline_ms"][mine]),
                (tuple(same[0][twins]), tuple(same[1][twins])),
            )
        )
    return parts


def group_of(raw: dict[str, Any]) -> Group:
    """All rounds of one process as one group."""
    return Group(
        tuple(raw["candidate_ms"]),
        tuple(raw["baseline_ms"]),
        (tuple(raw["aa_ms"][0]), tuple(raw["aa_ms"][1])),
    )
