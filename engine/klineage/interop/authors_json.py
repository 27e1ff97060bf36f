"""The authors' JSON: a list of cards with a body, or one card of the nine fields of the earlier program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.interop import authors_fields as fields
from klineage.interop import authors_markdown
from klineage.interop.authors_fields import Foreign

_BODY = authors_markdown.KEYS | {"body"}
_NINE = frozenset(
    ("skill_id", "intent", "anchor", "carrier", "precondition", "effect", "evidence", "risk", "scope", "verification_log")
)  # fmt: skip
_CONTRACT = frozenset({"requires", "provides", "conflicts"})
FORMS: Mapping[str, frozenset[str]] = {
    "JSON with a body": _BODY,
    "JSON of the nine fields": _NINE | _CONTRACT,
}


def read(text: str, file: Path) -> tuple[list[Foreign], list[str]]:
    """(the cards of a JSON file, one object or a list; what is wrong with the others in the list).

    Raises KlineageError, with the line, for what is no JSON.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise KlineageError(f"{file}:{line}: not valid JSON") from error
    cards = found if isinstance(found, list) else [found]
    read_, problems = list[Foreign](), list[str]()
    for number, card in enumerate(cards, start=1):
        where = f"{file}{f', card {number}' if len(cards) > 1 else ''}"
        try:
            read_.append(_read(card, where))
        except KlineageError as error:
            problems.append(str(error))
    return read_, problems


def _read(card: Any, where: str) -> Foreign:
    if not isinstance(card, dict):
        raise KlineageError(f"{where}: a card is a JSON object")
    try:
        json.dumps(card, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise KlineageError(
            f"{where}: {half} is half a character; write it whole, or leave it out"
        ) from error
    keys = set(card)
    if keys == _BODY:
        return authors_markdown.foreign(card, _plain(card["body"]), where, "JSON with a body")
    if keys - _CONTRACT == _NINE or keys - _CONTRACT == _NINE - {"verification_log"}:
        return _nine(card, where)
    if keys == authors_markdown.KEYS:
        raise KlineageError(
            f"{where}: this is the front matter of their SKILL.md without the recipe that follows it"
        )
    raise fields.unlike(keys, where, FORMS)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _nine(card: dict[str, Any], where: str) -> Foreign:
    scope = fields.scope(card["scope"], where)
    evidence = (
        [e for e in card["evidence"] if isinstance(e, dict)] if isinstance(card["evidence"], list) else []
    )
    actions = {str(e["action_category"]) for e in evidence if e.get("action_category")}
    carrier = _plain(card["carrier"]).strip()
    notes = [
        *_claims(
            "An effect that its authors state; it was not measured here",
            fields.texts(card["effect"], "effect", where),
        )
    ]
    notes += _claims("A transition that its authors cite", [_transition(e) for e in evidence])
    notes += _claims(
        "A trial that its authors report", [_trial(t) for t in _list(card.get("verification_log"))]
    )
    return Foreign(
        "JSON of the nine fields",
        fields.text(card["skill_id"], "skill_id", where),
        fields.text(card["intent"], "intent", where),
        fields.texts(card["precondition"], "precondition", where),
        scope.get("cases", ()),
        scope.get("languages", ()),
        scope.get("platforms", ()),
        prior=scope.get("prior_actions", ()),
        action=actions.pop() if len(actions) == 1 else "",
        anchor=_plain(card["anchor"]).strip(),
        after=carrier,
        risks=fields.texts(card["risk"], "risk", where) if card["risk"] else (),
        notes="\n".join(notes),
        requires=_features(card.get("requires", []), "requires", where),
        provides=_features(card.get("provides", []), "provides", where),
        conflicts=_features(card.get("conflicts", []), "conflicts", where),
    )


def _list(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _features(value: Any, key: str, where: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) and "name" in one for one in value):
        raise KlineageError(f"{where}: {key} must be a list of locus and name")
    return tuple(value)


def _claims(what: str, sentences: Any) -> list[str]:
    return [f"- {what}: {' '.join(str(one).split())}" for one in sentences]


def _transition(evidence: dict[str, Any]) -> str:
    told = [
        f"{key.replace('_', ' ')} {evidence[key]}"
        for key in ("action_category", "locus", "before_fingerprint", "after_fingerprint")
        if evidence.get(key)
    ]
    return ", ".join(told) or "no details"


def _trial(trial: dict[str, Any]) -> str:
    target = trial.get("target")
    where = (
        ", ".join(f"{key} {value}" for key, value in target.items() if isinstance(value, str))
        if isinstance(target, dict)
        else "no target"
    )
    held = "held out" if trial.get("held_out") is True else "not held out"
    seen = (
        "the effect was observed"
        if trial.get("expected_effect_observed") is True
        else "the effect was not observed"
    )
    return f"{where}; {held}; {seen}"
