"""ablate: what each optimization of a lineage is worth alone, and which stand on others."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_lineage,
    add_trust,
    opened_walk,
    print_json,
    say,
)

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.skill.ablation import Ablation
    from klineage.skill.card import Card


def ablate_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "--record", action="store_true",
        help="write what each is worth first and last into the cards that were lifted from it",
    )  # fmt: skip
    add_trust(parser)
    add_host(parser)
    add_json(parser)
    return _ablate


def _ablate(arguments: argparse.Namespace) -> int:
    from klineage.skill.ablation import ablate

    from klineage_tui.presentation.ablation import ablation_row, lines

    with opened_walk(arguments) as walk:
        found = ablate(walk.workspace, walk.id, on_progress=None if arguments.json else say)
        recorded = _record(walk.workspace, found) if arguments.record else ()
    if arguments.json:
        print_json({**ablation_row(found), "recorded": list(recorded)})
        return 0
    say()
    for line in lines(found):
        say(line)
    if arguments.record:
        say(
            f"written into {', '.join(recorded)}"
            if recorded
            else "no card here was lifted from what was measured"
        )
    return 0


def _record(workspace: Workspace, found: Ablation) -> tuple[str, ...]:
    """Write the effects into the library's cards; returns the ids of those that it says something of."""
    from klineage.skill.ablation.cards import ablated
    from klineage.skill.library import Library

    library, done = Library.of(workspace), []
    for entry in library.cards():
        if entry.card is None:
            continue
        reports = ablated(entry.card, found)[1]
        if not reports:
            continue

        def change(now: Card) -> Card:
            return ablated(now, found)[0]

        title = f"Measure {entry.id} first and last on {found.lineage}"
        library.update(entry.id, change, reason="ablation", title=title, reports=reports, machine=True)
        done.append(entry.id)
    return tuple(done)


COMMANDS = {"ablate": ablate_command}
