"""A gate result as lines: verdict words first, the number that decided, the failing case, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from klineage_tui.keys import shown_key
from klineage_tui.text.columns import pad
from klineage_tui.text.columns import width as cells
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import latency, ratio, seconds, three
from klineage_tui.text.sanitize import sanitize, sanitize_lines

if TYPE_CHECKING:
    from klineage.gate import FailingCase, GateEvent, Measurement, Report, StageResult

STAGES = ("static", "compile", "correctness", "profile")
_NAMES = {"correctness": "correct"}
_NAME_CELLS = 9
_WORD_CELLS = 12
_BAR_CELLS = 20
_LOG_LINES = 12  # the first: a compiler's first error explains the others; of a traceback, the last

_ROLES = {
    "pass": "verdict-pass",
    "fail": "verdict-fail",
    "error": "verdict-fail",
    "timeout": "verdict-fail",
    "unsupported": "verdict-warn",
    "noisy": "verdict-warn",
    "skipped": "muted",
    "slower": "verdict-info",
    "more-work": "verdict-info",
    "mixed-work": "verdict-info",
    "neutral": "verdict-info",
    "same-work": "verdict-info",
    "faster": "verdict-pass",
    "less-work": "verdict-pass",
}

Status = Literal["none", "running", "current", "stale", "cancelled", "broken"]


@dataclass(frozen=True)
class GateView:
    """What the gate panel shows.

    status:   ``none`` never gated, ``running``, ``current`` (the report is of these bytes), ``stale``
              (of the bytes before an edit), ``cancelled``, ``broken`` (the gate could not run: ``problem``).
    stages:   finished stages of a running gate; ``running`` names the stage that works now.
    elapsed:  seconds since the gate started.
    """

    status: Status = "none"
    report: Report | None = None
    stages: tuple[StageResult, ...] = ()
    running: str = ""
    detail: str = ""
    elapsed: float = 0.0
    problem: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)

    def after(self, event: GateEvent) -> GateView:
        """The view after one progress event."""
        if event.result is not None:
            done = (*(s for s in self.stages if s.stage != event.stage), event.result)
            return replace(self, stages=done, running="", detail="")
        return replace(self, running=event.stage, detail=event.detail)


def verdict_role(word: str) -> str:
    """The role in which a verdict or an effect is drawn."""
    return _ROLES.get(word, "muted")


def verdict_word(result: StageResult) -> str:
    """``PASS``, ``FAIL``, or for a profile what it says of the candidate: ``SLOWER``, ``MORE WORK``."""
    word = result.effect if result.effect is not None and result.verdict == "pass" else result.verdict
    return str(word).replace("-", " ").upper()


def gate_heading(view: GateView) -> tuple[str, str]:
    """The panel's title at its two ends: its state, and how the result is known."""
    left = {
        "none": "GATE",
        "running": f"GATE  running {seconds(view.elapsed)}",
        "current": "GATE",
        "stale": "GATE  stale: of the bytes before the edit",
        "cancelled": "GATE  cancelled",
        "broken": "GATE  could not run",
    }[view.status]
    return left, trust(view.report) if view.report is not None and view.status in ("current", "stale") else ""


def trust(report: Report) -> str:
    """How a result is known, with its clock: ``measured-cpu (clock_monotonic)``."""
    profile = report.stage("profile")
    timer = profile.measurement.timer if profile is not None and profile.measurement is not None else ""
    return f"{report.trust}" + (f" ({sanitize(timer)})" if timer else "")


def gate_lines(view: GateView, width: int) -> list[Line]:
    """The panel's lines. The four stage rows are always there, so nothing jumps while results arrive."""
    results = {s.stage: s for s in (view.report.stages if view.report is not None else view.stages)}
    lines = [_stage_line(name, results.get(name), view) for name in STAGES]
    lines += _after(view, results, width)
    if view.status == "stale":
        lines = [compose((line.text, "muted")) for line in lines]
    return lines


def _stage_line(name: str, result: StageResult | None, view: GateView) -> Line:
    label = (pad(_NAMES.get(name, name), _NAME_CELLS), "muted")
    if result is not None:
        word = verdict_word(result)
        role = verdict_role(word.lower().replace(" ", "-"))
        return compose(label, (pad(word, _WORD_CELLS), role), _summary(result))
    if view.running == name:
        return compose(label, (pad("running", _WORD_CELLS), "accent"), (sanitize(view.detail), "muted"))
    return compose(label, ("waiting" if view.status == "running" else "·", "muted"))


def _summary(result: StageResult) -> str:
    """The number that decided, first: a row is short. The engine's whole sentence is among the details."""
    m = result.measurement
    if result.verdict == "pass" and {"worst", "rtol", "cases"} <= result.numbers.keys():
        n = result.numbers
        return f"error {n['worst']:.2g}, allowed {n['rtol']:.2g}, {n['cases']:.0f} cases"
    if m is None or result.effect is None or m.ratio is None or m.baseline_ms is None:
        return sanitize(result.summary)
    before, after = latency(m.baseline_ms), latency(m.candidate_ms)
    number, unit = before.split()
    return f"{ratio(m.ratio, m.low, m.high)}  {number if after.endswith(' ' + unit) else before} → {after}"


