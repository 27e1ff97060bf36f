"""What a gate says: typed verdicts per stage, with the number that decided and how it is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Word(str, Enum):  # noqa: UP042 - StrEnum is of Python 3.11, and a batch runs under 3.9
    """A word of a report: it is its own text."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, specification: str) -> str:
        return format(str(self.value), specification)


class Verdict(Word):
    """The outcome of one stage, or of a whole gate."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"  # the gate itself could not do its work (missing compiler, broken workload)
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"  # this machine or backend cannot judge it; says nothing of the kernel
    NOISY = "noisy"  # measured, but the measurement does not support a number
    SKIPPED = "skipped"


class Trust(Word):
    """How a result was obtained, weakest first. Never upgraded silently."""

    STATIC = "static"
    INTERPRETED = "interpreted"
    MEASURED_CPU = "measured-cpu"
    MEASURED_GPU = "measured-gpu"


class Effect(Word):
    """What the profile stage says about the candidate against its baseline.

    The first three are times; the rest are exact counts (bytes, operations, instructions,
    resources) from an interpreter or a compiler and never speak of time.
    """

    SLOWER = "slower"
    NEUTRAL = "neutral"
    FASTER = "faster"
    MORE_WORK = "more-work"
    SAME_WORK = "same-work"
    LESS_WORK = "less-work"
    MIXED_WORK = "mixed-work"


STAGES = ("static", "compile", "correctness", "profile")


@dataclass(frozen=True)
class FailingCase:
    """The smallest input on which a kernel went wrong."""

    size: str  # name of the workload size, e.g. "ragged"
    dims: dict[str, int]
    seed: int
    output: str  # which output buffer
    index: tuple[int, ...]
    got: float | str  # "nan", "inf", "poison" where no number fits
    expected: float | str
    recipe: str = "normal"  # the distribution of the inputs


@dataclass(frozen=True)
class Measurement:
    """One latency and, against a baseline, its ratio. Times are in milliseconds.

    ``timer`` names the clock; numbers of different clocks are never compared. Without a baseline
    (a kernel measured alone) every field about a ratio is None: a kernel has none against itself.
    """

    candidate_ms: float
    timer: str  # e.g. "clock_monotonic", "cuda-event", "cupti"
    rounds: int
    size: str
    baseline_ms: float | None = None
    ratio: float | None = None  # candidate / baseline: above 1 the candidate is slower
    low: float | None = None  # 99 % interval of the ratio
    high: float | None = None
    noise: float | None = None  # half-width of the A/A ratio in the same session
    floor_ms: float | None = None


@dataclass(frozen=True)
class Counts:
    """Exact, deterministic quantities of one kernel at one size, e.g. ``{"bytes_loaded": 131072}``."""

    size: str
    values: dict[str, int]


@dataclass(frozen=True)
class StageResult:
    """The typed record of one stage."""

    stage: str
    verdict: Verdict
    reason: str  # machine-readable code, e.g. "ok", "mismatch", "out_of_bounds", "shared_memory"
    summary: str  # one sentence for a person, with the number that decided
    seconds: float = 0.0
    numbers: dict[str, float] = field(default_factory=dict)
    case: FailingCase | None = None
    log: str = ""
    effect: Effect | None = None  # profile only
    measurement: Measurement | None = None  # profile only
    counts: Counts | None = None
    baseline_counts: Counts | None = None


@dataclass(frozen=True)
class Report:
    """Everything a gate found out about one kernel, for one workload, on one platform, under one policy."""

    kernel: str
    workload: str
    platform: str
    policy: str
    trust: Trust
    stages: tuple[StageResult, ...]
    baseline: str | None = None  # hash of the kernel it was profiled against
    seeds: tuple[int, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    layers: dict[str, bool] = field(default_factory=dict)  # safety layers that held
    finished: str = ""  # UTC, ISO 8601
    phase: str = "screening"  # how much was demanded: "screening", "acceptance", "admission"
    fixed_seed: bool = False  # the seeds were given: a replay, no evidence
    oracle: str = ""  # "strong" or "weak": whether the workload's comparison refuses wrong outputs
    oracle_reasons: tuple[str, ...] = ()
    evidence: dict[str, str] = field(default_factory=dict)  # how it is known that the kernel made the output
    reproduce: str = ""  # one command that gates the same bytes with the same seeds, or with the failing one

    def stage(self, name: str) -> StageResult | None:
        """The record of the named stage, or None when the gate stopped before it."""
        return next((s for s in self.stages if s.stage == name), None)

    @property
    def decisive(self) -> StageResult | None:
        """The stage that kept the kernel from passing, or None.

        A noisy, skipped or timed-out profile is no failure of a correct kernel; a profile that *fails* is: its time
        was impossible, or its timed runs computed something else.
        """
        for result in self.stages:
            passing = (
                (Verdict.PASS,)
                if result.stage != "profile"
                else tuple(v for v in Verdict if v is not Verdict.FAIL)
            )
            if result.verdict not in passing:
                return result
        return None

    @property
    def verdict(self) -> Verdict:
        """The verdict that decides acceptance: that of the decisive stage, else a pass."""
        if self.decisive is not None:
            return self.decisive.verdict
        complete = self.stage("correctness") is not None
        return Verdict.PASS if complete else Verdict.SKIPPED

    @property
    def effect(self) -> Effect | None:
        profile = self.stage("profile")
        return profile.effect if profile else None

    @property
    def why(self) -> str:
        """One sentence: the summary of the stage that decided."""
        if self.decisive is not None:
            return self.decisive.summary
        return self.stages[-1].summary if self.stages else "nothing was gated"

    @property
    def log(self) -> str:
        """What every stage said and printed, in order, each under its name."""
        parts = []
        for result in self.stages:
            parts.append(
                f"[{result.stage}] {result.verdict} {result.reason}: {result.summary} ({result.seconds:.2f} s)"
            )
            parts += [f"    {line}" for line in result.log.splitlines()]
        return "\n".join(parts)
