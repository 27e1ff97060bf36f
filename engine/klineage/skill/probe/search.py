"""Search for the boundary of a precondition: the smallest alignment, the largest tile, the smallest size that still pays.

A ladder of values leads from where the card's own state stands in the direction that violates the precondition. It is gone
down rung by rung until the optimization fails or loses its effect, so that what is reported was seen on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from klineage.gate import Report
from klineage.skill.card import Card, Precondition, Risk
from klineage.skill.checks import check, used_names
from klineage.skill.facts import ITEMSIZE
from klineage.skill.probe.choosing import Violation, older
from klineage.skill.probe.judging import Judge
from klineage.skill.probe.recording import of_search, with_none_found, with_precondition, with_reports
from klineage.skill.probe.renumbering import Untestable, is_relative, told_numbers
from klineage.skill.probe.state import State
from klineage.skill.probe.violations import inner_dim, violated
from klineage.skill.probe.weighing import Finding, cut

_MOST_RUNGS = 8


@dataclass(frozen=True)
class Rung:
    """One value that was tried. ``words``: ``k = 256``; ``violates``: whether the precondition's check fails there."""

    words: str
    change: str
    settings: Mapping[str, str]
    finding: Finding
    violates: bool


@dataclass(frozen=True)
class Boundary:
    """What a search saw. ``text``: one sentence with both sides of the boundary, or how far nothing broke."""

    text: str
    rungs: tuple[Rung, ...]

    @property
    def broken(self) -> Rung | None:
        """The first value at which the optimization failed or lost its effect."""
        return next((rung for rung in self.rungs if rung.finding.outcome == "confirmed"), None)

    @property
    def standing(self) -> Rung | None:
        """The last value before it at which it was seen to stand."""
        return next((rung for rung in reversed(self.rungs) if rung.finding.outcome == "refuted"), None)


def search(precondition: Precondition, state: State, found: Violation, judge: Judge) -> Boundary:
    """Go from the card's own state towards a violation, and beyond. Raises Untestable where there is no order to follow."""
    rungs: list[Rung] = []
    subject, steps = _ladder(precondition, state, found)
    for words, change, settings in steps:
        try:
            broken = violated(state, change, settings)
        except Untestable:
            continue  # no such value: the next rung may be one
        words = told_numbers(state.settings, broken.settings) or words
        violates = bool(precondition.check) and check(precondition.check, broken.facts()).state == "fails"
        rungs.append(Rung(words, change, settings, judge(state, broken, words), violates))
        if rungs[-1].finding.outcome == "confirmed" or len(rungs) == _MOST_RUNGS:
            break
    if not rungs:
        raise Untestable(f"no further value of {subject} can be tried on this state")
    return Boundary(_told(subject, Boundary("", tuple(rungs))), tuple(rungs))


def _told(subject: str, seen: Boundary) -> str:
    last, first = seen.standing, seen.broken
    tried = f"{seen.rungs[0].words} to {seen.rungs[-1].words}" if len(seen.rungs) > 1 else seen.rungs[0].words
    if first is not None and last is not None:
        return f"boundary of {subject}: stands at {last.words}; {first.finding.found}"
    if first is not None:
        return f"boundary of {subject}: stands only as the card has it; {first.finding.found}"
    if last is not None:
        return f"boundary of {subject}: nothing broke from {tried}"
    return f"boundary of {subject}: not found; {seen.rungs[-1].finding.found}"


Step = tuple[str, str, dict[str, str]]


