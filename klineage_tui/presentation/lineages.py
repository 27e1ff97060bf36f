"""The list of lineages as lines, and what to do with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from klineage_tui.keys import shown_key
from klineage_tui.text.columns import pad, widest
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.lineage import Summary


_STEPS = 12  # cells of "not started"


def lineage_lines(summaries: Sequence[Summary]) -> list[Line]:
    """One row a lineage: id, how far it was walked, and what it is; or what is broken."""
    ids = [sanitize(summary.id) for summary in summaries]
    cells = widest(ids) + 3
    return [
        compose((pad(id, cells), "strong"), *_progress(summary))
        for id, summary in zip(ids, summaries, strict=True)
    ]


def _progress(summary: Summary) -> list[tuple[str, str]]:
    if summary.problem:
        return [(sanitize(summary.problem), "verdict-fail")]
    steps = f"{summary.steps:>3} step{' ' if summary.steps == 1 else 's'}" if summary.steps else "not started"
    return [
        (pad(steps, _STEPS), "muted"),
        (pad("sealed" if summary.sealed else "", _STEPS), "verdict-pass"),
        (sanitize(summary.title), ""),
    ]


def welcome(path: str, keys: Mapping[str, str], *, empty: bool) -> list[tuple[str, str]]:
    """What the list is for and what to do first, as styled parts; ``keys`` are the keys in force."""
    key = {name: (shown_key(bound), "$accent") for name, bound in keys.items()}
    yours = [
        ("A kernel of your own, in a shell:\n", "$muted"),
        (f"  klineage new KERNEL --workload gemm -w {sanitize(shlex.quote(path))}", "$foreground"),
    ]
    if empty:
        return [("No kernel was opened in this workspace yet.\n\n", "$foreground"), *yours]
    return [
        ("Each row is an expert kernel and the walk that takes it apart.\n\n", "$foreground"),
        key["open"],
        (" opens one: its source, and a first proposal to simplify it.\n", "$muted"),
        key["gate"],
        (" gates a proposal: is it still correct, and what does it cost? Then ", "$muted"),
        key["accept"],
        (" accepts it, ", "$muted"),
        key["reject"],
        (" rejects it. When nothing is left, ", "$muted"),
        key["seal"],
        (" seals the walk: the same steps from the naive form back to the expert.\n", "$muted"),
        key["help"],
        (" shows every key. Every decision is a git commit, and can be undone.\n\n", "$muted"),
        *yours,
    ]
