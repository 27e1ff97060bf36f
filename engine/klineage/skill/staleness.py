"""What a test rested on, as fingerprints of fields: an edit changes one, and the test is stale without anybody saying so.

Fingerprints are of meaning, not of writing: comments, order of keys, quotes and line ends change nothing. What follows
a claim around (evidence, doubts, origins, probes, notes) is no part of it. An effect that is added, as a further platform
brings one, leaves earlier trials alone; one that is changed or taken away does not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from klineage.skill.card import Card, ContractFeature, Effect, Precondition, Scope, Verification

_EFFECT = "effect."
_JSON = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def fingerprints(card: Card) -> dict[str, str]:
    """The fingerprint of each field that a trial of the card rests on, by field.

    ``anchor``, ``carrier``, ``contract``, ``action`` (with surface, locus and rule), ``precondition.<key>`` for each
    precondition, and ``effect.<quantity>.<platform>.<workload>.<position>`` for each effect. A fingerprint is 16 hex
    digits.
    """
    carrier = card.carrier
    contract = card.contract
    found = {
        "anchor": _of(_words(card.anchor.text), card.anchor.query.strip()),
        "carrier": _of(carrier.before, carrier.after, dict(carrier.settings)),
        "contract": _of(*map(_features, (contract.requires, contract.provides, contract.conflicts))),
        "action": _of(card.action, card.surface, card.locus, card.rule),
    }
    found |= {f"precondition.{one.key}": precondition_fingerprint(one) for one in card.preconditions}
    claims: dict[str, list[list[object]]] = {}
    for effect in card.effects:
        name = f"{_EFFECT}{effect.quantity}.{effect.platform}.{effect.workload}.{effect.position}"
        claims.setdefault(name, []).append(_effect(effect))
    return found | {name: _of(sorted(effects, key=repr)) for name, effects in claims.items()}


def precondition_fingerprint(precondition: Precondition) -> str:
    """Of the claim: its kind, its sentence and its check."""
    return _of(precondition.kind, _words(precondition.text), precondition.check.strip())


def probe_fingerprint(precondition: Precondition) -> str:
    """Of the precondition and the change that violates it: what goes into ``Probe.of`` when the probe has run.

    Raises ValueError where the precondition has no probe.
    """
    if precondition.probe is None:
        raise ValueError(f"{precondition.key} has no probe")
    return _of(
        precondition_fingerprint(precondition), precondition.probe.change, dict(precondition.probe.settings)
    )


def probe_is_stale(precondition: Precondition) -> bool:
    """Whether its probe has run, and the precondition or the change has been edited since."""
    probe = precondition.probe
    return probe is not None and probe.outcome != "untested" and probe.of != probe_fingerprint(precondition)


def stale(card: Card) -> Mapping[str, tuple[str, ...]]:
    """The trials that an edit has overtaken, by key, each with the fields that changed.

    A trial that recorded nothing of what it rested on can vouch for nothing: every field counts as changed.
    """
    now = fingerprints(card)
    changes = {one.key: _changed(one.rested_on, now) for one in card.verification}
    return MappingProxyType({key: fields for key, fields in changes.items() if fields})


def is_held_out(verification: Verification) -> bool:
    """Whether its target differs from every source state in something that counts."""
    return bool(verification.held_out)


def verified_by(card: Card, old: Mapping[str, object] | None = None) -> tuple[Verification, ...]:
    """The trials that count today: accepted, on a held-out target, and of the card as it is now.

    old: what ``stale`` says of the card, where it is known already.
    """
    old = stale(card) if old is None else old
    return tuple(one for one in card.verification if one.accepted and is_held_out(one) and one.key not in old)


def verified_scope(card: Card) -> Scope:
    """Where the card was shown to hold, from the trials that count today; empty on every side where there are none.

    Unlike a declared scope it holds no ``*``.
    """
    return scope_of(verified_by(card))


def scope_of(trials: Sequence[Verification]) -> Scope:
    """Where these trials were made."""
    return Scope(
        workloads=_distinct(one.workload for one in trials),
        surfaces=_distinct(one.surface for one in trials),
        platforms=_distinct(one.platform for one in trials),
        prior_actions=_distinct(action for one in trials for action in one.prior_actions),
    )


def _changed(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    changed = [field for field in {**now, **then} if then.get(field) != now.get(field)]
    return tuple(field for field in changed if field in then or not field.startswith(_EFFECT))


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))


def _features(features: tuple[ContractFeature, ...]) -> list[list[str]]:
    return sorted([feature.name, feature.where] for feature in features)


def _effect(effect: Effect) -> list[object]:
    numbers = [float(effect.gain), float(effect.low), float(effect.high)]
    counted = effect.trust in (
        "static",
        "interpreted",
    )  # which of the two words a count has is no part of the claim
    return [effect.size, "interpreted" if counted else effect.trust, *numbers]


def _words(text: str) -> str:
    return " ".join(text.split())


def _of(*parts: object) -> str:
    return hashlib.sha256(_JSON.encode(parts).encode()).hexdigest()[:16]
