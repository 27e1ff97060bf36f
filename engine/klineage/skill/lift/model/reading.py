"""A model's answer about a card, read: nothing of it is trusted, and what has not the form is one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klineage.proposer.answer import Unusable
from klineage.proposer.question import Outcome
from klineage.skill.card import KINDS, Kind

_MOST = 12  # claims of one kind
_LONGEST = 600  # characters of one


@dataclass(frozen=True)
class Citation:
    """A piece of evidence by its key, and a piece of its code; no quote means what was measured."""

    evidence: str
    quote: str = ""


@dataclass(frozen=True)
class ClaimedPrecondition:
    """As the model says it. ``needs``: mechanisms that it says must be there before."""

    kind: Kind
    text: str
    citations: tuple[Citation, ...]
    needs: tuple[str, ...] = ()
    check: str = ""


@dataclass(frozen=True)
class ClaimedRisk:
    """As the model says it. ``seen``: that the evidence shows it happening."""

    text: str
    citations: tuple[Citation, ...]
    seen: bool = False


@dataclass(frozen=True)
class Told:
    """Everything that a model said of a card."""

    intent: str = ""
    anchor: str = ""
    preconditions: tuple[ClaimedPrecondition, ...] = ()
    risks: tuple[ClaimedRisk, ...] = ()
    notes: str = ""


def read_told(outcome: Outcome) -> Told:
    """What the answer says. Raises Unusable with one sentence for what is none."""
    if outcome.stop not in ("end_turn", "stop_sequence", ""):
        raise Unusable(f"its answer ends with {outcome.stop}; raise max_tokens in [proposer]")
    try:
        record = json.loads(outcome.text)
    except (ValueError, RecursionError) as error:
        raise Unusable("its answer is not valid JSON") from error
    if not isinstance(record, dict):
        raise Unusable("its answer is not a JSON object")
    return Told(
        intent=_text(record, "intent"),
        anchor=_text(record, "anchor"),
        preconditions=tuple(_precondition(item) for item in _items(record, "preconditions")),
        risks=tuple(_risk(item) for item in _items(record, "risks")),
        notes=_text(record, "notes"),
    )


def _precondition(item: Mapping[str, Any]) -> ClaimedPrecondition:
    word = item.get("kind")
    kind = next((known for known in KINDS if known == word), None)
    needs = item.get("needs")
    if kind is None:
        raise Unusable(f"a precondition of its answer has no kind among {', '.join(KINDS)}")
    if not isinstance(needs, list) or not all(isinstance(name, str) for name in needs):
        raise Unusable("the needs of a precondition of its answer are no list of words")
    return ClaimedPrecondition(
        kind, _claim(item), _citations(item), tuple(needs[:_MOST]), _text(item, "check")
    )


def _risk(item: Mapping[str, Any]) -> ClaimedRisk:
    seen = item.get("seen")
    if not isinstance(seen, bool):
        raise Unusable("a risk of its answer does not say whether it was seen")
    return ClaimedRisk(_claim(item), _citations(item), seen)


def _claim(item: Mapping[str, Any]) -> str:
    text = _text(item, "text")
    if not text:
        raise Unusable("a claim of its answer says nothing")
    return text


def _citations(item: Mapping[str, Any]) -> tuple[Citation, ...]:
    found = item.get("citations")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise Unusable("the citations of its answer are no list of objects")
    return tuple(Citation(_text(one, "evidence"), _text(one, "quote")) for one in found[:_MOST])


def _items(record: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = record.get(name)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Unusable(f"the {name} of its answer are no list of objects")
    return found[:_MOST]


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise Unusable(f"its answer has no text {name!r}")
    return " ".join(value.split())[:_LONGEST]
