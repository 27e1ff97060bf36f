"""Claims and what they rest on: none, something that is not there, something that cannot show it."""

from __future__ import annotations

from collections.abc import Iterator

from klineage.skill.card import Card
from klineage.skill.linting.problem import Problem

#: Who may say what must hold without a commit behind it: the rule's author knows its mechanism.
_OWN_WORD = ("rule", "features", "compile")


def claims(card: Card) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every field that may name evidence, with the keys that it names."""
    for precondition in card.preconditions:
        name = f"preconditions.{precondition.key}"
        yield name, precondition.evidence
        if precondition.probe is not None:
            yield f"{name}.probe", precondition.probe.evidence
    for number, effect in enumerate(card.effects):
        yield f"effects.{number}", effect.evidence
    for number, risk in enumerate(card.risks):
        yield f"risks.{number}", risk.evidence
    for verification in card.verification:
        yield f"verification.{verification.key}", verification.evidence
    yield "carrier", card.carrier.evidence


def dangling(card: Card) -> Iterator[Problem]:
    """Evidence that is named and not listed, and what is listed and leads nowhere."""
    known = {evidence.key for evidence in card.evidence}
    for field, keys in claims(card):
        for key in keys:
            if key not in known:
                have = ", ".join(sorted(known)) or "none"
                text = f"it names the evidence {key}, which the card does not list (it lists {have}); add it or take the name out"
                yield Problem(f"{field}.evidence", "error", text, "dangling-evidence")
    for evidence in card.evidence:
        field = f"evidence.{evidence.key}"
        if not (evidence.commit or evidence.report or evidence.kind == "import"):
            text = f"{evidence.key} leads to neither a commit nor a report; name one"
            yield Problem(field, "error", text, "dangling-evidence")
        elif evidence.kind in ("transition", "rejected") and not (evidence.lineage and evidence.commit):
            text = f"{evidence.key} is a {evidence.kind} and must name its lineage and its commit"
            yield Problem(field, "error", text, "dangling-evidence")


def missing(card: Card) -> Iterator[Problem]:
    """Claims without evidence."""
    if not card.evidence:
        yield Problem(
            "evidence",
            "error",
            "the card has no evidence; lift it from a lineage, or cite a commit",
            "no-evidence",
        )
        return
    for precondition in card.preconditions:
        if not precondition.evidence and precondition.origin not in _OWN_WORD:
            text = f"{precondition.key} names no evidence; cite the commit or the probe that shows it"
            yield Problem(f"preconditions.{precondition.key}", "warning", text, "no-evidence")
    for number, effect in enumerate(card.effects):
        if not effect.evidence:
            text = "an effect is a measurement and must name the evidence that has it"
            yield Problem(f"effects.{number}", "error", text, "no-evidence")
    for number, risk in enumerate(card.risks):
        if risk.evidence or risk.kind == "expected":
            continue
        text = (
            "what was observed, or searched for in vain, must name its evidence; else call the risk expected"
        )
        yield Problem(f"risks.{number}", "error", text, "no-evidence")
    if (card.carrier.before or card.carrier.after) and not card.carrier.evidence:
        text = "the code is of no named instance; cite the transition that it was taken from"
        yield Problem("carrier", "warning", text, "no-evidence")


def trials(card: Card) -> Iterator[Problem]:
    """A status that the verification log does not bear, and probes that an edit has overtaken."""
    from klineage.skill.staleness import probe_is_stale, stale, verified_by

    if card.status == "admitted" and not verified_by(card):
        text = (
            "it is admitted, but no accepted trial on a held-out kernel is fresh; klineage admit tries again"
        )
        yield Problem("status", "error", text, "not-verified")
    if card.status == "retired" and not card.retired.strip():
        yield Problem(
            "status", "warning", "it is retired and does not say why; fill in retired", "not-verified"
        )
    if card.status != "retired" and card.retired.strip():
        text = f"it says why it is retired and is {card.status}; clear retired or retire it"
        yield Problem("retired", "warning", text, "not-verified")
    for key, fields in stale(card).items():
        text = f"{key} rests on {', '.join(fields)}, edited since; klineage admit tries again"
        yield Problem(f"verification.{key}", "warning", text, "stale")
    for precondition in card.preconditions:
        probe, field = precondition.probe, f"preconditions.{precondition.key}.probe"
        if probe is None:
            continue
        if probe.outcome == "untested":
            if card.status == "admitted":
                text = (
                    f"the probe of {precondition.key} showed nothing: {probe.found}"
                    if probe.found
                    else f"it is admitted, and the probe of {precondition.key} has never run; klineage probe runs it"
                )
                yield Problem(field, "warning", text, "unprobed")
            continue
        if probe_is_stale(precondition):
            text = f"{precondition.key} was edited after its probe; klineage probe runs it again"
            yield Problem(field, "warning", text, "stale")
        elif probe.outcome == "refuted":
            text = f"nothing broke without {precondition.key}: it asks for too much; weaken it or take it out"
            yield Problem(field, "warning", text, "refuted")
        if not probe.evidence:
            text = f"the probe of {precondition.key} has an outcome and names no report"
            yield Problem(field, "error", text, "no-evidence")


def effects(card: Card) -> Iterator[Problem]:
    """Numbers that say nothing, or more than the way they were got at allows."""
    from klineage.gate.verdict import Trust

    trusts = tuple(str(trust) for trust in Trust)
    if card.status != "retired" and not card.effects:
        text = "it says nothing of what it gains; klineage ablate and klineage lift measure it"
        yield Problem("effects", "warning", text, "no-effect")
    for number, effect in enumerate(card.effects):
        field = f"effects.{number}"
        if effect.trust not in trusts:
            text = f"the trust {effect.trust!r} is not one of {', '.join(trusts)}"
            yield Problem(f"{field}.trust", "error", text, "trust")
        elif effect.quantity == "time" and not effect.trust.startswith("measured"):
            text = f"what is {effect.trust} says nothing of time; name the count that was made"
            yield Problem(f"{field}.quantity", "error", text, "trust")
        elif effect.trust.startswith("measured") and (
            effect.trust.endswith("cpu") != effect.platform.startswith("cpu")
        ):
            text = f"{effect.platform} is not measured by {effect.trust}; correct the one or the other"
            yield Problem(f"{field}.trust", "error", text, "trust")
        if not 0 < effect.low <= effect.gain <= effect.high:
            text = (
                f"the gain {effect.gain:g} is not within its interval from {effect.low:g} to {effect.high:g}"
            )
            yield Problem(f"{field}.gain", "error", text, "no-effect")
        elif effect.gain <= 1:
            text = f"a gain of {effect.gain:g} is none: above 1 is better"
            yield Problem(f"{field}.gain", "warning", text, "no-effect")
        elif effect.low <= 1:
            text = f"the interval from {effect.low:g} to {effect.high:g} does not rule out that nothing is gained"
            yield Problem(f"{field}.low", "warning", text, "no-effect")
    if card.status == "admitted" and not card.risks:
        text = "it names no risk; probe it, and say what was found or that nothing was"
        yield Problem("risks", "warning", text, "no-risk")
