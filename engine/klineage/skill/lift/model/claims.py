"""What evidence says of a model's claims. An unsupported one stays, and carries the reason why it is doubted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from klineage.proposer import vocabulary
from klineage.skill.card import Card
from klineage.skill.checks.checking import problem as check_problem
from klineage.skill.lift.carrier import settings_of
from klineage.skill.lift.citing import TRACE, failure_of, keys_of, measured_text
from klineage.skill.lift.effects import shows_trouble
from klineage.skill.lift.groups import Group
from klineage.skill.lift.model.reading import Citation, ClaimedPrecondition, ClaimedRisk
from klineage.skill.transitions import Rejected, Transition

_SHORTEST = 3  # characters of a quotation that can be found by more than chance
_NUMBER = re.compile(r"(?<![A-Za-z_\d.])\d+(?:\.\d+|,\d{3}(?!\d))*")


@dataclass(frozen=True)
class Ground:
    """One piece of evidence, as claims are held against it.

    code:  every kernel of it, with white space made one. told: what its gates and its step say.
    """

    key: str
    code: tuple[str, ...]
    told: str
    transition: Transition | None = None
    rejected: Rejected | None = None

    @property
    def shows_trouble(self) -> bool:
        """Whether something went wrong in it, or nothing was gained."""
        if self.rejected is not None:
            return bool(failure_of(self.rejected))
        return self.transition is not None and shows_trouble(self.transition)


def grounds_of(card: Card, group: Group) -> Mapping[str, Ground]:
    """The evidence of a card by its keys, as far as it is of this group."""
    keys = keys_of(card.evidence)
    found = [
        Ground(keys[t.commit], (_plain(t.before.text), _plain(t.after.text)), _told(t), transition=t)
        for t in group.transitions
        if t.commit in keys
    ]
    found += [
        Ground(keys[r.commit], (_plain(r.on.text), _plain(r.tried.text)), failure_of(r), rejected=r)
        for r in group.rejected
        if r.commit in keys
    ]
    return {ground.key: ground for ground in found}


def _told(transition: Transition) -> str:
    settings = " ".join(f"{name}={value}" for name, value in settings_of(transition).items())
    sizes = " ".join(str(n) for dims in transition.workload.sizes.values() for n in dims.values())
    measured = " ".join(measured_text(report) for report in transition.comparisons)
    return f"{settings} {sizes} {measured}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def precondition_doubt(claim: ClaimedPrecondition, grounds: Mapping[str, Ground], card: Card) -> str:
    """Why a precondition is not shown by what it cites; empty where it is."""
    faults = list(_cited_faults(claim.citations, grounds))
    faults += _number_faults(claim.text, claim.citations, grounds)
    faults += _instance_faults(claim.text, card)
    faults += _need_faults(claim.needs, grounds, card)
    if claim.check and (why := check_problem(claim.check)):
        faults.append(f"its check {claim.check!r} was left out: {why}")
    return "; ".join(faults)


def risk_doubt(claim: ClaimedRisk, grounds: Mapping[str, Ground]) -> str:
    """Why a risk is not shown by what it cites; empty where it is."""
    faults = list(_cited_faults(claim.citations, grounds))
    faults += _number_faults(claim.text, claim.citations, grounds)
    cited = [grounds[c.evidence] for c in claim.citations if c.evidence in grounds]
    if claim.seen and not any(ground.shows_trouble for ground in cited):
        faults.append("it says that this was seen, and nothing that it cites shows it")
    if TRACE.search(claim.text):
        faults.append("it speaks of one machine's error, not of the optimization")
    return "; ".join(faults)


def words_doubt(text: str, grounds: Mapping[str, Ground]) -> str:
    """Why a sentence without citations, such as an intent, may not stand: its numbers are in no evidence."""
    everything = tuple(Citation(key) for key in grounds)
    return "; ".join(_number_faults(text, everything, grounds))


def _cited_faults(citations: Sequence[Citation], grounds: Mapping[str, Ground]) -> Iterable[str]:
    if not citations:
        yield "it cites no evidence"
    for citation in citations:
        ground = grounds.get(citation.evidence)
        quote = _plain(citation.quote)
        if ground is None:
            yield f"it cites {citation.evidence or 'nothing'}, which is no evidence of this card"
        elif quote and len(quote) < _SHORTEST:
            yield f"what it quotes of {ground.key} is too short to be looked up"
        elif quote and not any(quote in code for code in ground.code):
            yield f"{ground.key} does not read {quote[:60]!r}"


def _number_faults(
    text: str, citations: Sequence[Citation], grounds: Mapping[str, Ground]
) -> list[str]:  # fmt: skip
    """Numbers of a claim that are in nothing that it cites. 0, 1 and 2 are words more than numbers."""
    cited = [grounds[c.evidence] for c in citations if c.evidence in grounds]
    known = {number for ground in cited for part in (*ground.code, ground.told) for number in _numbers(part)}
    missing = [number for number in _numbers(text) if number not in known and number not in ("0", "1", "2")]
    return [f"its number {number} is in nothing that it cites" for number in dict.fromkeys(missing)]


def _numbers(text: str) -> list[str]:
    return [number.replace(",", "") for number in _NUMBER.findall(text)]


def _instance_faults(text: str, card: Card) -> list[str]:
    """Numbers of the carrier's own settings that pose as a condition."""
    own = {
        number: name for name, value in card.carrier.settings.items() for number in _numbers(value) if int_above_two(number)
    }  # fmt: skip
    return [
        f"{number} is the instance's own {own[number]}, an example and no precondition"
        for number in dict.fromkeys(_numbers(text))
        if number in own
    ]


def int_above_two(number: str) -> bool:
    """Whether it is a whole number that can have been chosen."""
    return number.isdigit() and int(number) > 2


def _need_faults(needs: Sequence[str], grounds: Mapping[str, Ground], card: Card) -> list[str]:
    """Mechanisms that are said to be needed: each must have been there before, everywhere, and be shown to matter."""
    transitions = [g.transition for g in grounds.values() if g.transition is not None]
    required = {feature.name for feature in card.contract.requires}
    faults = []
    for name in needs:
        word = "_".join(re.split(r"[\s_-]+", name.strip().lower()))
        without = [t.name for t in transitions if word not in {f.name for f in t.features_before}]
        if word not in vocabulary.ACTIONS and len(without) == len(transitions):
            faults.append(f"it needs {name!r}, which no detector knows")
        elif without:
            faults.append(f"it needs {word}, and {without[0]} was made without it")
        elif word not in required:
            faults.append(f"it needs {word}, which was there before, and the edit can be made without it")
    return faults
