"""What a card's claims are called on screen: an outcome in a word first, then its numbers with their trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage.numbers import gained

from klineage_tui.text.numbers import ratio
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.card import ContractFeature, Effect, Precondition, Probe, Verification
    from klineage.skill.checks import Answer

    Parts = Sequence[tuple[str, str]]

_OUTCOMES = {
    "confirmed": ("CONFIRMED", "verdict-pass"),
    "refuted": ("REFUTED", "verdict-fail"),
    "untested": ("UNTESTED", "verdict-info"),
}
_ORIGINS = {
    "rule": "known to the rule",
    "features": "seen in the features",
    "compile": "from the compiler",
    "probe": "found by a probe",
    "model": "claimed by a model",
    "person": "said by a person",
    "import": "imported, not examined",
}
_PLACES = {
    "anchor": "there",
    "function": "in its function",
    "kernel": "in the kernel",
    "hardware": "of the hardware",
}
_SHOWN_KEYS = 6


def sentence(text: str) -> str:
    """Foreign text of any number of lines as one safe line."""
    return sanitize(" ".join(text.split()))


def probe_words(precondition: Precondition, *, stale: bool) -> Parts:
    """``CONFIRMED fails at N=33 interpreted``; what was found before an edit is called stale."""
    probe = precondition.probe
    if probe is None:
        return [("no probe", "muted")]
    if stale:
        was = f"it was {probe.outcome} before the edit"
        return [("STALE", "verdict-warn"), (was, "muted")]
    word, role = _OUTCOMES[probe.outcome]
    if probe.outcome == "untested":
        return [(word, role), (change_words(probe), "muted")]
    where = " ".join(filter(None, (probe.trust, probe.platform)))
    return [(word, role), (probe.found, ""), (where, "verdict-info")]


def change_words(probe: Probe) -> str:
    """What a probe breaks: ``size dim=K value=33``."""
    return " ".join((probe.change, *(f"{name}={value}" for name, value in probe.settings.items())))


def origin_words(origin: str, evidence: Sequence[str]) -> Parts:
    """Where a claim comes from, and the keys of what shows it; a claim that nothing shows says so."""
    keys = ", ".join(evidence[:_SHOWN_KEYS]) + (
        f" and {len(evidence) - _SHOWN_KEYS} more" if len(evidence) > _SHOWN_KEYS else ""
    )
    who = _ORIGINS.get(origin, origin)
    return [(who, "muted"), (keys, "accent")] if keys else [(f"{who}, no evidence", "muted")]


def effect_words(effect: Effect) -> tuple[str, Parts]:
    """``1.77x [1.75, 1.79] time``, and how and where it is known; an exact count is said to be no time."""
    if effect.quantity == "time":
        text = f"{ratio(effect.gain, effect.low, effect.high)} time"
    else:
        text = f"{gained(effect.gain, effect.low, effect.high)}x {effect.quantity.replace('_', ' ')}"
    trust = effect.trust + (f" ({effect.timer})" if effect.timer else "")
    where = " ".join(filter(None, (effect.platform, effect.workload, effect.size)))
    counted = "" if effect.quantity == "time" else "a count, not time"
    keys = ", ".join(effect.evidence)
    return text, [(trust, "verdict-info"), (where, "muted"), (counted, "muted"), (keys, "accent")]


def trial_words(trial: Verification, edited: Sequence[str]) -> tuple[Parts, str, list[Parts]]:
    """Label, sentence and what stands beside one trial; ``edited`` are the fields that make it stale."""
    word, role = ("ok", "verdict-pass") if trial.accepted else ("FAIL", "verdict-fail")
    if edited:
        word, role = "STALE", "verdict-warn"
    label = [(f"{trial.key} ", ""), (word, role)]
    number = ""
    if trial.gain is not None:
        interval = (trial.low, trial.high) if trial.quantity == "time" else (None, None)
        number = f"{ratio(trial.gain, *interval)} {trial.quantity.replace('_', ' ')}"
    made = f"by {trial.materializer}" + (f", attempt {trial.attempts}" if trial.attempts > 1 else "")
    text = " ".join(filter(None, (f"{trial.target}:", f"{number}," if number else "", made)))
    if not trial.accepted:
        text += f": {trial.why}"
    held = (
        f"held out: {', '.join(trial.held_out)}" if trial.held_out else "not held out, so it admits nothing"
    )
    beside: list[Parts] = [
        [(" ".join(filter(None, (trial.trust, trial.platform))), "verdict-info"), (trial.when[:10], "muted")]
    ]
    beside.append([(held.replace("_", " "), "muted"), (", ".join(trial.evidence), "accent")])
    if edited:
        beside.insert(0, [("edited since:", "verdict-warn"), (", ".join(edited), "")])
    return label, text, beside


def feature_words(features: Sequence[ContractFeature]) -> str:
    """``simd there, restrict in its function``."""
    return ", ".join(f"{feature.name} {_PLACES[feature.where]}" for feature in features)


def feature_text(features: Sequence[ContractFeature]) -> str:
    """Features as a person types them: ``simd, restrict@function``."""
    return ", ".join(f.name if f.where == "anchor" else f"{f.name}@{f.where}" for f in features)


_ANSWERS = {"holds": "verdict-pass", "fails": "verdict-fail", "unknown": "verdict-warn"}


def answer_words(answer: Answer) -> Parts:
    """``HOLDS there: n is 4096`` of a check on a kernel."""
    return [(answer.state.upper(), _ANSWERS[answer.state]), ("there:", "muted"), (answer.why, "muted")]
