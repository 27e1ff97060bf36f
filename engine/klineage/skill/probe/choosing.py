"""Choose the violation of a precondition: the nearest one that makes its check fail, and no other check of the card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.platform import CPU_LEVELS
from klineage.skill.card import Card, Precondition, Probe
from klineage.skill.checks.checking import State as Answered
from klineage.skill.checks.checking import check, problem, used_names
from klineage.skill.checks.facts import Facts
from klineage.skill.probe.renumbering import Untestable, told_numbers
from klineage.skill.probe.state import State
from klineage.skill.probe.violations import SETTINGS, spoken, violated
from klineage.skill.staleness import probe_is_stale

CHANGES = tuple(SETTINGS)
#: Tried first what a check may name itself, last what changes the optimization.
_ORDER = ("stride", "misalign", "size", "dtype", "platform", "feature", "setting")
_STEPS = (1, 2, 3, 4, 8, 16)  # how far an extent is first moved, before it is halved and doubled
_ELEMENTS = ("fp32", "fp16", "bf16", "fp64", "int32", "int8")
_GPUS = (
    "nvidia-sm120",
    "nvidia-sm100",
    "nvidia-sm90",
    "nvidia-sm89",
    "nvidia-sm86",
    "nvidia-sm80",
    "nvidia-sm75",
)
_SHAPED = (
    "shape",
    "stride",
    "row_alignment",
    "bytes",
    "row_bytes",
    "least_extent",
)  # functions that follow sizes


class StillHolds(Untestable):
    """The change does not violate the precondition: its check holds under it."""


class Violated(Untestable):
    """The state does not meet the precondition to begin with; the message is why its check fails there."""


@dataclass(frozen=True)
class Violation:
    """A change, the state that it makes, the other preconditions that it breaks, and its words where they say more."""

    change: str
    settings: Mapping[str, str]
    state: State
    also: tuple[str, ...] = ()
    told: str = ""

    @property
    def words(self) -> str:
        """``k = 511``, and what else it breaks."""
        said = self.told or spoken(self.change, self.settings)
        return f"{said} (which breaks {' and '.join(self.also)} too)" if self.also else said


def violation(card: Card, precondition: Precondition, state: State) -> Violation:
    """What violates a precondition on a state.

    A probe with settings is taken as it is, when it makes the check fail if there is one; one that an edit of the
    precondition has overtaken since it ran is chosen anew. A probe with a kind alone, or none, is filled in from the check.
    Raises Untestable, with the sentence to show.
    """
    probe = precondition.probe
    if probe is not None and not _open(probe):
        try:
            return _given(card, precondition, probe, state)
        except StillHolds:
            if not precondition.check or not probe_is_stale(precondition):
                raise
            return _nearest(card, precondition, state, (probe.change, *_ORDER), None)
    if not precondition.check:
        raise Untestable(
            "it has neither a probe nor a check that one could be chosen by; write a check, or say what to change"
        )
    if fault := problem(precondition.check):
        raise Untestable(fault)
    return _nearest(card, precondition, state, (probe.change,) if probe else _ORDER, probe)


def _open(probe: Probe) -> bool:
    """Whether the probe leaves the choice of a value open: what it names then narrows the choice."""
    return not all(probe.settings.get(name) for name in SETTINGS.get(probe.change, ()))


def _given(card: Card, precondition: Precondition, probe: Probe, state: State) -> Violation:
    before = _answers(card, state)
    if before.get(precondition.key) == "fails":
        raise Violated(check(precondition.check, _facts(state)).why)
    broken = violated(state, probe.change, probe.settings)
    now = _answers(card, broken)
    own = now.get(precondition.key)
    if own == "holds" and probe.change != "setting":
        raise StillHolds(
            f"{spoken(probe.change, probe.settings)} does not violate it: {precondition.check} still holds"
        )
    also = _also(precondition, before, now)
    settings = _settled(probe, broken)
    return Violation(probe.change, settings, broken, also, told_numbers(state.settings, broken.settings))


def _settled(probe: Probe, broken: State) -> dict[str, str]:
    """The settings as they came out: a base is shifted by whole elements only."""
    shifts = set(broken.workload.offsets.values())
    if probe.change == "misalign" and len(shifts) == 1:
        return {**probe.settings, "bytes": str(shifts.pop())}
    return dict(probe.settings)


def _nearest(
    card: Card, precondition: Precondition, state: State, changes: Iterable[str], probe: Probe | None
) -> Violation:
    before = _answers(card, state)
    if before.get(precondition.key) == "fails":
        why = check(precondition.check, _facts(state)).why
        raise Violated(why)
    second: Violation | None = None
    why = ""
    for change in changes:
        for settings in _candidates(change, precondition.check, state):
            settings = {**settings, **(probe.settings if probe else {})}
            try:
                broken = violated(state, change, settings)
            except Untestable as error:
                why = why or str(error)
                continue
            now = _answers(card, broken)
            if now.get(precondition.key) != "fails":
                continue
            found = Violation(change, settings, broken, _also(precondition, before, now))
            if not found.also:
                return found
            second = second or found
    if second is not None:
        return second
    named = f"no {' or '.join(changes)} change" if len(tuple(changes)) == 1 else "no change"
    raise Untestable(f"{named} within reach makes {precondition.check} fail{f' ({why})' if why else ''}")


def _answers(card: Card, state: State) -> dict[str, Answered]:
    known = _facts(state)
    return {p.key: check(p.check, known).state for p in card.preconditions if p.check}


def _facts(state: State) -> Facts:
    try:
        return state.facts()
    except KlineageError as error:
        raise Untestable(str(error)) from error


def _also(own: Precondition, before: Mapping[str, Answered], now: Mapping[str, Answered]) -> tuple[str, ...]:
    return tuple(k for k, s in now.items() if k != own.key and s == "fails" and before.get(k) != "fails")


def _candidates(change: str, expression: str, state: State) -> Iterator[dict[str, str]]:
    """Changes of one kind that a check might notice, the smallest first."""
    named = used_names(expression)
    if change == "size":
        yield from _sizes(named, state)
    elif change == "stride" and "row_alignment" in named:
        for buffer in _buffers(expression, state):
            yield from ({"buffer": buffer, "bytes": str(2**power)} for power in (4, 5, 6, 3, 2))
    elif change == "misalign" and {"alignment", "row_alignment"} & set(named):
        for buffer in (*_quoted(expression, state), "*"):
            yield from ({"buffer": buffer, "bytes": str(bytes_)} for bytes_ in (4, 8, 16, 32, 2, 1))
    elif change == "platform":
        yield from ({"platform": name} for name in older(state))
    elif change == "dtype" and {"element", "itemsize", "dtype"} & set(named):
        yield from ({"element": element} for element in _ELEMENTS)
    elif change == "feature" and "has" in named:
        present = dict.fromkeys(f.name for f in state.facts().findings if f.state == "present")
        yield from ({"name": name} for name in present if f"'{name}'" in expression.replace('"', "'"))
    elif change == "setting" and {"setting", "constant"} & set(named):
        yield from _settings(expression, state)


def _sizes(named: Iterable[str], state: State) -> Iterator[dict[str, str]]:
    facts = state.facts()
    wanted = [dim for dim in facts.dims if dim in set(named)]
    if not wanted and set(_SHAPED) & set(named):
        wanted = list(facts.dims)
    for dim in wanted:
        extent = facts.sizes[facts.main][dim]
        values = [extent + sign * step for step in _STEPS for sign in (-1, 1)]
        values += [extent >> power for power in range(1, extent.bit_length())]
        values += [extent << power for power in range(1, 7)]
        yield from ({"dim": dim, "value": str(value)} for value in dict.fromkeys(values) if value > 0)


def _buffers(expression: str, state: State) -> tuple[str, ...]:
    """The buffers that a check names; all that have rows where it names none."""
    facts = state.facts()
    known = facts.tensors.get(facts.main, {})
    return _quoted(expression, state) or tuple(name for name, t in known.items() if len(t.shape) > 1)


def _quoted(expression: str, state: State) -> tuple[str, ...]:
    facts = state.facts()
    text = expression.replace('"', "'")
    return tuple(name for name in facts.tensors.get(facts.main, {}) if f"'{name}'" in text)


def older(state: State) -> Iterator[str]:
    """Platforms below the state's own, the next one first."""
    own = state.facts().platform
    if own.vendor == "cpu" and own.architecture in CPU_LEVELS:
        below = CPU_LEVELS[: CPU_LEVELS.index(own.architecture)]
        yield from (f"cpu-{level}" for level in reversed(below))
    elif own.vendor == "nvidia":
        yield from (name for name in _GPUS if int(name.removeprefix("nvidia-sm")) < own.capability)


def _settings(expression: str, state: State) -> Iterator[dict[str, str]]:
    facts = state.facts()
    text = expression.replace('"', "'")
    numbers = {**facts.constants, **{n: int(v) for n, v in facts.settings.items() if v.isdecimal()}}
    for name, value in numbers.items():
        if f"'{name}'" in text:
            values = [value << power for power in range(1, 9)] + [
                value >> power for power in range(1, value.bit_length())
            ]
            yield from ({"name": name, "value": str(changed)} for changed in values if changed > 0)
