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
    from klineage.skill.library import Library


def ablate_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "--record", action="store_true",
        help="write what each is worth first and last into the cards that were lifted from it",
    )  # fmt: skip
    parser.add_argument(
        "--kept", action="store_true",
        help="gate nothing: show the ablation that was kept last, or else what its steps and the cards say",
    )  # fmt: skip
    add_trust(parser)
    add_host(parser)
    add_json(parser)
    return _ablate


def _ablate(arguments: argparse.Namespace) -> int:
    from klineage.skill.ablation.cards import record
    from klineage.skill.library import Library

    from klineage_tui.presentation.ablation import ablation_row, lines

    with opened_walk(arguments) as walk:
        library = Library.of(walk.workspace)
        found = _found(arguments, walk.workspace, library, walk.id)
        recorded = record(library, found) if arguments.record else ()
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


def _found(
    arguments: argparse.Namespace, workspace: Workspace, library: Library, lineage_id: str
) -> Ablation:
    """The ablation that is asked for: measured and kept, or what is kept already."""
    from klineage.skill.ablation import ablate, keep, kept
    from klineage.skill.ablation.recalling import recalled

    if arguments.kept:
        here = kept(workspace, lineage_id)
        return here.ablation if here is not None else recalled(workspace, library, lineage_id)
    found = ablate(workspace, lineage_id, on_progress=None if arguments.json else say)
    keep(workspace, found)
    return found


COMMANDS = {"ablate": ablate_command}
