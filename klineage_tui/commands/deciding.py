"""accept, reject, undo, redo: a person's decisions on a lineage."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_lineage,
    add_trust,
    opened_walk,
    plural,
    print_json,
    say,
    say_step,
    step_row,
)

if TYPE_CHECKING:
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk


def accept_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    parser.add_argument(
        "number", nargs="?", type=int, default=1, metavar="N", help="which proposal (default: the first)"
    )
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="accept this file of yours instead of a proposal"
    )
    parser.add_argument(
        "--title", default="", metavar="TEXT", help="with --file: what it does, in a few words"
    )
    parser.add_argument("--why", default="", help="a word for the record")
    add_host(parser)
    add_json(parser)
    return _accept


def _accept(arguments: argparse.Namespace) -> int:
    with opened_walk(arguments) as walk:
        candidate = _chosen(walk, arguments)
        report = walk.gate(candidate)
        step = walk.accept(candidate, report, why=arguments.why)
        print_json(step_row(step)) if arguments.json else say_step(step)
    return 0


def reject_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "number", nargs="?", type=int, default=1, metavar="N", help="which proposal (default: the first)"
    )
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="reject this file of yours instead of a proposal"
    )
    parser.add_argument(
        "--title", default="", metavar="TEXT", help="with --file: what it does, in a few words"
    )
    parser.add_argument("--why", required=True, help="the reason, kept as evidence")
    add_json(parser)
    return _reject


def _reject(arguments: argparse.Namespace) -> int:
    with opened_walk(arguments) as walk:
        step = walk.reject(_chosen(walk, arguments), None, why=arguments.why)
        print_json(step_row(step)) if arguments.json else say_step(step)
    return 0


def _chosen(walk: Walk, arguments: argparse.Namespace) -> Candidate:
    if arguments.file is not None:
        from klineage.walk.reading import read_bytes

        return walk.edited(read_bytes(arguments.file), title=arguments.title)
    if arguments.title:
        raise KlineageError(
            "--title names a file of yours; give --file too, or leave it out: a proposal has a title"
        )
    candidates = walk.candidates()
    number: int = arguments.number
    if not 1 <= number <= len(candidates):
        raise KlineageError(
            f"{walk.id} has {plural(len(candidates), 'proposal')}, not a number {number}; klineage propose {walk.id} lists them"
        )
    return candidates[number - 1]


def undo_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_json(parser)
    return lambda arguments: _move(arguments, "undo")


def redo_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_json(parser)
    return lambda arguments: _move(arguments, "redo")


def _move(arguments: argparse.Namespace, direction: str) -> int:
    with opened_walk(arguments) as walk:
        what = walk.undo() if direction == "undo" else walk.redo()
        if arguments.json:
            print_json({"id": walk.id, direction: what, "head": step_row(walk.state().head)})
        else:
            say(f"{walk.id}: {direction} {what}")
    return 0


COMMANDS = {
    "accept": accept_command,
    "reject": reject_command,
    "undo": undo_command,
    "redo": redo_command,
}
