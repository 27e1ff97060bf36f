"""What a person can change of a card field by field, as the texts that they type. Pure functions on cards.

::

    specs = inputs_of(card, ref)                       # what to ask, with the present values
    card = with_values(card, ref, {"text": "...", ...})  # raises KlineageError with a sentence for what cannot be so

What a field may hold is the engine's business (see ``klineage.skill.library.setting``), as for ``klineage card edit --set``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args, get_type_hints

from klineage.errors import KlineageError
from klineage.skill.card import KINDS, Card, Precondition, Probe, Risk

from klineage_tui.presentation.card_evidence import precondition_of
from klineage_tui.presentation.card_form import Ref
from klineage_tui.presentation.card_words import change_words, feature_text

RISKS: tuple[str, ...] = get_args(get_type_hints(Risk)["kind"])
CHANGES: tuple[str, ...] = get_args(get_type_hints(Probe)["change"])
_SCOPE = ("workloads", "surfaces", "platforms", "prior_actions")
_WORD = re.compile(r"[a-z0-9_.-]+")


@dataclass(frozen=True)
class Asked:
    """One input: its name, the present value, what may be typed, and the words that complete it.

    paths: suffixes of the files that complete it, too; None for an input that takes no path.
    """

    name: str
    value: str
    hint: str
    words: tuple[str, ...] = ()
    paths: tuple[str, ...] | None = None


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
    if ref.kind == "risk" and not (ref.key and int(ref.key) < len(card.risks)):
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
    from klineage.skill.library.setting import with_fields

    assignments: list[tuple[str, str]] = []
    for asked in inputs_of(card, ref):
        typed = " ".join(values[asked.name].split())
        if typed == " ".join(asked.value.split()):
            continue
        _refuse(ref, asked.name, typed)
        if asked.name == "probe":
            assignments += _probe(card, ref, typed)
        else:
            assignments.append((_named(ref, asked.name), typed))
    changed = with_fields(card, assignments)
    _refuse_unsaid(changed, ref)
    return changed


def _named(ref: Ref, name: str) -> str:
    """A field as ``klineage card edit --set`` names it."""
    if ref.kind == "precondition":
        return f"preconditions.{ref.key}.{name}"
    if ref.kind == "risk":
        return f"risks.{int(ref.key) + 1}.{name}"
    group = {"anchor": "anchor.", "scope": "scope."}.get(ref.kind, "")
    group = "contract." if ref.kind in ("requires", "provides", "conflicts") else group
    return group + name


def _refuse(ref: Ref, name: str, typed: str) -> None:
    """Raises KlineageError for a text that no card should have, though its file could hold it."""
    if name == "check" and typed:
        from klineage.skill.checks import problem

        if wrong := problem(typed):
            raise KlineageError(wrong)
    if name in ("action", "locus") and (not typed or " " in typed):
        raise KlineageError(f"{name} is one word, not {typed!r}")
    if ref.kind in ("requires", "provides", "conflicts"):
        for part in filter(None, (part.strip() for part in typed.split(","))):
            if not _WORD.fullmatch(part.partition("@")[0]):
                raise KlineageError(f"{part!r} is no mechanism; write a word of a-z, 0-9, '_', '-' and '.'")


def _refuse_unsaid(card: Card, ref: Ref) -> None:
    """Raises KlineageError where a claim has no words."""
    found = precondition_of(card, ref.key) if ref.kind == "precondition" else None
    text = (
        card.risks[int(ref.key)].text
        if ref.kind == "risk"
        else found.text
        if found is not None
        else card.intent
    )
    if not text:
        raise KlineageError(
            f"{ref.kind} needs words" if ref.kind in ("risk", "precondition") else "the intent needs words"
        )


def _probe(card: Card, ref: Ref, typed: str) -> list[tuple[str, str]]:
    """A probe as typed, ``size dim=K value=33``, field by field; what came of an earlier one turns stale by itself."""
    name = _named(ref, "probe")
    if not typed:
        return [(name, "")]
    change, *settings = typed.split()
    wanted: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals and value):
            raise KlineageError(f"a probe's settings are name=value, not {setting!r}")
        wanted[key] = value
    found = precondition_of(card, ref.key)
    old = found.probe.settings if found is not None and found.probe is not None else {}
    gone = [(f"{name}.settings.{key}", "") for key in old if key not in wanted]
    return [(f"{name}.change", change), *gone, *((f"{name}.settings.{k}", v) for k, v in wanted.items())]


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
