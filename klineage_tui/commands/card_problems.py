"""What is wrong with cards, as the rows that ``card lint`` and ``card edit`` print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library import Entry, Library


def problem_rows(library: Library, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Everything that is wrong with these cards: their files, what lint finds, evidence that leads nowhere, and
    contracts that the cited transitions do not keep."""
    from klineage.skill.lint import lint

    rows = [_row(entry, "", "error", entry.problem, None) for entry in entries if entry.card is None]
    sound = {entry.id: entry for entry in entries if entry.card is not None}
    cards = [entry.card for entry in library.cards() if entry.card is not None]
    for card in _cards(sound.values()):
        others = [other for other in cards if other.id != card.id]
        found = lint(card, others, library.source(card.id))
        rows += [_row(sound[card.id], p.field, p.severity, p.text, p.line) for p in found]
    return rows + _of_evidence(library, sound)


def _of_evidence(library: Library, sound: dict[str, Entry]) -> list[dict[str, Any]]:
    from klineage.skill.library.contracts import contract_faults

    cards = _cards(sound.values())
    found = [(lost.card, f"evidence.{lost.key}", lost.why) for lost in library.dangling(cards)]
    faults = contract_faults(library, cards)
    found += [(card_id, "contract", fault) for card_id, said in faults.items() for fault in said]
    return [
        _row(sound[card_id], field, "error", text, line_of(library.source(card_id), card_id, field))
        for card_id, field, text in found
    ]


def _cards(entries: Iterable[Entry]) -> list[Card]:
    return [entry.card for entry in entries if entry.card is not None]


def _row(entry: Entry, field: str, severity: str, text: str, line: int | None) -> dict[str, Any]:
    return {
        "id": entry.id,
        "file": entry.file,
        "line": line,
        "field": field,
        "severity": severity,
        "text": text,
    }


def line_of(data: bytes, card_id: str, field: str) -> int:
    """The line of a field, or of what it stands in."""
    from klineage.skill.file import lines

    at = lines(data, f"{card_id}.md")
    while field and field not in at:
        field = field.rpartition(".")[0]
    return at.get(field, 1)


def problem_line(row: dict[str, Any]) -> str:
    """``cards/c.prefetch.md:12: error: risks: ...``"""
    if row["line"] is None:
        return f"error: {row['text']}"  # which names file and line itself
    where = f"{row['file']}:{row['line']}"
    return ": ".join(part for part in (where, row["severity"], row["field"], row["text"]) if part)
