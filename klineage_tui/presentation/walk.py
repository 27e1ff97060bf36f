"""A walk as lines: the column at the left, the strip above, and the heading of the place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Literal

from klineage_tui.presentation.gate import verdict_role
from klineage_tui.presentation.latencies import latency_of
from klineage_tui.text.columns import clip, pad, width
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import latency, ratio
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.lineage import Step
    from klineage.walk import WalkState

Kind = Literal["state", "removal", "rejected"]

_TIMED = ("slower", "faster")  # effects that a ratio belongs to
_BEYOND_SENSE = 1e6  # a product of so many ratios says nothing any more


def step_name(step: Step) -> str:
    """As on the command line: ``0`` is the expert, counting backward; ``K0`` the naive form, forward."""
    return f"K{step.number}" if step.decision == "sealed" else f"{step.number}"


def mechanism(step: Step) -> str:
    """What a step took away, or added on a sealed lineage, in a word or two."""
    names = list(dict.fromkeys(feature.name for feature in step.adds or step.removes))
    return sanitize(", ".join(names) or step.action or step.subject)


class WalkColumn:
    """The lineage from expert to here, each step with what it removed and what was rejected on it.

    A document for a LineView: its lines are made when they are drawn, so that a long walk opens at once.
    """

    gutter_width = 0

    def __init__(self, state: WalkState, cells: int) -> None:
        self.width = cells
        self._head = state.head.commit
        self._steps = state.steps
        self._clock = next(self._clocks(), "")  # of the latest timed state; others are not comparable
        tried: dict[str, list[Step]] = {}
        for attempt in state.rejected:
            tried.setdefault(attempt.parent, []).append(attempt)
        self._rows: list[tuple[Kind, Step, int]] = []
        self.here = 0  # the row of the current state
        for index, step in enumerate(state.steps):
            if index:
                self._rows.append(("removal", step, index))
            self.here = len(self._rows)
            self._rows.append(("state", step, index))
            self._rows += [("rejected", attempt, index) for attempt in tried.get(step.commit, ())]

    def _clocks(self) -> Iterator[str]:
        for index in range(len(self._steps) - 1, -1, -1):
            if found := latency_of(self._steps, index):
                yield found.clock

    def __len__(self) -> int:
        return len(self._rows)

    def step(self, index: int) -> Step | None:
        """The state or rejected attempt of a row; None between two states."""
        kind, step, _ = self._rows[index]
        return None if kind == "removal" else step

    def selectable(self, index: int) -> bool:
        return self._rows[index][0] != "removal"

    def line(self, index: int) -> Line:
        kind, step, number = self._rows[index]
        if kind == "removal":
            return _removal_line(step, self.width)
        if kind == "rejected":
            return _rejected_line(step, self.width)
        found = latency_of(self._steps, number)
        time = latency(found.milliseconds) if found is not None and found.clock == self._clock else ""
        return _state_line(step, time, self.width, is_head=step.commit == self._head)


def _removal_line(step: Step, cells: int) -> Line:
    effect = step_effect(step)
    room = cells - 5 - width(effect)
    return compose(("│  ", "lane"), "- ", pad(clip(mechanism(step), room - 1), room), (effect, "muted"))


def _state_line(step: Step, time: str, cells: int, *, is_head: bool) -> Line:
    name = " ".join(
        part for part in (step_name(step), "" if step.number else "expert", "here" if is_head else "") if part
    )
    mark = ("● ", "accent") if is_head else ("○ ", "lane")
    room = cells - 2 - width(time)
    role = "strong" if is_head else ""
    return compose(mark, (pad(clip(name, room - 1), room), role), (time, "muted"))


def _rejected_line(attempt: Step, cells: int) -> Line:
    word = rejection_word(attempt)
    label = clip(mechanism(attempt), cells - 6 - width(word))
    return compose(
        ("├─ ", "lane"), ("x ", "verdict-fail"), (label + " ", "muted"), (word, verdict_role("fail"))
    )


def rejection_word(attempt: Step) -> str:
    """``FAIL`` and its kin when the gate decided; ``NO`` when a person did."""
    verdict = attempt.gate.partition(";")[0].strip()
    return verdict.upper() if verdict in ("fail", "error", "timeout", "unsupported") else "NO"


def step_effect(step: Step) -> str:
    """The ratio to the state before where there is an effect, else the word: neutral claims no number.

    A profile without an effect (too noisy, say) is ``no number``.
    """
    if step.profile and not step.effect and step.decision != "rejected":
        return "no number"
    if step.ratio is not None and step.effect in _TIMED:
        return ratio(step.ratio)
    return sanitize(step.effect.replace("-", " ")) if step.effect else ""


def strip_line(state: WalkState, cells: int) -> Line:
    """The lineage in one row, for terminals without room for the column: what does not fit is its start."""
    tail = [(f"   {len(state.rejected)} rejected", "muted")] if state.rejected else []
    used = sum(width(text) for text, _ in tail)
    parts: list[tuple[str, str]] = []
    for index in range(len(state.steps) - 1, -1, -1):
        step = state.steps[index]
        name = step_name(step) + ("" if step.number else " expert")
        is_head = step.commit == state.head.commit
        piece = [(f"● {name} here" if is_head else f"○ {name}", "accent" if is_head else "")]
        if index:
            piece.insert(0, (f" ─{mechanism(step)}→ ", "muted"))
        used += sum(width(text) for text, _ in piece)
        if parts and used > cells - 2:
            parts.insert(0, ("… ", "muted"))
            break
        parts[:0] = piece
    return compose(*parts, *tail)


def heading(state: WalkState) -> tuple[str, str]:
    """The first row of the app: what is walked, and how far."""
    steps = len(state.steps) - 1
    left = sanitize(state.meta.title)
    taken = f"{steps} step{'' if steps == 1 else 's'}" if steps else "at the expert"
    parts = [taken, total_effect(state.steps), "sealed" if state.sealed else ""]
    return left, "  ".join(part for part in parts if part)


def total_effect(steps: Sequence[Step]) -> str:
    """The effects multiplied, when every step was timed: about how much slower than the expert."""
    timed = [step for step in steps[1:] if step.ratio is not None]
    effects = [step.ratio for step in timed if step.ratio is not None and step.effect in _TIMED]
    if not effects or len(timed) < len(steps) - 1:
        return ""
    total = prod(effects)
    return f"≈{ratio(total)} the expert's time" if total < _BEYOND_SENSE else ""
