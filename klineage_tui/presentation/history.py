"""The lineage as a graph: a state a row, what each step took away or added between, rejected attempts aside.

Rows are cheap and lines are made when drawn, so that a lineage of 5,000 steps opens at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from klineage_tui.presentation.gate import verdict_role
from klineage_tui.presentation.latencies import Latency, comparable, latencies
from klineage_tui.presentation.walk import mechanism, rejection_word, step_effect, step_name
from klineage_tui.text.columns import clip, fit, pad, width
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import latency, ratio

if TYPE_CHECKING:
    from klineage.lineage import Step

_TIME_CELLS = 9


class GraphRow(NamedTuple):
    """``state``: a step that can be looked at; ``edge``: what it changed; ``rejected``: a side branch."""

    kind: Literal["state", "edge", "rejected"]
    step: Step


@dataclass(frozen=True)
class Graph:
    """The rows of one direction of a lineage, and what they are drawn from.

    bars: commit -> milliseconds on one clock; states without an entry get no bar.
    """

    rows: tuple[GraphRow, ...] = ()
    head: str = ""
    forward: bool = False  # the sealed lineage, naive first
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    bars: Mapping[str, float] = field(default_factory=dict)

    @property
    def longest(self) -> float:
        return max(self.bars.values(), default=0.0)

    def row_of(self, commit: str) -> int:
        """The row of a state or a rejected attempt; -1 when it is not in the graph."""
        rows = enumerate(self.rows)
        return next((i for i, row in rows if row.step.commit == commit and row.kind != "edge"), -1)


def graph_of(steps: Sequence[Step], walk: Sequence[Step], rejected: Sequence[Step]) -> Graph:
    """The graph of ``steps``, which are the walk or the sealed lineage, the first state at the top.

    A rejected attempt hangs on the state of the walk that it was tried on; on the sealed lineage, on the
    state that is as many steps from the expert.
    """
    forward = bool(steps) and steps[-1].decision == "sealed"
    tried: dict[str, list[Step]] = {}
    for attempt in rejected:
        tried.setdefault(attempt.parent, []).append(attempt)
    hosts = reversed(walk) if forward and len(walk) == len(steps) else () if forward else walk
    host_of = {step.commit: host.commit for step, host in zip(steps, hosts, strict=False)}
    rows: list[GraphRow] = []
    for index, step in enumerate(steps):
        if index:
            rows.append(GraphRow("edge", step))
        rows.append(GraphRow("state", step))
        rows += [GraphRow("rejected", attempt) for attempt in tried.get(host_of.get(step.commit, ""), ())]
    found = latencies(steps)
    bars, _ = comparable(found)
    return Graph(tuple(rows), steps[-1].commit if steps else "", forward, found, bars)


def graph_line(graph: Graph, index: int, cells: int, *, marked: str = "") -> Line:
    """One row of the graph in ``cells`` cells; ``marked`` is the commit to compare with."""
    row = graph.rows[index]
    if row.kind == "edge":
        return _edge(graph, row.step, cells)
    if row.kind == "rejected":
        return _rejected(row.step, cells, marked=marked)
    return _state(graph, row.step, cells, marked=marked)


def _state(graph: Graph, step: Step, cells: int, *, marked: str) -> Line:
    is_head = step.commit == graph.head
    here = "here" if is_head and not graph.forward else ""
    words = [step_name(step), _place(graph, step), here, "marked" if step.commit == marked else ""]
    time = graph.latencies.get(step.commit)
    shown = latency(time.milliseconds) if time else ""
    bar_cells = _bar_cells(cells)
    bar = _bar(graph, step.commit, bar_cells)
    room = cells - 2 - (_TIME_CELLS if graph.latencies else 0) - (bar_cells + 1 if graph.bars else 0)
    parts: list[tuple[str, str] | str] = [
        ("● ", "accent") if is_head else ("○ ", "lane"),
        (fit(" ".join(filter(None, words)), room), "strong" if is_head else ""),
    ]
    if graph.latencies:
        parts.append((pad(shown, _TIME_CELLS, "right"), ""))
    if bar:
        parts += [" ", (bar, "accent" if is_head else "lane")]
    return compose(*parts)


def _place(graph: Graph, step: Step) -> str:
    """``expert`` or ``naive`` for the two ends that have a name."""
    is_first, is_last = step.commit == graph.rows[0].step.commit, step.commit == graph.head
    if graph.forward:
        return "expert" if is_last else "naive" if is_first else ""
    return "expert" if is_first else ""


def _bar_cells(cells: int) -> int:
    return max(0, min(20, cells - 34))


def _bar(graph: Graph, commit: str, cells: int) -> str:
    if commit not in graph.bars or cells < 3 or graph.longest <= 0:
        return ""
    return "█" * max(1, round(cells * graph.bars[commit] / graph.longest))


def _edge(graph: Graph, step: Step, cells: int) -> Line:
    sign, role = ("+", "diff-added-sign") if graph.forward else ("-", "diff-removed-sign")
    effect = change_of(step)
    room = cells - 5 - width(effect) - (_bar_cells(cells) + 1 if graph.bars else 0)
    return compose(
        ("│  ", "lane"),
        (f"{sign} ", role),
        fit(mechanism(step), room - 1) + " ",
        (effect, "muted"),
    )


def change_of(step: Step) -> str:
    """What a step did to the time, in words: ``1.77x slower``, ``1.77x faster``; or the counts' word.

    A neutral step claims no number.
    """
    if step.ratio is None or step.ratio <= 0:
        return step_effect(step)
    if step.effect == "faster":
        return f"{ratio(1 / step.ratio)} faster"
    if step.effect == "slower":
        return f"{ratio(step.ratio)} slower"
    return "neutral" if step.effect == "neutral" else ratio(step.ratio)


def _rejected(attempt: Step, cells: int, *, marked: str) -> Line:
    word = rejection_word(attempt)
    note = " marked" if attempt.commit == marked else ""
    label = clip(mechanism(attempt), cells - 6 - width(word) - width(note))
    return compose(
        ("├─ ", "lane"), ("x ", "verdict-fail"), f"{label} ", (word, verdict_role("fail")), (note, "strong")
    )
