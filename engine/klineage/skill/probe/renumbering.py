"""Change the numbers of an instance: a tile, an unroll factor, a stage count, a distance."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from klineage.proposer.rules import NotApplicable, derive
from klineage.skill.checks.constants import constants, with_constant
from klineage.skill.probe.state import State

_VALUE = re.compile(r"([-+x/]?)\s*([0-9]{1,9})")
#: Sizes in the text of a setting: a number alone, the factor of an unrolled loop, a distance in steps.
_SIZED = re.compile(r"^[0-9]+$|(?<=unroll )[0-9]+|\b[0-9]+(?= \* [A-Za-z])")


class Untestable(Exception):
    """The violation cannot be made on this state. The message says why, in one sentence."""


def changed_by(value: str) -> Callable[[int], int]:
    """What a value makes of a number: itself, or ``+1``, ``-1``, ``x4``, ``/4`` of the number. Raises Untestable."""
    match = _VALUE.fullmatch(value.strip())
    if match is None or (match[1] == "/" and int(match[2]) == 0):
        raise Untestable(f"{value!r} is neither a whole number nor a change of one such as +1, x4 or /4")
    sign, amount = match[1], int(match[2])
    changes: dict[str, Callable[[int], int]] = {
        "": lambda own: amount, "+": lambda own: own + amount, "-": lambda own: own - amount,
        "x": lambda own: own * amount, "/": lambda own: own // amount,
    }  # fmt: skip
    return changes[sign]


def is_relative(value: str) -> bool:
    """Whether a value tells how it differs from the instance's own: ``x4``."""
    return value.strip()[:1] in ("+", "-", "x", "/")


def renumbered(state: State, name: str, value: str) -> State:
    """The state with one number of its optimization changed, or with ``*`` every one. Raises Untestable.

    By the rule, from the settings of the step, where it has such a setting; else as a constant of the kernel's text, in
    both kernels where both have it.
    """
    if name == "*":
        return _everything(state, value)
    if state.rule and name in state.settings:
        return _put_on_with(state, {**state.settings, name: _valued(state.settings[name], value)})
    number = _valued(str(constants(state.after).get(name, "")), value)
    if not (number.isascii() and number.isdecimal()):
        raise Untestable(f"{name} would be {number!r}, which is no whole number")
    after, before = (with_constant(kernel, name, number) for kernel in (state.after, state.before))
    if after is None:
        known = [*(state.settings if state.rule else ()), *constants(state.after)]
        has = f"; it has {', '.join(known)}" if known else ""
        raise Untestable(f"the instance has no setting {name!r} that can be changed{has}")
    if after.hash == state.after.hash:
        raise Untestable(f"{name} is {number} already")
    own = {name: number} if name in state.settings else {}
    return replace(state, after=after, before=before or state.before, settings={**state.settings, **own})


def _everything(state: State, value: str) -> State:
    """Every number that the settings write out, else the constants that they name."""
    scaled = {name: _scaled(text, value) for name, text in state.settings.items()}
    if state.rule and scaled != dict(state.settings):
        return _put_on_with(state, scaled)
    known = constants(state.after)
    named = dict.fromkeys(
        word for text in state.settings.values() for word in text.split()[:1] if word in known
    )
    changed = state
    for name in named:
        number = _valued(str(known[name]), value)
        after, before = (with_constant(kernel, name, number) for kernel in (changed.after, changed.before))
        changed = changed if after is None else replace(changed, after=after, before=before or changed.before)
    if changed.after.hash == state.after.hash:
        raise Untestable("the instance has no number that could be changed")
    return changed


def _put_on_with(state: State, settings: Mapping[str, str]) -> State:
    """The optimization put on anew by its rule, with other numbers."""
    told = told_numbers(state.settings, settings)
    if not told:
        raise Untestable("its numbers are these already")
    try:
        source = derive(state.rule, state.before, state.locus, dict(settings))
    except NotApplicable as error:
        raise Untestable(f"the rule {state.rule} cannot put it on with {told}: {error.reason}") from error
    if source == state.after.source:
        raise Untestable(f"{told} makes the same kernel")
    return replace(state, after=replace(state.after, source=source), settings=dict(settings))


def told_numbers(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The settings that differ: ``UNROLL = 32, not 4``; empty where none does."""
    changed = [(name, text) for name, text in after.items() if before.get(name) != text]
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    return ", ".join(f"{name} = {text}, not {before.get(name)}" for name, text in changed[:2]) + more


def _valued(own: str, value: str) -> str:
    """The text of a setting with another value in it; a relative one needs a whole number to start from."""
    if not is_relative(value):
        return value
    if not own.strip().isdecimal():
        raise Untestable(f"{own!r} is no whole number that could be made larger or smaller")
    return str(max(1, changed_by(value)(int(own))))


def _scaled(text: str, value: str) -> str:
    return _SIZED.sub(lambda number: str(max(1, changed_by(value)(int(number[0])))), text)