def _after(view: GateView, results: Mapping[str, StageResult], width: int) -> list[Line]:
    lines: list[Line] = [Line("")]
    if view.status == "broken":
        lines += _wrapped(view.problem, width, "verdict-fail")
    deciding = next((s for s in results.values() if _decides(s)), None)
    if deciding is not None:
        lines += [] if _fits(deciding, width) else _wrapped(deciding.summary, width)
        lines += _case_lines(deciding.case)
        lines += _log_lines(deciding.log)
        if view.report is not None and view.report.reproduce and deciding.verdict != "unsupported":
            lines += _wrapped(f"reproduce: {view.report.reproduce}", width, "muted")
    profile = results.get("profile")
    if deciding is None and profile is not None:
        lines += _profile_lines(profile, width)
    hint = _hint(view, deciding)
    if hint:
        apart = deciding is not None and lines[-1].text  # after times it is the eighth row, the last at 80x24
        lines += [*([Line("")] if apart else []), *_wrapped(hint, width, "muted")]
    if view.status in ("current", "stale"):
        shown = (deciding or profile, profile)
        lines += _details([s for s in results.values() if s not in shown], width)
    return lines


def _decides(result: StageResult) -> bool:
    """Whether the stage keeps the kernel from passing; see ``Report.decisive``."""
    return result.verdict == "fail" if result.stage == "profile" else result.verdict != "pass"


def _details(results: list[StageResult], width: int) -> list[Line]:
    """The sentences of the other stages, where their rows do not hold them whole."""
    lines: list[Line] = []
    for result in results:
        if not _fits(result, width):
            name = _NAMES.get(result.stage, result.stage)
            lines += _wrapped(f"{name}: {result.summary}", width, "muted")
    return [Line(""), *lines] if lines else []


def _profile_lines(profile: StageResult, width: int) -> list[Line]:
    m = profile.measurement
    if m is None or m.baseline_ms is None:
        return [] if _fits(profile, width) else _wrapped(profile.summary, width)
    return [_bar_line(m.candidate_ms, m.baseline_ms), compose((_conditions(m), "muted"))]


def _bar_line(candidate_ms: float, baseline_ms: float) -> Line:
    """The two latencies as bars, on one scale."""
    longest = max(candidate_ms, baseline_ms)
    this, before = (
        "━" * (max(1, round(_BAR_CELLS * ms / longest)) if longest > 0 else 0)
        for ms in (candidate_ms, baseline_ms)
    )
    return compose(("this ", "muted"), (this, "accent"), ("   before ", "muted"), (before, "lane"))


def _conditions(m: Measurement) -> str:
    """Under what the number was taken: size, rounds, noise floor, distance from the floor."""
    parts = [sanitize(m.size), f"{m.rounds} rounds"]
    if m.noise is not None:
        parts.append(f"noise ±{three(m.noise * 100)} %")
    if m.floor_ms is not None and m.floor_ms > 0:
        parts.append(f"{three(100 * m.floor_ms / m.candidate_ms)} % of the floor's speed")
    return ", ".join(parts)


def _case_lines(case: FailingCase | None) -> list[Line]:
    if case is None:
        return []
    dims = " ".join(f"{sanitize(name)}={value}" for name, value in case.dims.items())
    told = "  ".join(filter(None, (sanitize(case.size), dims, f"seed {case.seed}")))
    place = compose(("smallest failing case  ", "muted"), told)
    if not case.output:  # it failed as a whole: it hung, or crashed
        return [place]
    index = ", ".join(map(str, case.index))
    return [
        place,
        compose(
            ("  ", ""),
            f"{sanitize(case.output)}[{index}]",
            ("  got ", "muted"),
            (_value(case.got), "verdict-fail"),
            ("  expected ", "muted"),
            _value(case.expected),
        ),
    ]


def _value(value: float | str) -> str:
    return sanitize(value) if isinstance(value, str) else f"{value:.6g}"


def _log_lines(log: str) -> list[Line]:
    lines = [line for line in sanitize_lines(log) if line.strip()]
    left = [f"… {len(lines) - _LOG_LINES} more lines"] if len(lines) > _LOG_LINES else []
    is_traceback = bool(lines) and lines[0].startswith("Traceback")
    shown = [*left, *lines[-_LOG_LINES:]] if is_traceback else [*lines[:_LOG_LINES], *left]
    return [compose((line, "muted")) for line in shown]


def _fits(result: StageResult, width: int) -> bool:
    """Whether the stage's row holds its whole summary."""
    text = sanitize(result.summary)
    return _summary(result) == text and cells(text) <= width - _NAME_CELLS - _WORD_CELLS


def _wrapped(text: str, width: int, role: str = "") -> list[Line]:
    pieces = textwrap.wrap(sanitize(" ".join(text.split())), max(20, width), break_on_hyphens=False) or [""]
    return [compose((piece, role)) for piece in pieces]


def _hint(view: GateView, deciding: StageResult | None) -> str:
    key = {name: shown_key(keys) for name, keys in view.keys.items()}
    if not key:
        return ""
    if view.status == "running":
        return f"{key['cancel']} stops it"
    if view.status in ("none", "cancelled", "stale"):
        return f"{key['gate']} gates this proposal"
    if view.status == "broken":
        return f"{key['gate']} tries again"
    if deciding is None:
        return f"{key['accept']} accepts it, {key['reject']} rejects it, {key['edit']} edits it"
    if deciding.verdict in ("error", "unsupported"):
        return "This says nothing of the kernel; klineage doctor tells what this machine can gate."
    return f"{key['reject']} keeps it as a rejected attempt, {key['edit']} edits it"
