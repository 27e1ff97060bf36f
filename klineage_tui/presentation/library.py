"""The Library place as rows: which cards hold for a target and why, which do not yet, and the ways on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klineage.numbers import gained

from klineage_tui.keys import shown_key
from klineage_tui.presentation.card_words import effect_words, feature_words, sentence
from klineage_tui.text.columns import clip, pad, width
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.card import Effect
    from klineage.skill.retrieval import Hit
    from klineage.skill.retrieval.index import Row
    from klineage.skill.retrieval.paths import Path as Way
    from klineage.skill.retrieval.paths import PathStep

    from klineage_tui.library_search import Found

_STATES = {"holds": "verdict-pass", "fails": "verdict-fail", "unknown": "verdict-warn"}
_WAY = {"there": ("there", "muted"), "next": ("next", "verdict-pass"), "later": ("later", "muted")}


@dataclass(frozen=True)
class Results:
    """Rows, and the id of the card that each is of ("" for headings and blanks)."""

    lines: list[Line] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def selectable(self) -> frozenset[int]:
        """The first row of each card."""
        return frozenset(i for i, name in enumerate(self.ids) if name and (not i or self.ids[i - 1] != name))

    def add(self, line: Line, card_id: str = "") -> None:
        self.lines.append(line)
        self.ids.append(card_id)


def result_rows(found: Found, cells: int) -> Results:
    """Every hit with its first reasons, every near miss with what it needs, then the lineages that lead on."""
    rows = Results()
    for title, hits in (("HOLDS HERE", found.hits), ("NOT YET", found.near)):
        if hits and found.names_target:
            _heading(rows, title, str(len(hits)))
        for hit in hits:
            _hit(rows, hit, cells)
    if found.ways:
        _heading(rows, "WAYS ON", "lineages that lead on from here, step by step")
        for way in found.ways:
            _way(rows, way, cells)
    for problem in found.problems:
        rows.add(compose(("BROKEN  ", "verdict-fail"), clip(sentence(problem), max(20, cells - 8))))
    return rows


def _heading(rows: Results, title: str, more: str) -> None:
    if rows.lines:
        rows.add(Line(""))
    rows.add(compose((title, "heading"), (f"  {more}", "muted")))


def _hit(rows: Results, hit: Hit, cells: int) -> None:
    row = hit.row
    gain, trust = best_effect(row.effects)
    mark = "  hypothesis" if row.status == "hypothesis" else ""
    room = cells - width(gain) - width(trust) - width(mark) - 4
    name = pad(clip(sanitize(row.id), max(8, room)), max(8, room))
    rows.add(compose((name, "strong"), (mark, "verdict-warn"), f"  {gain} ", (trust, "verdict-info")), row.id)
    if hit.needs:
        why = "; ".join(f"needs {n.what}" if n.kind == "requires" else n.why for n in hit.needs)
    else:
        why = "; ".join(match.why for match in hit.matches) or row.intent
    rows.add(compose(("  " + clip(sentence(why), max(20, cells - 3)), "muted")), row.id)


def best_effect(effects: Sequence[Effect]) -> tuple[str, str]:
    """The number to speak of and its trust: a time before a count, the largest first; of none, that there is none."""
    if not effects:
        return "no effect", ""
    best = max(effects, key=lambda e: (e.quantity == "time", e.gain))
    return f"{gained(best.gain, best.low, best.high)}x {best.quantity.replace('_', ' ')}", best.trust


def _way(rows: Results, way: Way, cells: int) -> None:
    left = len(way.left)
    rows.add(compose((sanitize(way.lineage), "strong"), (f"  {way.there} taken, {left} left", "muted")))
    for step in way.steps:
        rows.add(_way_step(step, cells), step.row.id)


def _way_step(step: PathStep, cells: int) -> Line:
    word, role = _WAY[step.state]
    needs = f"  after {', '.join(step.needs)}" if step.needs else ""
    name = clip(sanitize(step.row.id), max(8, cells - 10 - width(needs)))
    return compose(("  " + pad(word, 7), role), name, (sanitize(needs), "muted"))


def hit_lines(hit: Hit, cells: int, asked: str = "") -> list[Line]:
    """Why one card is found, whether each precondition holds, what it gains and what can go wrong; wrapped.

    asked: for what cards are looked for; the heading may have no room for all of it.
    """
    row = hit.row
    lines = _wrapped([("", "")], row.intent, cells, "strong")
    lines += [Line(""), compose(("WHY", "heading"))]
    for match in hit.matches:
        lines += _wrapped([(pad(match.dimension, 10), "muted")], match.why, cells)
    if not hit.matches:
        lines += _wrapped([], "no target was named: every card is listed", cells, "muted")
    if hit.needs:
        lines += [Line(""), compose(("NOT YET", "heading"))]
        for need in hit.needs:
            lines += _wrapped([(pad(need.kind, 10), "verdict-warn")], need.why, cells)
    lines += _conditions(hit, cells)
    lines += _gains(row, cells)
    if hit.caveats:
        lines += [Line(""), compose(("TO KNOW", "heading"))]
        for caveat in hit.caveats:
            lines += _wrapped([], caveat, cells)
    if asked:
        lines += [Line(""), compose(("LOOKED FOR", "heading")), *_wrapped([], asked, cells)]
    return lines


def _conditions(hit: Hit, cells: int) -> list[Line]:
    states = {checked.condition.key: checked for checked in hit.checked}
    lines = [Line(""), compose(("WHAT MUST HOLD FIRST", "heading"))] if hit.row.conditions else []
    for condition in hit.row.conditions:
        checked = states.get(condition.key)
        word = (
            (checked.state.upper(), _STATES[checked.state])
            if checked
            else (condition.outcome.upper(), "muted")
        )
        lines += _wrapped([(pad(word[0], 10), word[1])], condition.text, cells)
        if checked is not None:
            lines += _wrapped([(" " * 10, "")], checked.why, cells, "muted")
    return lines


def _gains(row: Row, cells: int) -> list[Line]:
    lines = [Line(""), compose(("WHAT IT GAINS", "heading"))] if row.effects else []
    for effect in row.effects:
        text, beside = effect_words(effect)
        lines += _wrapped(
            [(pad(effect.position, 10), "muted")], f"{text}  {' '.join(w for w, _ in beside if w)}", cells
        )
    if row.risks:
        lines += [Line(""), compose(("WHAT CAN GO WRONG", "heading"))]
        for risk in row.risks:
            lines += _wrapped([], risk, cells)
    contract = (("requires", row.requires), ("provides", row.provides), ("conflicts", row.conflicts))
    named = [(name, feature_words(features)) for name, features in contract if features]
    lines += [Line("")] if named else []
    for name, words in named:
        lines += _wrapped([(pad(name, 10), "muted")], words, cells)
    return lines


def _wrapped(label: Sequence[tuple[str, str]], text: str, cells: int, role: str = "") -> list[Line]:
    taken = sum(width(word) for word, _ in label)
    pieces = textwrap.wrap(sentence(text), max(16, cells - taken), break_on_hyphens=False) or [""]
    first = compose(*label, (pieces[0], role))
    return [first, *(compose(" " * taken, (piece, role)) for piece in pieces[1:])]


def heading(found: Found | None, query_words: str, hypotheses: bool) -> tuple[list[tuple[str, str]], str]:
    """The first row of the place: for what cards are looked for, and how many there are."""
    left = [("Library", "bold")]
    if found is None:
        return left, ""
    left.append((f"  {sanitize(found.target)}", "$foreground"))
    if query_words:
        left.append((f"  “{sanitize(query_words)}”", "$accent"))
    if found.failed:
        return left, ""
    hidden = f", {found.hidden} hidden" if found.hidden and not hypotheses else ""
    return left, f"{found.total} cards{hidden}"


def nothing_found(found: Found, keys: Mapping[str, str], hypotheses: bool) -> str:
    """What to do where no card was found."""
    key = {name: shown_key(bound) for name, bound in keys.items()}
    if found.failed:
        return f"{sanitize(found.failed)}. {key['library-search']} asks for something else."
    if not found.total:
        return f"No cards yet. {key['library-pull']} brings the shipped ones; {key['lift']} lifts your own from a sealed lineage."
    if found.hidden and not hypotheses:
        none = "holds here" if found.names_target else "says anything of this"
        return (
            f"No admitted card {none}. {key['library-all']} shows the {found.hidden} hypotheses too; "
            f"{key['library-search']} asks for something else."
        )
    return f"No card says anything of this. {key['library-search']} asks for something else."
