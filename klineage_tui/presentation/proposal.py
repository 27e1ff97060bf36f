"""A proposal as text: its title, what it takes away and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klineage_tui.text.columns import clip
from klineage_tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from klineage_tui.proposals import Proposal, Queue
    from klineage_tui.text.diff import LineOp


_SETTINGS_CELLS = 76  # a row of the narrowest terminal, two of a column beside others


def proposal_title(queue: Queue) -> tuple[list[tuple[str, str]], str]:
    """The pane's title at its two ends: position and what it does; where it stands."""
    current = queue.current
    if current is None:
        return [("PROPOSAL", "")], ""
    left = [
        (f"PROPOSAL {queue.position + 1} of {len(queue.proposals)}  ", ""),
        (sanitize(current.candidate.title), "$foreground"),
    ]
    return left, "" if current.standing == "pending" else current.standing


def about(proposal: Proposal) -> list[tuple[str, str]]:
    """What stands above the diff, as styled parts: who takes what away where; why; the settings that go.

    Settings come last and in few words: they may be long, and the diff shows them too.
    """
    candidate = proposal.candidate
    names = ", ".join(dict.fromkeys(feature.name for feature in candidate.removes))
    settings = "  ".join(f"{name}={value}" for name, value in candidate.settings.items())
    who = "a person's edit" if proposal.edited else sanitize(candidate.proposer)
    parts = [
        (f"{who} removes {'' if names or not proposal.edited else 'no feature: '}", "$muted"),
        (sanitize(names or candidate.action), "$foreground"),
        (" at ", "$muted"),
        (sanitize(candidate.locus), "$foreground"),
    ]
    why = f"rejected here: {proposal.reason}" if proposal.standing == "rejected" else candidate.rationale
    parts.append(("\n" + sanitize(" ".join(why.split())), "$foreground"))
    return (
        [*parts, ("\n" + clip("settings: " + sanitize(settings), _SETTINGS_CELLS), "$muted")]
        if settings
        else parts
    )


def touched_lines(ops: Sequence[LineOp]) -> list[int]:
    """The lines of the old text, from 0, that are changed, or before which something is inserted."""
    rows: list[int] = []
    for op in ops:
        if op.tag != "equal":
            rows += range(op.a0, max(op.a1, op.a0 + 1))
    return rows


def queue_text(queue: Queue) -> str:
    """How much is left to decide: ``3 to decide, 1 skipped``."""
    parts = [f"{queue.pending} to decide"]
    parts += [f"{n} {word}" for word in ("skipped", "rejected") if (n := queue.count(word))]
    return ", ".join(parts)
