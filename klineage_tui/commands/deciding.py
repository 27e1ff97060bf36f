"""accept, reject, undo, redo: a person's decisions on a lineage."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.commands.automatic import add_proposer, limit_of, proposer_of
from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_lineage,
    add_trust,
    opened_walk,
    print_json,
    say,
    say_step,
    shown_command,
    step_row,
)

if TYPE_CHECKING:
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk


def _add_choice(parser: argparse.ArgumentParser, verb: str) -> None:
    """Which proposal is meant, or which file in its place, and what the step is called."""
    parser.add_argument(
        "number", nargs="?", type=int, default=1, metavar="N", help="which proposal (default: the first)"
    )
    parser.add_argument(
        "--hunks", metavar="LIST", help="only these changes of it, e.g. 1,3-5; propose --diff numbers them"
    )
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help=f"{verb} this file of yours instead of a proposal"
    )
    add_proposer(parser)
    parser.add_argument("--title", default="", metavar="TEXT", help="what your step does, in a few words")
    parser.add_argument(
        "--action", default="", metavar="A", help="what your step removes: a word such as pipeline"
    )
    parser.add_argument(
        "--new-word", action="store_true", help="take --action as it is, though it is almost a known word"
    )
    parser.add_argument(
        "--removes", action="extend", nargs="*", metavar="FEATURE",
        help="the features that your step removes, each a name or 'locus / name' (default: what is seen gone)",
    )  # fmt: skip


def accept_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    _add_choice(parser, "accept")
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
    _add_choice(parser, "reject")
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

        if arguments.hunks is not None:
            raise KlineageError("--hunks are those of a proposal; leave out --file, or edit the file")
        return walk.edited(read_bytes(arguments.file), **_said(arguments))
    if arguments.hunks is None:
        if arguments.title or arguments.action or arguments.removes is not None:
            raise KlineageError(
                "--title, --action and --removes name a step of yours; give --file or --hunks too, or leave them out: "
                "a proposal has its own"
            )
        return _proposal(walk, arguments)
    base = _proposal(walk, arguments)
    part = walk.part(base, _numbers(arguments.hunks))
    named = bool(arguments.title or arguments.action or arguments.removes is not None)
    return walk.edited(part.source, base=base, **_said(arguments)) if named else part


def _said(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the person says of their step, in the words of ``Walk.edited``."""
    from klineage.proposer import vocabulary

    action: str = arguments.action
    if action and not arguments.new_word:
        try:
            action = vocabulary.checked(action, known=("edit",))
        except KlineageError as error:
            raise KlineageError(f"--action: {error} (--new-word takes it as it is)") from error
    return {
        "title": arguments.title,
        "action": action,
        "removes": arguments.removes,
        "new_word": arguments.new_word,
    }


def _proposal(walk: Walk, arguments: argparse.Namespace) -> Candidate:
    if arguments.proposer != "rules":
        return _answered(walk, arguments)
    number: int = arguments.number
    candidates = walk.candidates()
    if not 1 <= number <= len(candidates):
        raise KlineageError(
            f"{walk.id} has {plural(len(candidates), 'proposal')}, not a number {number}; "
            f"{shown_command(arguments, f'propose {walk.id}')} lists them"
        )
    return candidates[number - 1]


def _answered(walk: Walk, arguments: argparse.Namespace) -> Candidate:
    """The answer of another proposer: the one that was asked for and not decided on, else a new one."""
    attempt = next(iter(walk.ask(proposer_of(walk, arguments, limit_of(arguments)))), None)
    if attempt is None:
        raise KlineageError(f"{arguments.proposer} sees nothing left to take out of {walk.id}")
    if attempt.candidate is None or attempt.problem:
        raise KlineageError(f"{arguments.proposer} has no proposal for {walk.id}: {attempt.problem}")
    return attempt.candidate


def _numbers(text: str) -> set[int]:
    """``1,3-5`` as numbers. Raises KlineageError for anything else."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 12:
            raise KlineageError(f"--hunks cannot be {text!r}; write numbers like 1,3 or 2-4")
        low, high = int(first), int(last or first)
        if high - low > 100_000:
            raise KlineageError(f"--hunks cannot be {text!r}; no proposal has so many changes")
        numbers |= set(range(low, high + 1))
    return numbers


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
