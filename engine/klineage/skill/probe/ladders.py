"""The values that a search tries, from the card's own side on: what is varied, and in which direction."""

from __future__ import annotations

from collections.abc import Iterator

from klineage.skill.checks.checking import problem, used_names
from klineage.skill.checks.facts import ITEMSIZE
from klineage.skill.probe.choosing import Violation, older
from klineage.skill.probe.renumbering import Untestable, changed_by, is_relative
from klineage.skill.probe.state import State
from klineage.skill.probe.violations import inner_dim

MOST_RUNGS = 8

Step = tuple[str, str, dict[str, str]]  # words, change, settings
Ladder = tuple[str, Iterator[Step]]  # what is varied, and the steps


def ladder(check: str, state: State, found: Violation) -> Ladder:
    """The steps that lead from the card's own state towards a violation and beyond.

    Raises Untestable where there is no order that a boundary could lie on.
    """
    makes = {"size": _sizes, "setting": _settings}
    if found.change in makes:
        return makes[found.change](check, state, found)
    if found.change == "stride":
        buffer = found.settings["buffer"]
        item = ITEMSIZE[state.facts().tensors[state.facts().main][buffer].type]
        words = f"rows of {buffer} at multiples of {{}} bytes"
        return f"the alignment of rows of {buffer}", _multiples(inner_dim(state, buffer), state, item, words)
    if found.change == "misalign":
        return _alignments(state, found.settings["buffer"])
    if found.change == "platform":
        return "the platform", ((f"on {name}", "platform", {"platform": name}) for name in older(state))
    raise Untestable(f"a {found.change} has no order that a boundary could lie on; it is probed as it is")


def _sizes(check: str, state: State, found: Violation) -> Ladder:
    dim, value = found.settings["dim"], found.settings["value"]
    if dim == "*":
        return "every dimension", _relative("size", "dim", "*", _sign(value))
    if _about_divisors(check):
        return f"what {dim} is a multiple of", _multiples(dim, state, 1, f"{dim} a multiple of {{}}")
    own = state.facts().sizes[state.facts().main][dim]
    return dim, _geometric("size", "dim", dim, own, changed_by(value)(own))


def _settings(check: str, state: State, found: Violation) -> Ladder:
    name, value = found.settings["name"], found.settings["value"]
    if is_relative(value):
        return ("its numbers" if name == "*" else name), _relative("setting", "name", name, _sign(value))
    own = state.settings.get(name) or str(state.facts().constants.get(name, ""))
    if not own.isdecimal() or not value.isdecimal():
        raise Untestable(f"{name} is no whole number that could be made larger or smaller step by step")
    return name, _geometric("setting", "name", name, int(own), int(value))


def _sign(value: str) -> str:
    sign = value.strip()[:1]
    if sign not in ("x", "/"):
        raise Untestable(f"{value} is one step, and no direction to search in; write x2 or /2")
    return sign


def _about_divisors(check: str) -> bool:
    return not problem(check) and (
        "%" in check or bool({"divisibility", "row_alignment"} & set(used_names(check)))
    )


def _alignments(state: State, buffer: str) -> Ladder:
    """Bases that are multiples of 64 bytes, 32 ... and of no larger power of two, down to one element."""
    named = "every buffer" if buffer == "*" else buffer
    known = state.facts().tensors[state.facts().main]
    widest = max(ITEMSIZE[t.type] for name, t in known.items() if buffer == "*" or name in buffer.split(", "))
    steps = (
        (f"{named} aligned to {bytes_} bytes", "misalign", {"buffer": buffer, "bytes": str(bytes_)})
        for bytes_ in (64, 32, 16, 8, 4, 2, 1)
        if bytes_ >= widest
    )
    return f"the alignment of {named}", steps


def _geometric(change: str, label: str, name: str, own: int, towards: int) -> Iterator[Step]:
    """Half, a quarter ... or twice, four times ... of the card's own value."""
    value = own
    for _ in range(MOST_RUNGS):
        value = value * 2 if towards > own else value // 2
        if value < 1:
            return
        yield f"{name} = {value}", change, {label: name, "value": str(value)}


def _relative(change: str, label: str, name: str, sign: str) -> Iterator[Step]:
    """Twice, four times ... or half, a quarter ... of every number of the instance."""
    every = "every dimension" if change == "size" else "every number"
    for power in range(1, MOST_RUNGS):
        value = f"{sign}{1 << power}"
        yield f"{every if name == '*' else name} {value}", change, {label: name, "value": value}


def _multiples(dim: str, state: State, itemsize: int, words: str) -> Iterator[Step]:
    """Extents next to the card's own that are multiples of 64 ``itemsize``, 32 ... and of no larger power of two."""
    facts = state.facts()
    own = facts.sizes[facts.main][dim]
    for power in range(6, -1, -1):
        step = 1 << power
        value = own - own % (2 * step) + step
        yield words.format(step * itemsize), "size", {"dim": dim, "value": str(value)}
