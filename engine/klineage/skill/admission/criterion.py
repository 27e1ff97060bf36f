"""What a trial must show: every gate passed, and at least half of what the card declares, beyond noise.

Half of an effect is half of what it adds: 1.4x of a declared 1.8x. A time counts by the lower end of its 99 % interval,
and only above the noise of its measurement; a count is exact. Times reproduce times of the same trust, and counts reproduce
counts: neither stands for the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean

from klineage.numbers import counted, three
from klineage.skill.card import Card, Effect
from klineage.skill.trial import TIME, Gain, trust_of

PART = 0.5


@dataclass(frozen=True)
class Declared:
    """What a card declares of one quantity: the geometric mean of its effects, since ratios multiply.

    trust: how it was found. position: where it was measured, in order of its lineages where there is such an effect.
    """

    quantity: str
    gain: float
    trust: str
    position: str

    @property
    def needed(self) -> float:
        """The least gain that reproduces half of it."""
        return 1 + PART * (self.gain - 1)

    def __str__(self) -> str:
        return f"{self._said(self.gain)}x {self.quantity} ({self.trust}, {self.position})"

    def _said(self, gain: float) -> str:
        return three(gain) if self.quantity == TIME else counted(gain)

    @property
    def told(self) -> str:
        """The least gain in words: ``1.40x``."""
        return f"{self._said(self.needed)}x"


@dataclass(frozen=True)
class Shown:
    """Whether a trial reproduced the declared effect, and the sentence that says so."""

    holds: bool
    why: str
    gain: Gain | None = None
    declared: Declared | None = None


def declared(card: Card) -> tuple[Declared, ...]:
    """What the card declares to gain, by quantity and trust: a time first, then the larger of the others first.

    An effect that its own interval does not put above 1 declares nothing; nor does a loss, which is the price of a gain
    in another quantity.
    """
    groups: dict[tuple[str, str], list[Effect]] = {}
    for effect in card.effects:
        if effect.low > 1:
            groups.setdefault((effect.quantity, trust_of(effect.quantity, effect.trust)), []).append(effect)
    found = [_mean(quantity, trust, effects) for (quantity, trust), effects in groups.items()]
    return tuple(sorted(found, key=lambda d: (d.quantity != TIME, -d.gain, d.quantity)))


def _mean(quantity: str, trust: str, effects: list[Effect]) -> Declared:
    for position in ("in-order", "last", "first"):
        gains = [effect.gain for effect in effects if effect.position == position]
        if gains:
            return Declared(quantity, geometric_mean(gains), trust, position)
    raise AssertionError("every effect has a position")


def reproduced(card: Card, gains: Iterable[Gain]) -> Shown:
    """Whether what a gate found holds at least half of what the card declares.

    The first declared quantity that was found with the same trust decides (see ``declared``): a card is tried for what it is
    for, and not for whatever else has changed.
    """
    wanted, found = declared(card), {(gain.quantity, gain.trust): gain for gain in gains}
    if not wanted:
        return Shown(False, "the card declares no effect beyond noise, so there is none to reproduce")
    for one in wanted:
        gain = found.get((one.quantity, one.trust))
        if gain is not None:
            return _compared(one, gain)
    names = " or ".join(f"{one.quantity} ({one.trust})" for one in wanted)
    return Shown(
        False, f"the card declares {names}, and the gate found nothing of that kind here", None, wanted[0]
    )


def _compared(one: Declared, gain: Gain) -> Shown:
    told = f"{gain}; half of the declared {one} is {one.told}"
    if not gain.better:
        within = f" of ±{gain.noise:.1%}" if gain.noise else ""
        return Shown(False, f"no gain beyond noise{within}: {told}", gain, one)
    if gain.low < one.needed:
        what = (
            "the lower end of its interval is less"
            if not gain.exact and gain.gain >= one.needed
            else "it is less"
        )
        return Shown(False, f"{told}: {what}", gain, one)
    return Shown(True, told, gain, one)
