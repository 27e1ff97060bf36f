"""Training records: one JSON object a line, each with where it comes from and how its numbers are known.

Kinds of records: ``card`` (a card, field by field), ``trial`` (a card put on a kernel that it had never seen, success or
failure), ``transition`` (a sealed step: the kernel before, the kernel after) and ``rejected`` (an attempt that failed, with
why). The last two need the lineages that cards cite; one that cannot be read is left out, and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import klineage
from klineage.errors import KlineageError
from klineage.gate import Report
from klineage.kernel import Kernel
from klineage.skill.card import Card
from klineage.skill.library import Library
from klineage.skill.staleness import fingerprints, stale
from klineage.skill.transitions import Rejected, Transition, rejected, transitions

SCHEMA = 1


@dataclass(frozen=True)
class Shelved:
    """A card with where it stands: ``library`` names the place, ``revision`` the git hash of the file's bytes."""

    card: Card
    library: str
    revision: str


def records(
    cards: Iterable[Shelved], libraries: Iterable[Library], missing: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Every record: the cards with their trials, then the lineages that they cite, each step once.

    libraries: where lineages are looked for. missing: gets a sentence for each lineage that is in none of them.
    """
    kept = list(cards)
    for shelved in kept:
        yield _card(shelved)
        yield from _trials(shelved)
    places = list(libraries)
    cited = dict.fromkeys(e.lineage for s in kept for e in s.card.evidence if e.lineage)
    speaking = _cards_by_commit(kept)
    for lineage in cited:
        yield from _lineage(lineage, places, speaking, missing)


def lines(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The records as JSON lines: UTF-8, keys in the order in which they are documented, no line inside a value."""
    for record in records:
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _record(kind: str, data: dict[str, Any], provenance: dict[str, Any]) -> dict[str, Any]:
    made = {"exported_by": f"klineage {klineage.__version__}", **provenance}
    return {"schema": SCHEMA, "kind": kind, **data, "provenance": made}


def _card(shelved: Shelved) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(shelved.card)
    return _record("card", {"card": fields}, _from(shelved))


def _trials(shelved: Shelved) -> Iterator[dict[str, Any]]:
    import msgspec

    card, old = shelved.card, stale(shelved.card)
    for trial in card.verification:
        now = trial.key not in old
        data = {
            "card_id": card.id,
            "action": card.action,
            "intent": card.intent,
            "trial": msgspec.to_builtins(trial),
        }
        yield _record(
            "trial",
            {**data, "label": "accepted" if trial.accepted else "failed", "of_present_card": now},
            _from(shelved),
        )


def _from(shelved: Shelved) -> dict[str, Any]:
    return {
        "library": shelved.library,
        "revision": shelved.revision,
        "status": shelved.card.status,
        "fingerprints": fingerprints(shelved.card),
    }


def _cards_by_commit(cards: Iterable[Shelved]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for shelved in cards:
        for evidence in shelved.card.evidence:
            if evidence.commit:
                found.setdefault(evidence.commit, []).append(shelved.card.id)
    return found


def _lineage(
    lineage: str, libraries: list[Library], speaking: dict[str, list[str]], missing: list[str] | None
) -> Iterator[dict[str, Any]]:
    reasons = []
    for library in libraries:
        try:
            with library.lineage(lineage) as workspace:
                found = [
                    *map(_transition, transitions(workspace, lineage)),
                    *map(_rejected, rejected(workspace, lineage)),
                ]
        except KlineageError as error:
            reasons.append(str(error))
            continue
        for record in found:
            yield {**record, "cards": sorted(speaking.get(record["provenance"]["commit"], ()))}
        return
    if missing is not None:
        missing.append(f"{lineage}: {reasons[0] if reasons else 'no library has it'}")


def _transition(one: Transition) -> dict[str, Any]:
    more = {"adds": [str(feature) for feature in one.added], "settings": dict(one.step.settings)}
    return _decided("transition", "accepted", one, one.before, one.after, more)


def _rejected(one: Rejected) -> dict[str, Any]:
    return _decided("rejected", "rejected", one, one.on, one.tried, {"why": one.step.why})


def _decided(
    kind: str, label: str, one: Transition | Rejected, before: Kernel, after: Kernel, more: dict[str, Any]
) -> dict[str, Any]:
    """A step that somebody decided on: what was done, to which kernel, and what its gate said."""
    step = one.step
    data = {
        "action": step.action,
        "locus": step.locus,
        "subject": step.subject,
        "reasoning": step.body,
        **more,
        "before": _kernel(before),
        "after": _kernel(after),
        "workload": {"name": one.workload.name, "source": one.workload.source.decode("utf-8", "replace")},
        "label": label,
        "result": _result(one.report),
    }
    return _record(kind, data, _step(one.lineage, one.commit, one.platform, step.proposer, step.who))


def _step(lineage: str, commit: str, platform: str, proposer: str, who: str) -> dict[str, Any]:
    return {"lineage": lineage, "commit": commit, "platform": platform, "proposer": proposer, "who": who}


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "surface": kernel.surface,
        "filename": kernel.filename,
        "entry": kernel.entry,
        "config": dict(kernel.config),
        "flags": list(kernel.flags),
        "hash": kernel.hash,
        "source": kernel.text,
    }


def _result(report: Report | None) -> dict[str, Any] | None:
    """What the gate said, with its trust; None where nothing was gated."""
    if report is None:
        return None
    import msgspec

    profile = report.stage("profile")
    measured = profile.measurement if profile else None
    return {
        "verdict": str(report.verdict),
        "why": report.why,
        "trust": str(report.trust),
        "policy": report.policy,
        "platform": report.platform,
        "finished": report.finished,
        "effect": str(report.effect) if report.effect else None,
        "measurement": msgspec.to_builtins(measured) if measured else None,
        "counts": dict(profile.counts.values) if profile and profile.counts else None,
        "baseline_counts": dict(profile.baseline_counts.values)
        if profile and profile.baseline_counts
        else None,
    }
