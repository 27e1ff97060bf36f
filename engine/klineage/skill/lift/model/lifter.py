"""The model lift: asking about a card, and adding what it says with the doubts that evidence raises."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from klineage.errors import KlineageError
from klineage.proposer.answer import Unusable
from klineage.proposer.base import OnProposerEvent
from klineage.proposer.calls import PaidCalls
from klineage.proposer.model.proposer import ModelProposer
from klineage.proposer.question import Question, Reply
from klineage.proposer.registry import Context, proposer_named
from klineage.proposer.settings import Settings
from klineage.skill.anchors.making import common_anchor
from klineage.skill.card import Anchor, Card, Precondition, Risk
from klineage.skill.checks.checking import problem as check_problem
from klineage.skill.lift.groups import Group
from klineage.skill.lift.model.claims import Ground, grounds_of, precondition_doubt, risk_doubt, words_doubt
from klineage.skill.lift.model.question import lift_question, version
from klineage.skill.lift.model.reading import Citation, ClaimedPrecondition, ClaimedRisk, Told, read_told
from klineage.skill.lift.structural import intent_of

#: What calls of a lift are booked on in the ledger, for a card has no one lineage.
LEDGER = "library"


@dataclass(frozen=True)
class ModelLifter:
    """Asks a model about cards, one call each. An answer that was paid for is offered again, not paid again."""

    model: str
    settings: Settings
    calls: PaidCalls
    on_event: OnProposerEvent | None = None
    cancel: threading.Event | None = None

    @property
    def name(self) -> str:
        """``model:<id>``."""
        return f"model:{self.model}"

    def __call__(self, card: Card, group: Group) -> Card:
        """The card with what the model says of it; an answer of no use is said in the card's notes.

        Raises KlineageError for what no further question can mend: no key, a spending limit, a cancel.
        """
        question = lift_question(card, group, LEDGER, self.model, self.settings)
        reply = self._reply(question)
        outcome = reply.outcome
        if outcome.status == "failed":
            self.calls.done(reply)
            return _noted(card, self._line(f"gave no answer: {outcome.problem}"))
        if outcome.status != "answered":
            self.calls.done(reply)
            raise KlineageError(outcome.problem or f"{self.name}: cancelled; nothing was written")
        try:
            told = read_told(outcome)
        except Unusable as unusable:
            self.calls.done(reply)
            return _noted(card, self._line(f"said nothing of use: {unusable}"))
        return self.with_told(card, group, told)

    def _reply(self, question: Question) -> Reply:
        for reply in self.calls.earlier(question, self.on_event, self.cancel):
            if reply.outcome.status == "answered":
                return reply
            self.calls.done(reply)
        return self.calls.ask(question, self.on_event, self.cancel)

    def with_told(self, card: Card, group: Group, told: Told) -> Card:
        """The card with the claims of one answer: those that it has not, each with its doubt.

        A person's words stay: the intent and the anchor's are taken only where they are the structural lift's own.
        """
        grounds = grounds_of(card, group)
        preconditions = tuple(_preconditions(card, told.preconditions, grounds))
        risks = tuple(_risks(card, told.risks, grounds))
        new = replace(
            card,
            intent=told.intent
            if _may_say(told.intent, grounds, card.intent, intent_of(group))
            else card.intent,
            anchor=_anchor(card, group, told, grounds),
            preconditions=(*card.preconditions, *preconditions),
            risks=(*card.risks, *risks),
        )
        doubts = [*(one.doubt for one in preconditions), *(risk.doubt for risk in risks)]
        what = f"added {len(preconditions)} preconditions and {len(risks)} risks, of which {sum(map(bool, doubts))} are doubted."
        refused = [
            f"It would say {text!r}, which was not taken: {doubt}."
            for text in (told.intent, told.anchor)
            if (doubt := words_doubt(text, grounds))
        ]
        return _noted(new, self._line(" ".join(filter(None, [what, *refused, told.notes]))))

    def _line(self, text: str) -> str:
        return f"{self.name} (prompt {version()}) {text}"


def lifter_named(name: str, context: Context) -> ModelLifter:
    """Who says more of cards than their structure shows: ``model[:ID]``. Raises KlineageError for anything else."""
    if name.partition(":")[0] != "model":
        raise KlineageError(f"{name!r} cannot lift cards; write rules, model or model:ID")
    proposer = proposer_named(name, replace(context, lineage=LEDGER))
    if not isinstance(proposer, ModelProposer):
        raise KlineageError(f"{name!r} is no model; write model or model:ID")
    return ModelLifter(proposer.model, context.settings, proposer.calls)


def _may_say(text: str, grounds: Mapping[str, Ground], own: str, structural: str) -> bool:
    """Whether a model's sentence takes the place of the card's own: of the structural lift's, and not of a person's."""
    return bool(text) and own == structural and not words_doubt(text, grounds)


def _anchor(card: Card, group: Group, told: Told, grounds: Mapping[str, Ground]) -> Anchor:
    structural = common_anchor(group.transitions).text
    said = _may_say(told.anchor, grounds, card.anchor.text, structural)
    return replace(card.anchor, text=told.anchor) if said else card.anchor


def _preconditions(
    card: Card, claims: Iterable[ClaimedPrecondition], grounds: Mapping[str, Ground]
) -> Iterable[Precondition]:
    """The claims that the card has not, with keys of their own."""
    known = {_plain(one.text) for one in card.preconditions}
    number = max(
        (int(m[1]) for one in card.preconditions if (m := re.fullmatch(r"p(\d+)", one.key))), default=0
    )
    for claim in claims:
        if _plain(claim.text) in known:
            continue
        known.add(_plain(claim.text))
        number += 1
        check = "" if not claim.check or check_problem(claim.check) else claim.check
        yield Precondition(
            f"p{number}", claim.kind, claim.text, check, origin="model", evidence=_keys(claim.citations, grounds),
            doubt=precondition_doubt(claim, grounds, card),
        )  # fmt: skip


def _risks(card: Card, claims: Iterable[ClaimedRisk], grounds: Mapping[str, Ground]) -> Iterable[Risk]:
    """The claims that the card has not. What was not shown to happen is expected, whatever the model says."""
    known = {_plain(risk.text) for risk in card.risks}
    for claim in claims:
        if _plain(claim.text) in known:
            continue
        known.add(_plain(claim.text))
        doubt = risk_doubt(claim, grounds)
        yield Risk(
            claim.text, "observed" if claim.seen and not doubt else "expected", "model",
            _keys(claim.citations, grounds), doubt,
        )  # fmt: skip


def _keys(citations: Iterable[Citation], grounds: Mapping[str, Ground]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.evidence for c in citations if c.evidence in grounds))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _noted(card: Card, line: str) -> Card:
    """The card with one line of a model at the end of its notes, in place of an earlier one of the same model."""
    who = line.partition(" ")[0]
    kept = [old for old in card.notes.splitlines() if not old.startswith(f"{who} (prompt ")]
    return replace(card, notes="\n".join([*kept, line]).strip("\n"))
