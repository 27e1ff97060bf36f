"""The worth of each optimization as rows of the app: a matrix, and everything that is known of one step."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage_tui.presentation.card_words import feature_words, sentence
from klineage_tui.text.columns import clip, pad, widest
from klineage_tui.text.line import Line, compose
from klineage_tui.text.numbers import latency
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.skill.ablation import Ablation, Offer, Row, Worth
    from klineage.skill.trial import Gain

_HEAD = ("optimization", "first", "in order", "last")
_GAP = 2
_LEAST = 14  # cells of a number where the pane is narrow: "does not apply"
_LABEL = 10
_COUNTS = 4  # of a gate that counted, how many are told


def matrix_lines(found: Ablation, cells: int) -> list[Line]:
    """A header and one row a step. A cell that pays is bold in the colour of a pass, one that costs in that of a failure."""
    names, stands = [sanitize(row.name) for row in found.rows], [_stands_on(row) for row in found.rows]
    table = next(
        (t for t in (_told(found, tagged=True), _told(found)) if _wide(names, t, stands) <= cells), None
    )  # fmt: skip
    after, name = "stands on", widest([_HEAD[0], *names])
    if table is None:  # others by their numbers alone, and cells that are cut
        table, after, stands = _told(found), "after", [stand.partition(" ")[0] for stand in stands]
        table = [[_cut(text) for text in row] for row in table]
    numbers = [widest([h, *column]) for h, column in zip(_HEAD[1:], zip(*table, strict=True), strict=True)]
    name = max(8, min(name, cells - sum(numbers) - widest([after, *stands]) - 4 * _GAP))
    head = [
        pad(clip(_HEAD[0], name), name),
        *(pad(h, n, "right") for h, n in zip(_HEAD[1:], numbers, strict=True)),
        after,
    ]
    lines = [compose(("  ".join(head), "muted"))]
    for row, title, texts, stand in zip(found.rows, names, table, stands, strict=True):
        parts: list[tuple[str, str]] = [(pad(clip(title, name), name), "strong")]
        for text, number, worth in zip(texts, numbers, _places(row), strict=True):
            parts.append(("  " + pad(text, number, "right"), _role(worth)))
        lines.append(compose(*parts, ("  " + stand, "accent")))
    return lines


def _told(found: Ablation, *, tagged: bool = False) -> list[list[str]]:
    """The cells of each row. tagged: each number with its trust, where they are not all known in the same way."""
    from klineage.skill.ablation import told

    worths = [worth for row in found.rows for worth in _places(row) if worth.measured]
    tagged = tagged and len({_leading(worth).trust for worth in worths}) > 1
    return [
        [
            sanitize(f"{told(worth)} {_leading(worth).trust}" if tagged and worth.measured else told(worth))
            for worth in _places(row)
        ]
        for row in found.rows
    ]


def _wide(names: Sequence[str], table: Sequence[Sequence[str]], stands: Sequence[str]) -> int:
    """The cells of the matrix."""
    columns = zip(*table, strict=True)
    numbers = sum(widest([head, *column]) for head, column in zip(_HEAD[1:], columns, strict=True))
    name = widest([_HEAD[0], *names])
    return name + numbers + widest(["stands on", *stands]) + 4 * _GAP


def _cut(text: str) -> str:
    """A cell in less room: what is within noise keeps its number, a count its first letters."""
    return clip(text.replace("x, within noise", "x, noise"), _LEAST)


def _leading(worth: Worth) -> Gain:
    """The number that a cell shows."""
    return worth.gain or worth.measured[0]


def _places(row: Row) -> tuple[Worth, Worth, Worth]:
    return row.first, row.in_order, row.last


def _stands_on(row: Row) -> str:
    return sanitize(", ".join(row.needs))


def _role(worth: Worth) -> str:
    if worth.gain is not None:
        return "verdict-pass" if worth.pays else "verdict-fail"
    return "verdict-warn" if worth.report is not None and worth.problem else "muted"


def row_lines(row: Row, card: str, offer: Offer | None, cells: int) -> list[Line]:
    """One step in all its places, each number with its trust; what it stands on, and what its card could require."""
    lines: list[Line] = []
    for label, worth in zip(("first", "in order", "last"), _places(row), strict=True):
        lines += _worth(label, worth, cells)
    for worth in row.prefixes:
        lines += _worth(f"on {worth.state}", worth, cells)
    if row.why:
        lines += _wrapped("stands on", row.why, cells, "accent")
    said = sanitize(card) or "none was lifted from this step"
    lines += _wrapped("card", said, cells, "" if card else "muted")
    if offer is not None:
        lines += _wrapped("offer", offer_words(offer), cells)
    return lines


def offer_words(offer: Offer) -> str:
    """``its card could require layout_pack in its function, and be believed only where layout_pack is there``."""
    required, prior = feature_words(offer.requires), ", ".join(offer.prior_actions)
    return f"its card could require {required}, and be believed only where {prior} is there"


def _worth(label: str, worth: Worth, cells: int) -> list[Line]:
    if not worth.state:
        return _wrapped(label, "nobody has written down what it is worth here", cells, "muted")
    where = f"taken out of {worth.state}" if worth.position == "last" else f"on {worth.state}"
    if worth.measured:
        role = _role(worth) if worth.gain is not None else ""
        return _wrapped(label, f"{_gains(worth)}; {where}", cells, role)
    return _wrapped(label, f"{worth.problem}", cells, _role(worth))


def _gains(worth: Worth) -> str:
    """The gain to speak of with its numbers, and of counts the others that changed."""
    leading = _leading(worth)
    if not leading.exact:
        noise = "" if worth.gain is not None else ", within noise"
        times = f"{latency(leading.before)} to {latency(leading.after)}" if leading.before else ""
        return f"{leading}{f' ({leading.timer})' if leading.timer else ''}{noise}" + (times and f", {times}")
    if worth.gain is None:
        return f"the same work, {leading.trust}"
    others = [gain for gain in worth.measured if gain != leading and gain.shown]
    return "; ".join(map(_counted, (leading, *others[: _COUNTS - 1])))


def _counted(gain: Gain) -> str:
    return f"{gain}, {gain.before:,.0f} to {gain.after:,.0f}"


def _wrapped(label: str, text: str, cells: int, role: str = "") -> list[Line]:
    pieces = textwrap.wrap(sentence(text), max(16, cells - _LABEL), break_on_hyphens=False) or [""]
    first = compose((pad(label, _LABEL), "muted"), (pieces[0], role))
    return [first, *(compose(" " * _LABEL, (piece, role)) for piece in pieces[1:])]


def known_how(found: Ablation, measured: str) -> str:
    """How the numbers are known, and since when: ``measured-cpu, thread_cpu_time; 2026-11-29 12:00``."""
    from klineage.skill.ablation import trusts

    how = "; ".join(trusts(found.rows)) or "nothing was measured"
    return f"{how}; {measured[:16].replace('T', ' ') if measured else 'from steps and cards'}"
