"""Write what a probe found into its card: the outcome, the gates that show it, and the risk that it speaks of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from klineage.gate import Report, report_to_json
from klineage.skill.card import Card, Evidence, Precondition, Probe, Risk
from klineage.skill.library.library import report_name
from klineage.skill.probe.choosing import CHANGES
from klineage.skill.probe.weighing import Finding, cut
from klineage.skill.staleness import probe_fingerprint

_NOTHING = "Nothing broke when it was probed with"
_MOST = 500  # characters of a risk


def next_evidence(card: Card) -> str:
    """A key that no evidence of the card has: ``e7``."""
    taken = [int(e.key[1:]) for e in card.evidence if e.key[:1] == "e" and e.key[1:].isdecimal()]
    return f"e{max(taken, default=0) + 1}"


def with_reports(
    card: Card, reports: Iterable[Report], note: str, lineage: str = "", commit: str = ""
) -> tuple[Card, tuple[str, ...]]:
    """The card with gates as evidence of a probe, and the keys of those; one that it cites already is not added again."""
    keys: list[str] = []
    for report in reports:
        name = report_name(report_to_json(report))
        known = next((e.key for e in card.evidence if e.report == name and e.kind == "probe"), "")
        if not known:
            known = next_evidence(card)
            entry = Evidence(known, "probe", lineage, commit, name, cut(note))
            card = replace(card, evidence=(*card.evidence, entry))
        keys.append(known)
    return card, tuple(dict.fromkeys(keys))


def recorded(card: Card, key: str, change: str, settings: dict[str, str], finding: Finding,
             lineage: str = "", commit: str = "") -> Card:  # fmt: skip
    """The card with what came of probing one precondition, in place of what an earlier run said.

    A failure or a lost effect becomes an observed risk. When every precondition that could be probed was, and nothing
    broke, an explicit ``none-found`` says what was tried. Raises KeyError for a key that the card does not have.
    """
    own = next(p for p in card.preconditions if p.key == key) if _has(card, key) else None
    if own is None or change not in CHANGES:
        raise KeyError(key)
    before = own.probe.evidence if own.probe else ()
    card, keys = with_reports(card, finding.reports[:1], f"{key}: {finding.found}", lineage, commit)
    probe = Probe(change, settings, finding.outcome, finding.found, finding.trust, finding.platform,  # type: ignore[arg-type]
                  finding.when, keys)  # fmt: skip
    changed = replace(own, probe=probe)
    changed = replace(changed, probe=replace(probe, of=probe_fingerprint(changed)))
    card = with_precondition(card, changed)
    return _with_risk(card, own, finding, keys, before)


def doubted(card: Card, key: str, finding: Finding, lineage: str = "", commit: str = "") -> Card:
    """The card with a doubt about a precondition that its own state refutes; unchanged by any other finding."""
    if finding.outcome != "refuted":
        return card
    own = next(p for p in card.preconditions if p.key == key)
    card, keys = with_reports(card, finding.reports[:1], f"{key}: {finding.found}", lineage, commit)
    evidence = tuple(dict.fromkeys((*own.evidence, *keys)))
    return with_precondition(card, replace(own, doubt=cut(finding.found), evidence=evidence))


def with_precondition(card: Card, changed: Precondition) -> Card:
    """The card with one precondition in the place of that of the same key."""
    found = tuple(changed if p.key == changed.key else p for p in card.preconditions)
    return replace(card, preconditions=found)


def _has(card: Card, key: str) -> bool:
    return any(p.key == key for p in card.preconditions)


def _with_risk(
    card: Card, own: Precondition, finding: Finding, keys: tuple[str, ...], before: tuple[str, ...]
) -> Card:
    """The risks without what earlier probes of this precondition said, and with what this one says."""
    old = {*before, *keys}
    kept = [
        r
        for r in card.risks
        if not (r.origin == "probe" and set(r.evidence) & old and not of_search(r, own.key))
    ]
    if finding.outcome == "confirmed":
        kept.append(Risk(_against(finding, own), "observed", "probe", keys))
    return with_none_found(replace(card, risks=tuple(kept)))


def _against(finding: Finding, own: Precondition) -> str:
    """The failing case, and the sentence that it speaks for: a risk is read without the precondition beside it."""
    return cut(f"{finding.found}. It broke: {own.text}", _MOST)


def of_search(risk: Risk, key: str) -> bool:
    """Whether a search for the boundary of this precondition wrote the risk."""
    return risk.origin == "probe" and risk.text.startswith(f"{key}: boundary of ")


def with_none_found(card: Card) -> Card:
    """The card with the explicit risk that nothing broke, when every probe has run and none broke anything; else without."""
    kept = tuple(
        r for r in card.risks if not (r.origin == "probe" and r.text.lower().startswith(_NOTHING.lower()))
    )
    card = replace(card, risks=kept)
    probes = [(p.text, p.probe) for p in card.preconditions if p.probe is not None]
    untested = not probes or any(probe.outcome == "untested" for _, probe in probes)
    if (
        untested
        or any(r.kind == "observed" for r in kept)
        or any(p.outcome == "confirmed" for _, p in probes)
    ):
        return card
    tried = "; ".join(f"{probe.found.partition(':')[0]} (which breaks: {text})" for text, probe in probes)
    keys = tuple(dict.fromkeys(key for _, probe in probes for key in probe.evidence))
    return replace(card, risks=(*kept, Risk(cut(f"{_NOTHING} {tried}", _MOST), "none-found", "probe", keys)))
