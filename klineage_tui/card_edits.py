"""What a person can change of a card field by field, as the texts that they type. Pure functions on cards.

::

    specs = inputs_of(card, ref)                       # what to ask, with the present values
    card = with_values(card, ref, {"text": "...", ...})  # raises KlineageError with a sentence for what cannot be so

A person's sentence is a person's from then on: its origin says so, and a doubt about the old one goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args, get_type_hints

from klineage.errors import KlineageError
from klineage.skill.card import (
    KINDS,
    Card,
    ContractFeature,
    Place,
    Precondition,
    Probe,
    Risk,
    Scope,
)

from klineage_tui.presentation.card_evidence import precondition_of
from klineage_tui.presentation.card_form import Ref
from klineage_tui.presentation.card_words import change_words, feature_text

RISKS = ("observed", "expected", "none-found")
CHANGES: tuple[str, ...] = get_args(get_type_hints(Probe)["change"])
_PLACES: tuple[str, ...] = get_args(Place)
_SCOPE = ("workloads", "surfaces", "platforms", "prior_actions")
_WORD = re.compile(r"[a-z0-9_.-]+")


@dataclass(frozen=True)
class Asked:
    """One input: its name, the present value, what may be typed, and the words that complete it."""

    name: str
    value: str
    hint: str
    words: tuple[str, ...] = ()


def why_not_here(card: Card, ref: Ref) -> str:
    """Why a field cannot be edited in its place; empty when it can."""
    if ref.kind == "effect":
        return "an effect is measured, not written: a trial adds to it"
    if ref.kind in ("verification", "verified"):
        return "the log of trials is added to by trials; it is never rewritten"
    if ref.kind == "evidence":
        return "evidence is what was found; what it shows is said in the fields that cite it"
    if ref.kind in ("carrier", "notes"):
        return "it has many lines"
    if ref.kind == "precondition" and precondition_of(card, ref.key) is None:
        return "there is no precondition yet"
    if ref.kind == "risk" and not ref.key:
        return "there is no risk yet"
    return ""


def inputs_of(card: Card, ref: Ref) -> tuple[Asked, ...]:
    """What is asked to edit a field. Raises KlineageError where ``why_not_here`` has a reason."""
    if reason := why_not_here(card, ref):
        raise KlineageError(reason)
    if ref.kind == "intent":
        return (Asked("intent", card.intent, "what it does, in one sentence"),)
    if ref.kind == "action":
        from klineage.proposer import vocabulary

        return (
            Asked("action", card.action, "a word such as pipeline", tuple(vocabulary.ACTIONS)),
            Asked("locus", card.locus, "function, for, kernel, launch"),
            Asked("rule", card.rule, "the rule that can put it on, or nothing"),
        )
    if ref.kind == "anchor":
        return (Asked("text", card.anchor.text, "where it acts, in words"),
                Asked("query", " ".join(card.anchor.query.split()), "a tree-sitter query with @anchor"))  # fmt: skip
    if ref.kind == "scope":
        values = vars(card.scope)
        return tuple(
            Asked(name, ", ".join(values[name]), "* is anywhere; words with commas") for name in _SCOPE
        )
    if ref.kind in ("requires", "provides", "conflicts"):
        hint = "mechanisms with commas: simd, restrict@function"
        return (Asked(ref.kind, feature_text(getattr(card.contract, ref.kind)), hint),)
    return _claim(card, ref)


def _claim(card: Card, ref: Ref) -> tuple[Asked, ...]:
    if ref.kind == "risk":
        risk = card.risks[int(ref.key)]
        return (
            Asked("kind", risk.kind, ", ".join(RISKS), RISKS),
            Asked("text", risk.text, "what can go wrong, and when"),
            Asked("doubt", risk.doubt, "why the evidence does not show it, or nothing"),
        )
    precondition = precondition_of(card, ref.key)
    assert precondition is not None, "why_not_here says so"
    probe = change_words(precondition.probe) if precondition.probe is not None else ""
    return (
        Asked("kind", precondition.kind, ", ".join(KINDS), KINDS),
        Asked("text", precondition.text, "what must hold before, and what breaks without it"),
        Asked("check", precondition.check, "an expression such as k % 16 == 0, or nothing"),
        Asked("probe", probe, "how to break it: size dim=K value=33, or nothing", CHANGES),
        Asked("doubt", precondition.doubt, "why the evidence does not show it, or nothing"),
    )


def with_values(card: Card, ref: Ref, values: Mapping[str, str]) -> Card:
    """The card with one field as it was typed. Raises KlineageError, in a sentence, for what cannot be so."""
    typed = {name: " ".join(value.split()) for name, value in values.items()}
    if ref.kind == "intent":
        return replace(card, intent=_said("an intent", typed["intent"]))
    if ref.kind == "action":
        locus = _word("a locus", typed["locus"])
        return replace(card, action=_word("an action", typed["action"]), locus=locus, rule=typed["rule"])
    if ref.kind == "anchor":
        query = card.anchor.query if typed["query"] == " ".join(card.anchor.query.split()) else typed["query"]
        return replace(card, anchor=replace(card.anchor, text=typed["text"], query=query))
    if ref.kind == "scope":
        return replace(card, scope=Scope(**{name: _listed(typed[name]) or ("*",) for name in _SCOPE}))
    if ref.kind in ("requires", "provides", "conflicts"):
        changed: dict[str, Any] = {ref.kind: _features(typed[ref.kind])}
        return replace(card, contract=replace(card.contract, **changed))
    if ref.kind == "risk":
        risks = list(card.risks)
        risks[int(ref.key)] = _risk(risks[int(ref.key)], typed)
        return replace(card, risks=tuple(risks))
    old = precondition_of(card, ref.key)
    assert old is not None, "why_not_here says so"
    new = _precondition(old, typed)
    return replace(card, preconditions=tuple(new if p.key == ref.key else p for p in card.preconditions))


def _precondition(old: Precondition, typed: Mapping[str, str]) -> Precondition:
    kind, text = (
        _one_of("a kind of precondition", typed["kind"], KINDS),
        _said("a precondition", typed["text"]),
    )
    if typed["check"] and typed["check"] != old.check:
        from klineage.skill.checks import problem

        if wrong := problem(typed["check"]):
            raise KlineageError(wrong)
    mine = text != old.text
    doubt = "" if mine and typed["doubt"] == old.doubt else typed["doubt"]
    probe = _probe(old.probe, typed["probe"])
    origin = "person" if mine else old.origin
    return replace(old, kind=kind, text=text, check=typed["check"], probe=probe, doubt=doubt, origin=origin)


def _risk(old: Risk, typed: Mapping[str, str]) -> Risk:
    kind, text = _one_of("a kind of risk", typed["kind"], RISKS), _said("a risk", typed["text"])
    mine = text != old.text
    doubt = "" if mine and typed["doubt"] == old.doubt else typed["doubt"]
    return replace(old, kind=kind, text=text, doubt=doubt, origin="person" if mine else old.origin)


def _probe(old: Probe | None, typed: str) -> Probe | None:
    """The probe as typed, ``size dim=K value=33``; unchanged words keep what came of it."""
    if not typed:
        return None
    if old is not None and typed == change_words(old):
        return old
    change, *settings = typed.split()
    known = _one_of("a change", change, CHANGES)
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise KlineageError(f"a probe's settings are name=value, not {name + equals + value!r}")
    found = {name: value for name, _, value in pairs}
    return Probe(known, found) if old is None else replace(old, change=known, settings=found)


def added(card: Card, ref: Ref) -> tuple[Card, Ref]:
    """The card with one more claim, yet to be written: a risk where the cursor is on one, else a precondition."""
    if ref.kind == "risk":
        return replace(card, risks=(*card.risks, Risk(""))), Ref("risk", str(len(card.risks)))
    numbers = [int(p.key[1:]) for p in card.preconditions if p.key[1:].isdecimal()]
    key = f"p{1 + max(numbers, default=0)}"
    return replace(card, preconditions=(*card.preconditions, Precondition(key, "layout", ""))), Ref(
        "precondition", key
    )


def why_not_removed(card: Card, ref: Ref) -> str:
    """Why the field under the cursor cannot be taken out; empty when it can."""
    if ref.kind == "precondition" and precondition_of(card, ref.key) is not None:
        return ""
    if ref.kind == "risk" and ref.key:
        return ""
    return "only a precondition or a risk can be taken out: put the cursor on one"


def removed(card: Card, ref: Ref) -> Card:
    """The card without a precondition or a risk."""
    if ref.kind == "risk":
        number = int(ref.key)
        return replace(card, risks=(*card.risks[:number], *card.risks[number + 1 :]))
    return replace(card, preconditions=tuple(p for p in card.preconditions if p.key != ref.key))


def _said(what: str, text: str) -> str:
    if not text:
        raise KlineageError(f"{what} needs words")
    return text


def _word(what: str, text: str) -> str:
    if not text or " " in text:
        raise KlineageError(f"{what} is one word, not {text!r}")
    return text


def _one_of(what: str, text: str, words: Sequence[str]) -> Any:
    if text not in words:
        raise KlineageError(f"{what} is one of {', '.join(words)}, not {text!r}")
    return text


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _features(text: str) -> tuple[ContractFeature, ...]:
    features = []
    for part in _listed(text):
        name, _, where = part.partition("@")
        if not _WORD.fullmatch(name):
            raise KlineageError(f"{name!r} is no mechanism; write a word of a-z, 0-9, '_', '-' and '.'")
        features.append(ContractFeature(name, _one_of("a place", where or "anchor", _PLACES)))
    return tuple(features)
