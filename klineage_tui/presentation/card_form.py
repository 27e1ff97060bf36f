"""A card as a form: each field in its row, and beside it what shows it. Pure functions from a card to rows.

Where the pane is wide, evidence, probe outcome and verification stand in a column of their own; where it is narrow, in
the rows below, drawn dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from klineage_tui.card_queue import Marks
from klineage_tui.presentation.card_words import (
    effect_words,
    feature_words,
    origin_words,
    probe_words,
    sentence,
    trial_words,
)
from klineage_tui.text.columns import clip, width
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.card import Card, Effect, Precondition, Risk, Verification

FieldKind = Literal[
    "intent", "action", "anchor", "scope", "verified", "requires", "provides", "conflicts",
    "precondition", "effect", "risk", "verification", "carrier", "notes", "evidence",
]  # fmt: skip

Parts = Sequence[tuple[str, str]]  # (text, role)

_LABEL = 13
_BESIDE_FROM = 92  # cells of the pane from which what shows a field stands beside it
_BESIDE = 40


class Ref(NamedTuple):
    """One field of a card: its kind, and its key (``p1``), its number, or nothing."""

    kind: FieldKind
    key: str = ""

    def __str__(self) -> str:
        return self.key or self.kind


@dataclass(frozen=True)
class Form:
    """The rows, the field that each is of (None for headings and blanks), and where the cursor may rest."""

    lines: list[Line] = field(default_factory=list)
    refs: list[Ref | None] = field(default_factory=list)
    selectable: frozenset[int] = frozenset()

    def row_of(self, ref: Ref | None) -> int:
        """The first row of a field; the first of the form where it is not there."""
        return (
            self.refs.index(ref) if ref in self.refs and ref is not None else min(self.selectable, default=0)
        )


class _Rows:
    """Collects the rows of a form."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.wide = cells >= _BESIDE_FROM
        self.room = cells - _LABEL - (_BESIDE + 2 if self.wide else 0)
        self.lines: list[Line] = []
        self.refs: list[Ref | None] = []
        self.first: list[int] = []

    def heading(self, title: str, count: str = "") -> None:
        if self.lines:
            self._add(Line(""), None)
        more = clip(count, self.cells - width(title) - 2)
        self._add(compose((title, "heading"), (f"  {more}" if more else "", "muted")), None)

    def field(self, ref: Ref, label: Parts, text: str, beside: Sequence[Parts] = (), role: str = "") -> None:
        """``text`` wrapped after the label, and ``beside`` at its right or below it."""
        rows = list(wrapped([(text, role)], self.room)) or [[("", "")]]
        notes = self._notes(beside)
        self.first.append(len(self.lines))
        for number in range(max(len(rows), len(notes)) if self.wide else len(rows)):
            head = _padded(label, _LABEL) if number == 0 else [(" " * _LABEL, "")]
            words = rows[number] if number < len(rows) else []
            if self.wide and number < len(notes):
                gap = " " * (self.room + 2 - sum(width(word) for word, _ in words))
                self._add(compose(*head, *words, gap, *notes[number]), ref)
            else:
                self._add(compose(*head, *words), ref)
        if not self.wide:
            for note in notes:
                self._add(compose(" " * _LABEL, *note), ref)

    def _notes(self, beside: Sequence[Parts]) -> list[list[tuple[str, str]]]:
        """What shows a field: a row or more for each of it in a column, one after the other where it is narrow."""
        if self.wide:
            return [row for parts in beside for row in wrapped(parts, _BESIDE)]
        between = ("·", "muted")
        joined = [part for parts in beside for part in (between, *parts)][1:]
        return list(wrapped(joined, self.cells - _LABEL))

    def _add(self, line: Line, ref: Ref | None) -> None:
        self.lines.append(line)
        self.refs.append(ref)

    def form(self) -> Form:
        return Form(self.lines, self.refs, frozenset(self.first))


