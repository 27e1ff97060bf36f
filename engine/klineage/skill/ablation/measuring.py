"""What each optimization of a lineage is worth: first, alone on the naive form; in its order; last, alone out of the expert.

An optimization that pays in order and not first stands on another: the walk down its prefixes finds the earliest state
that it still pays on, and so the step that it needs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from klineage.errors import KlineageError
from klineage.gate import GateEvent, Report, Verdict
from klineage.kernel import Feature, Kernel
from klineage.lineage import Workspace
from klineage.skill.card import ContractFeature
from klineage.skill.transitions import Transition, transitions
from klineage.skill.trial import Gain, gain_of, gains_of, judged
from klineage.surface.tree import function_locus
from klineage.walk import trust

Position = Literal["first", "in-order", "last"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Worth:
    """One cell: an optimization added to a state, or taken out of the expert.

    state:    what it was added to, or taken out of: ``K0``. Empty where nobody has said what it is worth there.
    gain:     what the gate showed; None where nothing is beyond noise, or nothing was gated.
    measured: everything that the gate found, also within noise.
    problem:  why there is no number: it does not apply there, or the kernel did not pass.
    report:   of the gate; None where nothing was gated.
    """

    position: Position
    state: str
    gain: Gain | None = None
    measured: tuple[Gain, ...] = ()
    problem: str = ""
    report: Report | None = field(default=None, repr=False)

    @property
    def pays(self) -> bool:
        """Whether it is shown to be better with than without."""
        return self.gain is not None and self.gain.better

    @property
    def applies(self) -> bool:
        """Whether the kernel could be made and passed its gate."""
        return not self.problem

    @property
    def undecided(self) -> bool:
        """Whether it was gated and nobody knows: too noisy for a number, or nothing here could judge it."""
        judged_bad = self.report is not None and self.report.verdict in (Verdict.FAIL, Verdict.TIMEOUT)
        return bool(self.problem) and self.report is not None and not judged_bad


@dataclass(frozen=True)
class Row:
    """One optimization of the lineage with its worth in every position.

    prefixes: what it is worth on the states between the naive form and its own, richest first, as far as was looked.
    needs:    the optimizations without which it does not apply or does not pay, as far as was found.
    """

    number: int
    action: str
    rule: str
    commit: str
    adds: tuple[Feature, ...]
    first: Worth
    in_order: Worth
    last: Worth
    prefixes: tuple[Worth, ...] = ()
    needs: tuple[str, ...] = ()
    why: str = ""

    @property
    def name(self) -> str:
        """``K3 simd``."""
        return f"K{self.number} {self.action}"


@dataclass(frozen=True)
class Ablation:
    """The whole of a lineage, its rows in order."""

    lineage: str
    workload: str
    platform: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Offer:
    """What an ablation suggests for the card of an optimization: it is a person who takes it.

    requires: mechanisms that it was shown not to apply or not to pay without.
    prior_actions: the same as a scope, by name.
    """

    number: int
    action: str
    requires: tuple[ContractFeature, ...]
    prior_actions: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class _Bench:
    """What all gates of one ablation share."""

    steps: tuple[Transition, ...]
    platform: str
    on_progress: Say | None
    on_event: Callable[[GateEvent], None] | None
    cancel: threading.Event | None

    def say(self, what: str) -> None:
        if self.on_progress is not None:
            self.on_progress(what)

    def worth(self, position: Position, state: str, kernel: Kernel, baseline: Kernel) -> Worth:
        """The gain of ``kernel`` over ``baseline``.

        The baseline passes its own gate first: what an error may be is judged beside its error at every size.
        """
        alone = self._judged(baseline, None)
        if alone.verdict is not Verdict.PASS:
            return Worth(position, state, problem=_failed(alone), report=alone)
        report = self._judged(kernel, baseline)
        if report.verdict is not Verdict.PASS:
            return Worth(position, state, problem=_failed(report), report=report)
        gains = gains_of(report)
        if not gains:
            profile = report.stage("profile")
            why = profile.summary if profile is not None else "it was not profiled"
            return Worth(position, state, problem=why, report=report)
        return Worth(position, state, gain_of(report), gains, report=report)

    def _judged(self, kernel: Kernel, baseline: Kernel | None) -> Report:
        workload = self.steps[0].workload
        return judged(kernel, baseline, workload, self.platform, on_event=self.on_event, cancel=self.cancel)


def ablate(
    workspace: Workspace,
    lineage_id: str,
    *,
    on_progress: Say | None = None,
    on_event: Callable[[GateEvent], None] | None = None,
    on_row: Callable[[Row], None] | None = None,
    cancel: threading.Event | None = None,
) -> Ablation:
    """Gate every optimization of a sealed lineage alone, first and last, and look for what it stands on.

    on_row: hears each row when it is known.
    Raises KlineageError for a lineage that is not sealed, or on cancel; Untrusted when its code may not run here.
    """
    trust.require(workspace, lineage_id)
    steps = transitions(workspace, lineage_id)
    if not steps:
        raise KlineageError(f"{lineage_id} has no optimization: nothing can be taken out of it")
    bench = _Bench(steps, steps[-1].platform, on_progress, on_event, cancel)
    rows: list[Row] = []
    for at in range(len(steps)):
        rows.append(_row(bench, at))
        if on_row is not None:
            on_row(rows[-1])
    return Ablation(lineage_id, steps[0].workload.name, bench.platform, tuple(rows))


def _row(bench: _Bench, at: int) -> Row:
    step = bench.steps[at].step
    what = f"K{step.number} {step.action}, {at + 1} of {len(bench.steps)}"
    bench.say(f"{what}: in order")
    in_order = _in_order(bench, at)
    bench.say(f"{what}: first, on the naive form")
    first = replace(in_order, position="first") if at == 0 else _added(bench, at, 0, "first")
    bench.say(f"{what}: last, out of the expert")
    last = replace(in_order, position="last") if at == len(bench.steps) - 1 else _removed(bench, at)
    prefixes, needs, why = _stands_on(bench, at, first, in_order)
    transition = bench.steps[at]
    return Row(
        step.number, step.action, transition.rule, transition.commit, transition.added,
        first, in_order, last, prefixes, needs, why,
    )  # fmt: skip


def _in_order(bench: _Bench, at: int) -> Worth:
    """What the sealed step itself is worth: measured now, beside the others."""
    transition = bench.steps[at]
    return bench.worth("in-order", f"K{at}", transition.after, transition.before)


def _added(bench: _Bench, at: int, number: int, position: Position) -> Worth:
    """An optimization derived on the state ``number``, by its rule, without looking at any difference."""
    from klineage.proposer import rules

    transition, base = bench.steps[at], bench.steps[number].before
    step = transition.step
    state = f"K{number}"
    if not transition.rule:
        return Worth(position, state, problem="no rule made this step, so nobody can add it elsewhere")
    try:
        source = rules.derive(f"rules:{transition.rule}", base, step.locus, dict(step.settings))
    except rules.NotApplicable as error:
        return Worth(position, state, problem=f"does not apply to {state}: {error.reason}")
    pins = transition.before.config != transition.after.config
    kernel = replace(base, source=source, config=transition.after.config if pins else base.config)
    if kernel == base:
        return Worth(position, state, problem=f"changes nothing on {state}")
    return bench.worth(position, state, kernel, base)


def _removed(bench: _Bench, at: int) -> Worth:
    """The expert against itself without one optimization."""
    from klineage.proposer import rules

    transition, expert = bench.steps[at], bench.steps[-1].after
    state = f"K{len(bench.steps)}"
    try:
        without = rules.taken_out(transition.rule, expert, transition.added)
    except rules.NotApplicable as error:
        return Worth("last", state, problem=f"cannot be taken out of the expert alone: {error.reason}")
    return bench.worth("last", state, expert, without)


def _failed(report: Report) -> str:
    stage = report.decisive
    return f"{stage.stage} {report.verdict}: {report.why}" if stage is not None else report.why


def _stands_on(
    bench: _Bench, at: int, first: Worth, in_order: Worth
) -> tuple[tuple[Worth, ...], tuple[str, ...], str]:
    """(worth on prefixes, names of the steps that it needs, one sentence).

    Noise shows nothing: where it is all that keeps one from applying or paying, the optimization stands on nothing. So
    it is where intervals do not tell what it is worth there from what it is worth in order.
    """
    if at == 0 or first.undecided or in_order.undecided:
        return (), (), ""
    if not first.applies and not in_order.pays:
        below, at_least = _deepest(bench, at, lambda worth: worth.applies)
    elif in_order.pays and not first.pays and not _as_good(first, in_order):
        below, at_least = _deepest(bench, at, lambda worth: worth.pays)
    else:
        return (), (), ""
    enabling = bench.steps[at_least - 1].step if at_least else None
    if enabling is None:
        return below, (), ""
    name = f"K{enabling.number} {enabling.action}"
    verb = "pays" if in_order.pays else "applies"
    failing = below[-1] if below and below[-1].state == f"K{at_least - 1}" else first
    if failing.undecided or _as_good(failing, in_order):
        return below, (), ""
    how = failing.problem or "it is within noise or worse there"
    return below, (name,), f"{verb} only after {name}: on {failing.state} {how}"


def _as_good(there: Worth, in_order: Worth) -> bool:
    """Whether an optimization may be worth as much there as in order, for all that was measured."""
    gain = in_order.gain
    return gain is not None and any(
        one.quantity == gain.quantity and one.high >= gain.low for one in there.measured
    )


def _deepest(bench: _Bench, at: int, holds: Callable[[Worth], bool]) -> tuple[tuple[Worth, ...], int]:
    """Walk down from the step's own state while ``holds``: (what was found, the number of the last state where it did)."""
    found: list[Worth] = []
    number = at
    while number > 1:
        bench.say(f"K{at + 1} {bench.steps[at].step.action}: on K{number - 1}")
        worth = _added(bench, at, number - 1, "in-order")
        found.append(worth)
        if not holds(worth):
            break
        number -= 1
    return tuple(found), number


