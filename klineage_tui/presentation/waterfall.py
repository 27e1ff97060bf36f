"""The latency of each state as bars on one axis, with what each step gained or cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage_tui.presentation.history import change_of
from klineage_tui.presentation.latencies import comparable, latencies
from klineage_tui.presentation.walk import mechanism, step_name
from klineage_tui.text.columns import fit, pad
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import latency, ratio

if TYPE_CHECKING:
    from klineage.lineage import Step

_NAME, _LABEL, _TIME, _CHANGE = 5, 20, 10, 15
_LOGARITHMIC_FROM = 20  # slowest over fastest: beyond, linear bars would all be one cell


def waterfall_lines(steps: Sequence[Step], cells: int) -> list[Line]:
    """One row a state, bars only where times were measured with one clock.

    The solid part of a bar is the state's latency; the light part is what the step took off the state
    before it. Without any time the rows still say what the exact counts said.
    """
    found = latencies(steps)
    times, clock = comparable(found)
    slowest, fastest = max(times.values(), default=0.0), min(times.values(), default=0.0)
    logarithmic = fastest > 0 and slowest / fastest > _LOGARITHMIC_FROM
    room = max(0, cells - _NAME - _LABEL - _TIME - _CHANGE - 2)
    lines = _heading(clock, slowest, fastest, logarithmic=logarithmic)
    before: float | None = None
    for step in steps:
        time = times.get(step.commit)
        other = found.get(step.commit)
        shown = latency(other.milliseconds) if other else ""
        bar = _length(time, slowest, fastest, room, logarithmic=logarithmic)
        gone = 0  # a neutral step claims no gain
        if time is not None and step.effect == "faster":
            gone = max(0, _length(before, slowest, fastest, room, logarithmic=logarithmic) - bar)
        lines.append(
            compose(
                (fit(step_name(step), _NAME), "strong"),
                fit(_what(step, steps), _LABEL),
                pad(shown, _TIME, "right"),
                (pad(change_of(step), _CHANGE, "right"), "muted"),
                "  ",
                ("█" * bar, "accent"),
                ("░" * gone, "lane"),
            )
        )
        before = time if time is not None else before
    return lines


def _heading(clock: str, slowest: float, fastest: float, *, logarithmic: bool) -> list[Line]:
    if not clock:
        return [
            compose(("No state of this lineage was timed.", "strong")),
            compose(("The words are from exact counts, not time.", "muted")),
            Line(""),
        ]
    scale = "logarithmic" if logarithmic else "linear"
    spread = ratio(slowest / fastest) if fastest > 0 else ""
    return [
        compose(("Latency", "strong"), (f"  {clock}, {scale} bars, slowest over fastest {spread}", "muted")),
        Line(""),
    ]


def _what(step: Step, steps: Sequence[Step]) -> str:
    if step is steps[0]:
        return "naive" if steps[-1].decision == "sealed" else "expert"
    return f"{'+' if step.direction == 'forward' else '-'} {mechanism(step)}"


def _length(time: float | None, slowest: float, fastest: float, room: int, *, logarithmic: bool) -> int:
    if time is None or time <= 0 or slowest <= 0 or room <= 0:
        return 0
    if not logarithmic:
        return max(1, round(room * time / slowest))
    # One tenth of the axis for the fastest, so that it is still a bar.
    share = math.log(time / fastest) / math.log(slowest / fastest)
    return max(1, round(room * (0.1 + 0.9 * share)))
