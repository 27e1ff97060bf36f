"""What stands behind one field of a card: the commits, reports and trials that it cites, a row each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klineage_tui.card_queue import Marks
from klineage_tui.presentation.card_form import Ref
from klineage_tui.presentation.card_words import change_words, effect_words, sentence
from klineage_tui.text.columns import pad, widest, width
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.card import Card, Evidence, Precondition

_NOTE_CELLS = 36  # of a note that stands beside what it says something of
_KINDS = {
    "transition": "step",
    "rejected": "rejected",
    "probe": "probe",
    "ablation": "ablation",
    "trial": "trial",
    "import": "import",
}


@dataclass(frozen=True)
class Behind:
    """Rows, and for each the evidence that opening it shows (None: nothing to open)."""

    lines: list[Line] = field(default_factory=list)
    opens: list[Evidence | None] = field(default_factory=list)

    @property
    def selectable(self) -> frozenset[int]:
        return frozenset(row for row, evidence in enumerate(self.opens) if evidence is not None)


def cited(card: Card, ref: Ref) -> tuple[str, ...]:
    """The keys of the evidence that a field cites; a field that cites none by itself rests on the card's steps."""
    if ref.kind == "precondition":
        found = precondition_of(card, ref.key)
        if found is None:
            return ()
        of_probe = found.probe.evidence if found.probe is not None else ()
        return tuple(dict.fromkeys((*found.evidence, *of_probe)))
    if ref.kind == "effect":
        return card.effects[int(ref.key)].evidence if ref.key else ()
    if ref.kind == "risk":
        return card.risks[int(ref.key)].evidence if ref.key else ()
    if ref.kind == "verification":
        return next((v.evidence for v in card.verification if v.key == ref.key), ())
    if ref.kind == "verified":
        return tuple(dict.fromkeys(key for v in card.verification if v.accepted for key in v.evidence))
    if ref.kind == "evidence":
        return (ref.key,)
    if ref.kind == "carrier" and card.carrier.evidence:
        return card.carrier.evidence
    return tuple(evidence.key for evidence in card.evidence if evidence.kind == "transition")


def claim(card: Card, ref: Ref) -> str:
    """What a field says, in a line: the claim that its evidence stands behind."""
    if (precondition := precondition_of(card, ref.key)) is not None and ref.kind == "precondition":
        return f"{precondition.key}: {precondition.text}"
    if ref.kind == "risk" and ref.key:
        return f"{card.risks[int(ref.key)].kind}: {card.risks[int(ref.key)].text}"
    if ref.kind == "effect" and ref.key:
        return effect_words(card.effects[int(ref.key)])[0]
    if ref.kind == "anchor":
        return card.anchor.text
    if (trial := next((v for v in card.verification if v.key == ref.key), None)) is not None:
        return f"{trial.key}: {trial.why}"
    return card.intent


def precondition_of(card: Card, key: str) -> Precondition | None:
    return next((p for p in card.preconditions if p.key == key), None)


def behind(
    card: Card, ref: Ref, marks: Marks, cells: int, problems: Sequence[str] = (), why: str = ""
) -> Behind:
    """Everything behind a field: how it was probed, what lint says of it, and each piece of evidence.

    problems: sentences about this very field. why: what the card's place in the queue comes from, where there was no
    room for it elsewhere. A key that the card cites and does not have is named as dangling.
    """
    found = Behind()
    if why:
        _say(found, [("WHY  ", "muted")], why, cells)
    for problem in problems:
        _say(found, [("LINT ", "verdict-warn")], problem, cells)
    precondition = precondition_of(card, ref.key) if ref.kind == "precondition" else None
    if precondition is not None:
        _probe(found, precondition, ref.key in marks.unprobed, cells)
    if ref.kind == "verification" and (edited := marks.stale.get(ref.key)):
        _say(found, [("STALE ", "verdict-warn")], f"edited since this trial: {', '.join(edited)}", cells)
    if ref.kind in ("anchor", "carrier"):
        _code(found, card, ref)
    by_key = {evidence.key: evidence for evidence in card.evidence}
    keys = cited(card, ref)
    where = widest([_where(by_key[key]) for key in keys if key in by_key])
    for key in keys:
        if (evidence := by_key.get(key)) is None:
            _say(found, [(pad(key, 5), "accent")], "is cited here, and the card has no such evidence", cells)
        else:
            rows = _rows(evidence, where, cells)
            found.lines.extend(rows)
            found.opens.extend((evidence, *[None] * (len(rows) - 1)))
    if not found.lines:
        _say(found, [], "Nothing is cited here: this is a claim.", cells)
    return found


def _rows(evidence: Evidence, where_cells: int, cells: int) -> list[Line]:
    """What it is and where, and all of its note: beside it where there is room, else below."""
    report = f"report {evidence.report.removesuffix('.json')[:10]}" if evidence.report else ""
    lead = [
        (pad(sanitize(evidence.key), 5), "accent"),
        (pad(_KINDS.get(evidence.kind, evidence.kind), 10), ""),
        (pad(_where(evidence), where_cells) + "  " if where_cells else "", "strong"),
        (pad(sanitize(report), 19) if report else "", "muted"),
    ]
    taken = sum(width(text) for text, _ in lead)
    beside = cells - taken >= _NOTE_CELLS
    taken = taken if beside else 5
    notes = textwrap.wrap(sentence(evidence.note), max(16, cells - taken), break_on_hyphens=False)
    first = compose(*lead, notes.pop(0) if beside and notes else "")
    return [first, *(Line(" " * taken + note) for note in notes)]


def _where(evidence: Evidence) -> str:
    return sanitize(" ".join(filter(None, (evidence.lineage, evidence.commit[:10]))))


def _probe(found: Behind, precondition: Precondition, stale: bool, cells: int) -> None:
    probe = precondition.probe
    if probe is None:
        _say(found, [("probe    ", "muted")], "none: no one has said how to break it", cells)
        return
    _say(found, [("probe    ", "muted")], change_words(probe), cells)
    if probe.outcome != "untested":
        when = (
            f"{probe.outcome} on {probe.platform or 'an unknown platform'}, {probe.trust}, {probe.when[:16]}"
        )
        _say(found, [("outcome  ", "muted")], f"{when}: {probe.found}" if probe.found else when, cells)
    if stale:
        _say(
            found,
            [("STALE    ", "verdict-warn")],
            "it ran before an edit of the sentence, the check or the change",
            cells,
        )


def _code(found: Behind, card: Card, ref: Ref) -> None:
    parts = (("query", card.anchor.query),) if ref.kind == "anchor" else (
        ("before", card.carrier.before), ("after", card.carrier.after),
    )  # fmt: skip
    for name, text in parts:
        if not text.strip():
            continue
        found.lines.append(compose((name, "heading")))
        found.opens.append(None)
        for line in text.splitlines()[:200]:
            found.lines.append(Line("  " + sanitize(line)))
            found.opens.append(None)


def _say(found: Behind, label: Sequence[tuple[str, str]], text: str, cells: int) -> None:
    taken = sum(len(word) for word, _ in label)
    rows = textwrap.wrap(sentence(text), max(16, cells - taken), break_on_hyphens=False) or [""]
    found.lines.append(compose(*label, rows[0]))
    found.lines.extend(Line(" " * taken + row) for row in rows[1:])
    found.opens.extend([None] * len(rows))