def offers(ablation: Ablation) -> tuple[Offer, ...]:
    """For every optimization that stands on another: what its card could require, and the scope of prior actions."""
    by_name = {row.name: row for row in ablation.rows}
    found = []
    for row in ablation.rows:
        needed = [feature for name in row.needs for feature in by_name[name].adds]
        if needed:
            own = {function_locus(feature.locus) for feature in row.adds}
            requires = tuple(
                dict.fromkeys(
                    ContractFeature(f.name, "function" if function_locus(f.locus) in own else "kernel")
                    for f in needed
                )
            )
            names = tuple(dict.fromkeys(f.name for f in needed))
            found.append(Offer(row.number, row.action, requires, names, row.why))
    return tuple(found)


def matrix(ablation: Ablation) -> tuple[tuple[str, ...], ...]:
    """Rows of text: optimization, first, in order, last, and what it stands on; a header first."""
    head = ("optimization", "first", "in order", "last", "stands on")
    rows = [
        (row.name, told(row.first), told(row.in_order), told(row.last), ", ".join(row.needs))
        for row in ablation.rows
    ]
    return (head, *rows)


def told(worth: Worth) -> str:
    """A cell in few words: ``4.84x ±7%`` (half of its 99 % interval), ``1.00x, within noise``, or why there is none."""
    from klineage.numbers import three

    if worth.gain is not None:
        gain = worth.gain
        half = f" ±{(gain.high - gain.low) / 2 / gain.gain:.1%}" if not gain.exact else f" {gain.quantity}"
        return f"{three(gain.gain)}x{half}"
    if worth.measured:
        exact = worth.measured[0].exact
        return "the same work" if exact else f"{three(worth.measured[0].gain)}x, within noise"
    if not worth.state:
        return "not said"
    if worth.report is None:
        return "does not apply"
    if not worth.undecided:
        return "did not pass"
    profile = worth.report.stage("profile")
    noisy = worth.report.verdict is Verdict.NOISY or (
        profile is not None and profile.verdict is Verdict.NOISY
    )
    return "too noisy" if noisy else "not judged"


def trusts(rows: Sequence[Row]) -> tuple[str, ...]:
    """The trust tags of the numbers of a matrix, and the timers."""
    worths = [worth for row in rows for worth in (row.first, row.in_order, row.last) if worth.measured]
    gains = [worth.gain or worth.measured[0] for worth in worths]
    return tuple(dict.fromkeys(f"{g.trust}{f', {g.timer}' if g.timer else ''}" for g in gains))