def _ladder(precondition: Precondition, state: State, found: Violation) -> tuple[str, Iterator[Step]]:
    """What is varied, and the values to try, from the card's own side on."""
    settings = found.settings
    if found.change == "size":
        dim = settings["dim"]
        if _about_divisors(precondition.check):
            return f"what {dim} is a multiple of", _multiples(dim, state, 1, f"{dim} a multiple of {{}}")
        own, value = state.facts().sizes[state.facts().main][dim], int(settings["value"], 0)
        return dim, _geometric("size", "dim", dim, own, value)
    if found.change == "stride":
        buffer = settings["buffer"]
        item = ITEMSIZE[state.facts().tensors[state.facts().main][buffer].type]
        words = f"rows of {buffer} at multiples of {{}} bytes"
        return f"the alignment of rows of {buffer}", _multiples(inner_dim(state, buffer), state, item, words)
    if found.change == "misalign":
        buffer = settings["buffer"]
        named = "every buffer" if buffer == "*" else buffer
        steps = (
            (f"{named} aligned to {bytes_} bytes", "misalign", {"buffer": buffer, "bytes": str(bytes_)})
            for bytes_ in (64, 32, 16, 8, 4, 2, 1)
            if bytes_ >= _widest(state, buffer)
        )
        return f"the alignment of {named}", steps
    if found.change == "platform":
        return "the platform", ((f"on {name}", "platform", {"platform": name}) for name in older(state))
    if found.change == "setting" and settings["value"].strip()[:1] not in ("+", "-"):
        name = settings["name"]
        text = state.settings.get(name) or str(state.facts().constants.get(name, ""))
        if is_relative(settings["value"]):
            return ("its numbers" if name == "*" else name), _relative(name, settings["value"].strip()[:1])
        if text.isdigit() and settings["value"].isdigit():
            return name, _geometric("setting", "name", name, int(text), int(settings["value"]))
    raise Untestable(f"a {found.change} has no order that a boundary could lie on; it is probed as it is")


def _about_divisors(expression: str) -> bool:
    return "%" in expression or bool({"divisibility", "row_alignment"} & set(used_names(expression)))


def _geometric(change: str, label: str, name: str, own: int, towards: int) -> Iterator[Step]:
    """Half, a quarter ... or twice, four times ... of the card's own value."""
    value = own
    for _ in range(_MOST_RUNGS):
        value = value * 2 if towards > own else value // 2
        if value < 1:
            return
        yield f"{name} = {value}", change, {label: name, "value": str(value)}


def _relative(name: str, sign: str) -> Iterator[Step]:
    """Twice, four times ... or half, a quarter ... of every number of the instance."""
    for power in range(1, _MOST_RUNGS):
        value = f"{sign}{1 << power}"
        yield f"{'every number' if name == '*' else name} {value}", "setting", {"name": name, "value": value}


def _multiples(dim: str, state: State, itemsize: int, words: str) -> Iterator[Step]:
    """Extents next to the card's own that are multiples of 64 ``itemsize``, 32 ... and of no larger power of two."""
    facts = state.facts()
    own = facts.sizes[facts.main][dim]
    for power in range(6, -1, -1):
        step = 1 << power
        value = own - own % (2 * step) + step
        yield words.format(step * itemsize), "size", {"dim": dim, "value": str(value)}


def _widest(state: State, buffer: str) -> int:
    """Bytes of an element, below which no buffer can be shifted."""
    facts = state.facts()
    known = facts.tensors[facts.main]
    return max(ITEMSIZE[t.type] for name, t in known.items() if buffer in ("*", name))


def with_boundary(card: Card, key: str, boundary: Boundary, lineage: str = "", commit: str = "") -> Card:
    """The card with what a search saw: both sides as evidence, a risk, and a doubt where the check asks for too much."""
    reports: list[Report] = [
        r.finding.reports[0] for r in (boundary.standing, boundary.broken) if r and r.finding.reports
    ]
    card, keys = with_reports(card, reports, f"{key}: {boundary.text}", lineage, commit)
    own = next(p for p in card.preconditions if p.key == key)
    last = boundary.standing
    too_strong = last is not None and last.violates
    doubt = f"a search found that it stands at {last.words} too" if last and too_strong else own.doubt
    card = with_precondition(card, replace(own, doubt=doubt))
    kept = tuple(r for r in card.risks if not of_search(r, key))
    kind = "observed" if boundary.broken else "none-found"
    if boundary.broken or last:
        kept = (*kept, Risk(cut(f"{key}: {boundary.text}"), kind, "probe", keys))  # type: ignore[arg-type]
    return with_none_found(replace(card, risks=kept))
