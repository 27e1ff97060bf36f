"""The cards of a library as a curator goes through them: what needs a person comes first. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from klineage.skill.card import Card, Verification

Standing = Literal["broken", "disagreement", "stale", "probe", "accept", "try", "admitted", "retired"]

#: In the order of the queue: what contradicts itself first, what is settled last.
STANDINGS: tuple[Standing, ...] = get_args(Standing)
NEEDED: frozenset[Standing] = frozenset(STANDINGS) - {"admitted", "retired"}


@dataclass(frozen=True)
class Marks:
    """What was found out about a card by reading it, and is not written in it.

    stale:    verification key -> the fields that were edited since it was made.
    unprobed: keys of the preconditions whose probe ran on another sentence, check or change.
    faults:   sentences: what the card says against its own evidence, and what lint complains of.
    """

    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unprobed: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Item:
    """One row of the queue.

    card:     None where the file cannot be read: then ``why`` names file and line.
    revision: the revision of the library that was read; a save expects it.
    """

    id: str
    card: Card | None
    standing: Standing
    why: str
    marks: Marks = field(default_factory=Marks)
    revision: str = ""
    skipped: bool = False

    @property
    def needs(self) -> bool:
        """Whether it waits for a person, and was not skipped."""
        return self.standing in NEEDED and not self.skipped


def item_of(card: Card, marks: Marks, revision: str = "", *, skipped: bool = False) -> Item:
    """The row of a card that could be read."""
    standing, why = standing_of(card, marks)
    return Item(card.id, card, standing, why, marks, revision, skipped)


def never_probed(card: Card) -> list[str]:
    """The keys of preconditions whose probe nobody has run yet."""
    probes = {p.key: p.probe for p in card.preconditions if p.probe}
    return [key for key, probe in probes.items() if probe.outcome == "untested" and not probe.found]


def standing_of(card: Card, marks: Marks) -> tuple[Standing, str]:
    """Where a card stands, and the sentence that says why."""
    if card.status == "retired":
        return "retired", card.retired or "retired"
    if disagreement := disagreement_of(card, marks):
        return "disagreement", disagreement
    if stale := _stale(card, marks):
        return "stale", stale
    untested = {p.key: p.probe for p in card.preconditions if p.probe and p.probe.outcome == "untested"}
    if never := never_probed(card):
        return "probe", f"{_listed(never)} {_is(never)} not probed yet"
    for key, probe in untested.items():
        return "probe", f"{key} was probed and nothing was shown: {probe.found}"
    return _decided(card, marks)


def _decided(card: Card, marks: Marks) -> tuple[Standing, str]:
    shown = [v for v in trials(card) if counts(v, marks)]
    if shown and card.status == "admitted":
        return "admitted", f"shown on {_listed([v.target for v in shown])}"
    if shown:
        return "accept", f"{shown[-1].key} shows it on {shown[-1].target}"
    if card.status == "admitted":
        return "stale", "admitted, but no trial on a held-out kernel shows what it says now"
    tried = card.verification
    if not declares_gain(card):
        return "try", "it declares no gain beyond noise, so there is nothing that a trial could show"
    if tried and not tried[-1].accepted:
        return "try", f"{tried[-1].key} failed on {tried[-1].target}: {tried[-1].why}"
    return "try", "no held-out kernel has shown it yet"


def disagreement_of(card: Card, marks: Marks) -> str:
    """What in a card contradicts what was found, the gravest first; empty where nothing does."""
    for precondition in card.preconditions:
        probe = precondition.probe
        if probe is not None and probe.outcome == "refuted" and precondition.key not in marks.unprobed:
            return f"{precondition.key} is refuted: {probe.found or 'nothing breaks without it'}"
    doubts = [(p.key, p.doubt) for p in card.preconditions] + [("a risk", r.doubt) for r in card.risks]
    for name, doubt in doubts:
        if doubt:
            return f"{name} is in doubt: {doubt}"
    for failed in card.verification:
        same = [v for v in card.verification if _same_trial(v, failed)]
        shown = next((v for v in same if v.accepted), None)
        is_latest = failed is max(same, key=lambda v: (v.when, v.key))
        if shown is not None and is_latest and not failed.accepted and failed.key not in marks.stale:
            return f"{failed.key} failed on {failed.target}, where {shown.key} was accepted"
    return marks.faults[0] if marks.faults else ""


def _stale(card: Card, marks: Marks) -> str:
    """Why something must be tested again: a probe, or a trial whose platform no other trial speaks for now."""
    if marks.unprobed:
        keys = sorted(marks.unprobed)
        return f"{_listed(keys)} {_was(keys)} edited since the probe"
    for trial in card.verification:
        if trial.key not in marks.stale or not trial.accepted:
            continue
        if not any(v.platform == trial.platform and counts(v, marks) for v in trials(card)):
            return f"{trial.key} rests on {_listed(marks.stale[trial.key])}, edited since"
    return ""


def declares_gain(card: Card) -> bool:
    """Whether any effect of the card is a gain by its own interval; a trial must reproduce half of one."""
    return any(effect.low > 1 for effect in card.effects)


def trials(card: Card) -> list[Verification]:
    """The verifications that were made on held-out kernels."""
    return [trial for trial in card.verification if trial.held_out]


def counts(trial: Verification, marks: Marks) -> bool:
    """Whether a trial shows what the card says now."""
    return trial.accepted and trial.key not in marks.stale


def _same_trial(one: Verification, other: Verification) -> bool:
    return (one.target, one.platform) == (other.target, other.platform)


def _listed(words: Iterable[str]) -> str:
    *most, last = list(dict.fromkeys(words))
    return f"{', '.join(most)} and {last}" if most else last


def _is(keys: list[str]) -> str:
    return "is" if len(keys) == 1 else "are"


def _was(keys: list[str]) -> str:
    return "was" if len(keys) == 1 else "were"


@dataclass(frozen=True)
class CardQueue:
    """The cards in order of need, and which one is on screen."""

    items: tuple[Item, ...] = ()
    position: int = 0

    @property
    def current(self) -> Item | None:
        return self.items[self.position] if self.position < len(self.items) else None

    @property
    def needed(self) -> int:
        """How many wait for a person."""
        return sum(item.needs for item in self.items)

    def at(self, position: int) -> CardQueue:
        return replace(self, position=max(0, min(position, len(self.items) - 1)))

    def on(self, card_id: str) -> CardQueue:
        """The queue at a card; unchanged where there is none of that id."""
        found = next((i for i, item in enumerate(self.items) if item.id == card_id), None)
        return self if found is None else self.at(found)

    def next_needed(self) -> CardQueue:
        """The next card that waits for a person, going round; the same queue when there is none."""
        size = len(self.items)
        for step in range(1, size + 1):
            place = (self.position + step) % size
            if self.items[place].needs:
                return self.at(place)
        return self


def queue_of(items: Iterable[Item], here: str = "") -> CardQueue:
    """The queue in order of need, at the card ``here`` if it is still there, else at the first that needs a person."""
    order = {standing: number for number, standing in enumerate(STANDINGS)}
    ordered = tuple(sorted(items, key=lambda item: (order[item.standing], item.id)))
    queue = CardQueue(ordered)
    if any(item.id == here for item in ordered):
        return queue.on(here)
    first = queue.current
    return queue if first is None or first.needs else queue.next_needed()
