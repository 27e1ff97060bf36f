"""The queue of cards as rows: the state in a word first, then the card; and the heading of the place."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from klineage_tui.card_queue import CardQueue, Item, Standing, declares_gain
from klineage_tui.keys import shown_key
from klineage_tui.text.columns import clip, pad
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

_WORDS: dict[Standing, tuple[str, str]] = {
    "broken": ("BROKEN", "verdict-fail"),
    "disagreement": ("DISAGREES", "verdict-fail"),
    "stale": ("STALE", "verdict-warn"),
    "probe": ("PROBE", "verdict-info"),
    "accept": ("ACCEPT?", "verdict-info"),
    "try": ("TRY", "verdict-info"),
    "admitted": ("ok", "verdict-pass"),
    "retired": ("retired", "muted"),
}
_SIGNS: dict[Standing, str] = {
    "broken": "!",
    "disagreement": "!",
    "stale": "!",
    "retired": "x",
    "admitted": " ",
}
_WORD_CELLS = 10


def queue_lines(queue: CardQueue, cells: int) -> list[Line]:
    """One row a card, in the order given. A skipped card keeps its state and is drawn dim."""
    return [_row(item, cells) for item in queue.items]


def _row(item: Item, cells: int) -> Line:
    word, role = _WORDS[item.standing]
    sign = _SIGNS.get(item.standing, "?")
    dim = "muted" if item.skipped or item.standing == "retired" else ""
    name = clip(sanitize(item.id), max(8, cells - 2 - _WORD_CELLS))
    later = " later" if item.skipped else ""
    return compose(
        (f"{sign} ", dim or role), (pad(word, _WORD_CELLS), dim or role), (name, dim), (later, "muted")
    )


def queue_counts(queue: CardQueue) -> str:
    """``3 of 12 need you``, or that nothing does."""
    if not queue.items:
        return ""
    if not queue.needed:
        return f"none of {len(queue.items)} needs you"
    return f"{queue.needed} of {len(queue.items)} need{'s' * (queue.needed == 1)} you"


def card_heading(item: Item | None) -> list[tuple[str, str]]:
    """The first row of the place: which card, and where it stands."""
    left = [("Cards", "bold")]
    if item is None:
        return left
    left.append((f"  {sanitize(item.id)}", "$foreground"))
    if item.card is not None:
        status = "hypothesis → admitted?" if item.standing == "accept" else item.card.status
        left.append((f"  {status}", "$muted"))
    return left


def why_lines(item: Item, keys: Mapping[str, str], cells: int) -> list[Line]:
    """Why a card is where it is in the queue, and what to do about it; at most two rows."""
    word, role = _WORDS[item.standing]
    rows = textwrap.wrap(_why(item, keys, cells), _room(item, cells), break_on_hyphens=False)[:2] or [""]
    return [
        compose((word, role), f"  {rows[0]}"),
        *(Line(" " * (len(word) + 2) + row) for row in rows[1:]),
    ]


def cut_why(item: Item, keys: Mapping[str, str], cells: int) -> str:
    """All of the sentence that ``why_lines`` has no room for; empty where it has."""
    whole, shown = sanitize(" ".join(item.why.split())), _why(item, keys, cells)
    rows = textwrap.wrap(shown, _room(item, cells), break_on_hyphens=False)
    return "" if shown.startswith(whole) and len(rows) <= 2 else whole


def _room(item: Item, cells: int) -> int:
    return max(16, cells - len(_WORDS[item.standing][0]) - 2)


def _why(item: Item, keys: Mapping[str, str], cells: int) -> str:
    """The sentence and the key that goes on from here, which is never cut."""
    whole, hint = sanitize(" ".join(item.why.split())), next_hint(item, keys)
    if not hint:
        return whole
    # The rows break at words, so they hold somewhat less than their cells.
    text = clip(whole, max(8, 2 * _room(item, cells) - len(hint) - 14), "")
    return f"{whole.rstrip('.')}. {hint}" if text == whole else f"{text.rstrip(' .,;:')} … {hint}"


def next_hint(item: Item, keys: Mapping[str, str]) -> str:
    """The key that goes on from here; empty where nothing is to be done."""
    key = {name: shown_key(bound) for name, bound in keys.items()}
    trial = f"{key['card-try']} tries it on one"
    if item.card is not None and not declares_gain(item.card):
        trial = f"{key['ablation']} measures it alone, {key['card-retire']} retires it"
    hints: dict[Standing, str] = {
        "broken": f"{key['card-editor']} opens the file",
        "disagreement": f"{key['card-edit']} edits the field, {key['card-retire']} retires the card",
        "stale": f"{key['card-probe']} probes again"
        if item.marks.unprobed
        else f"{key['card-try']} tries it again",
        "probe": f"{key['card-probe']} on it probes it",
        "accept": f"{key['card-accept']} admits it",
        "try": trial,
    }
    return hints.get(item.standing, "")


def nothing_yet(keys: Mapping[str, str], sealed: Sequence[str]) -> str:
    """What to do in a library without cards. ``sealed``: the lineages that cards can be lifted from."""
    key = {name: shown_key(bound) for name, bound in keys.items()}
    pull = f"{key['library-pull']} brings the shipped cards, or another library's."
    if sealed:
        some = ", ".join(sealed[:3]) + (" …" if len(sealed) > 3 else "")
        return f"No cards yet. {key['lift']} lifts them from what is sealed: {some}. {pull}"
    return (
        f"No cards yet. A card is lifted from a sealed lineage: {key['seal']} in Induce ({key['induce']}) seals one, "
        f"then {key['lift']} lifts it. {pull}"
    )
