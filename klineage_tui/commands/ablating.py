"""ablate: what each optimization of a lineage is worth alone, and which stand on others."""

from __future__ import annotations

import argparse

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


def ablate_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    add_host(parser)
    add_json(parser)
    return _ablate


def _ablate(arguments: argparse.Namespace) -> int:
    from klineage.skill.ablation import ablate

    from klineage_tui.presentation.ablation import ablation_row, lines

    with opened_walk(arguments) as walk:
        found = ablate(walk.workspace, walk.id, on_progress=None if arguments.json else say)
    if arguments.json:
        print_json(ablation_row(found))
        return 0
    say()
    for line in lines(found):
        say(line)
    return 0


COMMANDS = {"ablate": ablate_command}
