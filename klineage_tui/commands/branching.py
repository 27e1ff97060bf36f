"""branch: going on from any state as a lineage of its own."""

from __future__ import annotations

import argparse

from klineage_tui.commands.common import (
    Run,
    add_json,
    add_lineage,
    find_step,
    opened_walk,
    print_json,
    say,
    step_row,
)


def branch_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument("step", metavar="STEP", help="the state to go on from, named as in show")
    parser.add_argument("--as", dest="new_id", default="", metavar="NEW", help="the id of the new lineage")
    add_json(parser)
    return _branch


def _branch(arguments: argparse.Namespace) -> int:
    from klineage.walk import Walk
    from klineage.walk.branching import branch

    with opened_walk(arguments) as walk:
        new_id = branch(walk, find_step(walk, arguments.step), arguments.new_id)
        head = Walk(walk.workspace, new_id).state().head
    if arguments.json:
        print_json({"id": new_id, "of": arguments.id, "head": step_row(head)})
    else:
        say(f"{new_id}: goes on from step {head.number} of {arguments.id}: {head.subject}")
    return 0


COMMANDS = {"branch": branch_command}