def card_form(
    card: Card, marks: Marks, cells: int, answers: Mapping[str, Parts] | None = None, places: str = ""
) -> Form:
    """The whole card in ``cells`` cells.

    answers: precondition key -> what its check said of a target, as styled parts. places: how often the anchor is
    found where it was looked for, in words.
    """
    rows = _Rows(cells)
    _what(rows, card, places)
    _where(rows, card, marks)
    _preconditions(rows, card, marks, answers or {})
    _effects(rows, card.effects)
    _risks(rows, card.risks)
    _verification(rows, card.verification, marks)
    _rest(rows, card)
    return rows.form()


def broken_form(problem: str, cells: int) -> Form:
    """In place of a card that cannot be read: the sentence that names file, line and what to do, whole."""
    lines = [compose(*row) for row in wrapped([(problem, "")], cells)]
    return Form(lines, [None] * len(lines))


def _what(rows: _Rows, card: Card, places: str) -> None:
    rows.field(Ref("intent"), [("intent", "muted")], card.intent, role="strong")
    about = f"{card.action} at {card.locus}" + (f", by the rule {card.rule}" if card.rule else "")
    rows.field(Ref("action"), [("action", "muted")], about, [[(f"in {card.surface}", "muted")]])
    query = "found by a query" if card.anchor.query else "in words alone"
    found = f"{query}; {places}" if places else query
    rows.field(Ref("anchor"), [("anchor", "muted")], card.anchor.text or "not said", [[(found, "muted")]])
    for label in ("requires", "provides", "conflicts"):
        features = getattr(card.contract, label)
        if features:
            rows.field(Ref(label), [(label, "muted")], feature_words(features))


def _where(rows: _Rows, card: Card, marks: Marks) -> None:
    scope = card.scope
    kept = [
        ("workloads", scope.workloads),
        ("surfaces", scope.surfaces),
        ("platforms", scope.platforms),
        ("prior actions", scope.prior_actions),
    ]
    said = ", ".join(f"{name} {' '.join(values)}" for name, values in kept if tuple(values) != ("*",))
    rows.field(Ref("scope"), [("believed", "muted")], said or "to hold anywhere")
    shown = [v for v in card.verification if v.accepted and v.held_out and v.key not in marks.stale]
    places = list(dict.fromkeys(f"{v.workload} {v.surface} {v.platform}" for v in shown))
    rows.field(
        Ref("verified"),
        [("verified", "muted")],
        "; ".join(places) or "on no held-out kernel yet",
        role="" if places else "verdict-warn",
    )


def _preconditions(rows: _Rows, card: Card, marks: Marks, answers: Mapping[str, Parts]) -> None:
    rows.heading("WHAT MUST HOLD FIRST", _probed(card.preconditions, marks))
    for precondition in card.preconditions:
        beside: list[Parts] = [probe_words(precondition, stale=precondition.key in marks.unprobed)]
        if precondition.check:
            beside.append([("check ", "muted"), (precondition.check, "")])
        if precondition.key in answers:
            beside.append(answers[precondition.key])
        beside.append(origin_words(precondition.origin, precondition.evidence))
        if precondition.doubt:
            beside.append([("DOUBT ", "verdict-warn"), (precondition.doubt, "")])
        label = [
            (f"{precondition.key} ", ""),
            (_KIND_WORDS.get(precondition.kind, precondition.kind), "muted"),
        ]
        rows.field(Ref("precondition", precondition.key), label, precondition.text, beside)
    if not card.preconditions:
        rows.field(Ref("precondition"), [("", "")], "nothing is named yet", role="muted")


_KIND_WORDS = {
    "data-types": "types",
    "layout": "layout",
    "storage": "storage",
    "pipeline": "pipeline",
    "hardware": "hardware",
}


def _probed(preconditions: Sequence[Precondition], marks: Marks) -> str:
    """``2 confirmed, 1 refuted, 1 stale, 1 without a probe``."""
    words: dict[str, int] = {}
    for precondition in preconditions:
        probe = precondition.probe
        word: str = "without a probe" if probe is None else probe.outcome
        word = "stale" if precondition.key in marks.unprobed else word
        words[word] = words.get(word, 0) + 1
    order = ("confirmed", "refuted", "stale", "untested", "without a probe")
    return ", ".join(f"{words[word]} {word}" for word in order if word in words)


