"""The list of lineages as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage_tui.text.columns import pad, widest
from klineage_tui.text.line import Line, compose
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage.lineage import Summary


def lineage_lines(summaries: Sequence[Summary]) -> list[Line]:
    """One row a lineage: id, what it is, how far it was walked, or what is broken."""
    ids = [sanitize(summary.id) for summary in summaries]
    titles = [sanitize(summary.title) for summary in summaries]
    id_cells, title_cells = widest(ids), widest(titles)
    return [
        compose(
            (pad(id, id_cells + 3), "strong"),
            pad(title, title_cells + 3),
            *_progress(summary),
        )
        for id, title, summary in zip(ids, titles, summaries, strict=True)
    ]


def _progress(summary: Summary) -> list[tuple[str, str]]:
    if summary.problem:
        return [(sanitize(summary.problem), "verdict-fail")]
    steps = f"{summary.steps:>3} step{' ' if summary.steps == 1 else 's'}"
    return [(steps, "muted"), ("   sealed" if summary.sealed else "", "verdict-pass")]