def _effects(rows: _Rows, effects: Sequence[Effect]) -> None:
    rows.heading("WHAT IT GAINS")
    for number, effect in enumerate(effects):
        text, beside = effect_words(effect)
        rows.field(Ref("effect", str(number)), [(effect.position, "muted")], text, [beside])
    if not effects:
        rows.field(Ref("effect"), [("", "")], "nothing is measured yet", role="muted")


def _risks(rows: _Rows, risks: Sequence[Risk]) -> None:
    rows.heading("WHAT CAN GO WRONG")
    for number, risk in enumerate(risks):
        role = {"observed": "verdict-warn", "none-found": "verdict-pass"}.get(risk.kind, "muted")
        beside: list[Parts] = [origin_words(risk.origin, risk.evidence)]
        if risk.doubt:
            beside.append([("DOUBT ", "verdict-warn"), (risk.doubt, "")])
        rows.field(Ref("risk", str(number)), [(risk.kind, role)], risk.text, beside)
    if not risks:
        rows.field(
            Ref("risk"), [("", "")], "nothing is known; probing may find some, or find none", role="muted"
        )


def _verification(rows: _Rows, log: Sequence[Verification], marks: Marks) -> None:
    rows.heading("TRIED ON KERNELS THAT IT HAD NOT SEEN")
    for trial in reversed(log):
        label, text, beside = trial_words(trial, marks.stale.get(trial.key, ()))
        rows.field(Ref("verification", trial.key), label, text, beside)
    if not log:
        rows.field(Ref("verification"), [("", "")], "not tried yet", role="muted")


def _rest(rows: _Rows, card: Card) -> None:
    rows.heading("THE CHANGE AND ITS SOURCES")
    before, after = (text.count("\n") + bool(text) for text in (card.carrier.before, card.carrier.after))
    settings = "  ".join(f"{name}={value}" for name, value in card.carrier.settings.items())
    text = f"{before} lines before, {after} after" if before or after else "no code is kept"
    beside = [[("of one instance: ", "muted"), (settings, "")]] if settings else []
    rows.field(Ref("carrier"), [("carrier", "muted")], text, beside)
    for evidence in card.evidence:
        source = " ".join(
            filter(None, (evidence.kind, evidence.lineage, evidence.commit[:10], evidence.report[:12]))
        )
        rows.field(
            Ref("evidence", evidence.key),
            [(evidence.key, "muted")],
            evidence.note or source,
            [[(source, "muted")]],
        )
    if card.notes.strip():
        rows.field(Ref("notes"), [("notes", "muted")], clip(card.notes, 600))


def wrapped(parts: Parts, cells: int) -> Iterator[list[tuple[str, str]]]:
    """Styled words in rows of at most ``cells`` cells; a word that is longer is broken."""
    row: list[tuple[str, str]] = []
    used = 0
    for text, role in parts:
        for piece in _pieces(sentence(text), cells):
            gap = 1 if used else 0
            if used + gap + width(piece) > cells:
                yield row
                row, used, gap = [], 0, 0
            row.append((" " * gap + piece, role))
            used += gap + width(piece)
    if row:
        yield row


def _pieces(text: str, cells: int) -> Iterator[str]:
    """The words of a text, those that are wider than a row in parts that are not."""
    for word in text.split():
        left = word
        while width(left) > cells:
            size = cells
            while width(left[:size]) > cells:
                size -= 1
            yield left[:size]
            left = left[size:]
        yield left


def _padded(parts: Parts, cells: int) -> list[tuple[str, str]]:
    """Styled parts in exactly ``cells`` cells, the last cell blank."""
    out: list[tuple[str, str]] = []
    left = cells - 1
    for text, role in parts:
        piece = clip(sanitize(text), left)
        out.append((piece, role))
        left -= width(piece)
    return [*out, (" " * (left + 1), "")]
