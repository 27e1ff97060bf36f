"""propose --proposer, record, replay: one answer of a model or a command, and conversations in files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.commands.automatic import add_proposer, limit_of, proposer_of
from klineage_tui.commands.common import (
    Run,
    add_json,
    add_lineage,
    opened_walk,
    print_json,
    say,
    shown_command,
)

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.proposer.base import Attempt, ProposerEvent
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Whom to ask, for what money, with which words."""
    add_proposer(parser)
    parser.add_argument("--hint", default="", metavar="TEXT", help="a word to the proposer")
    parser.add_argument(
        "--fresh", action="store_true",
        help="ask anew, also where an answer that was paid for has not been decided on",
    )  # fmt: skip


def ask(arguments: argparse.Namespace) -> int:
    """Ask a proposer once for the current state, and show what it answers.

    Raises KlineageError, after what there is to show, for an answer that cannot be used.
    """
    limit = limit_of(arguments)
    with opened_walk(arguments) as walk:
        proposer = proposer_of(walk, arguments, limit)
        listen = None if arguments.json else _Listener()
        attempt = next(iter(walk.ask(proposer, arguments.hint, listen)), None)
        if listen is not None:
            listen.end()
        row = answer_row(walk, attempt)
        if arguments.json:
            print_json([] if row is None else [row])
        else:
            _say_answer(walk, arguments, row)
        if row is not None and row["number"] is None:
            raise KlineageError(f"{proposer.name} made no proposal: {row['problem']}")
    return 0


def candidate_row(candidate: Candidate, number: int, kernel: Kernel, *, numbered: bool) -> dict[str, Any]:
    """A candidate for a kernel in the keys of ``propose --json``. numbered: the changes of its diff are."""
    from klineage_tui.text.unified import unified_diff

    return {
        "number": number,
        "title": candidate.title,
        "action": candidate.action,
        "locus": candidate.locus,
        "removes": [str(feature) for feature in candidate.removes],
        "settings": candidate.settings,
        "preconditions": candidate.preconditions,
        "rationale": candidate.rationale,
        "proposer": candidate.proposer,
        "rejected": None,
        "diff": unified_diff(kernel.source, candidate.source, kernel.filename, numbered=numbered),
    }


_NO_CANDIDATE: dict[str, Any] = {
    "number": None, "title": "", "action": "", "locus": "", "removes": [], "settings": {}, "preconditions": [],
    "rationale": "", "rejected": None, "diff": "",
}  # fmt: skip


def answer_row(walk: Walk, attempt: Attempt | None) -> dict[str, Any] | None:
    """An answer in the keys of ``propose --json``; ``number`` is null where it is no candidate."""
    if attempt is None:
        return None
    candidate = attempt.candidate if not attempt.problem else None
    row = _NO_CANDIDATE
    if candidate is not None:
        row = candidate_row(candidate, 1, walk.state().kernel, numbered=False)
    said = {name: getattr(attempt, name) for name in ("proposer", "problem", "notes", "call")}
    return {**row, **said}


class _Listener:
    """Shows an answer as it comes: its text on stdout, made visible line by line, what it does now on stderr."""

    def __init__(self) -> None:
        self._open = ""

    def __call__(self, event: ProposerEvent) -> None:
        if event.kind == "text":
            *lines, self._open = (self._open + event.text).split("\n")
            for line in lines:
                say(f"  | {line}")
            sys.stdout.flush()
            return
        from klineage_tui.text.sanitize import sanitize

        self.end()
        print(sanitize(event.text), file=sys.stderr)

    def end(self) -> None:
        """Show the last line, which nothing has ended."""
        if self._open:
            say(f"  | {self._open}")
        self._open = ""


def _say_answer(walk: Walk, arguments: argparse.Namespace, row: dict[str, Any] | None) -> None:
    if row is None:
        say(
            f"{walk.id}: {arguments.proposer} sees nothing left to take out; "
            f"{shown_command(arguments, f'seal {walk.id}')} ends the walk"
        )
        return
    for note in row["notes"]:
        say(f"     {note}")
    if row["number"] is None:
        return
    say(f"  1  {row['title']:<46} {row['action']:<20} {row['locus']}")
    if arguments.diff:
        say(str(row["diff"]))
    budget = f" --budget {arguments.budget}" if arguments.budget else ""
    words = f"accept {walk.id} --proposer {arguments.proposer}{budget}"
    say(f"{shown_command(arguments, words)} gates it and takes it")


def record_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="the recording to begin, or to go on with")
    add_asking(parser)
    parser.set_defaults(proposer="model", record=None)
    parser.add_argument("--diff", action="store_true", help="print the proposal's diff too")
    add_json(parser)
    return _record


def _record(arguments: argparse.Namespace) -> int:
    arguments.record = arguments.file
    return ask(arguments)


def replay_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("file", metavar="FILE", type=Path, help="the recording")
    parser.add_argument("--text", action="store_true", help="print the answers too, as they came")
    add_json(parser)
    return _replay


def _replay(arguments: argparse.Namespace) -> int:
    from klineage.proposer.recording import recorded

    found = recorded(arguments.file)
    if arguments.json:
        print_json(found)
        return 0
    for number, conversation in enumerate(found["conversations"], start=1):
        for line in _told(number, conversation):
            say(line)
        if arguments.text:
            for line in conversation["text"].split("\n"):
                say(f"  | {line}")
    count = plural(len(found["conversations"]), "question")
    say(f"{count}; klineage walk ID --proposer replay:{arguments.file} walks with these answers")
    return 0


def _told(number: int, conversation: dict[str, Any]) -> list[str]:
    """One question and its answers, a line each."""
    question = conversation["question"]
    kernel = question["kernel"]
    facts = [f"{question['workload']['name']} {kernel['surface']}, kernel {kernel['hash'][:12]}"]
    if question["goal"]:
        facts.append(f"to add {question['goal']['action']}")
    if question["tried"]:
        facts.append(f"{len(question['tried'])} tried before")
    if question["hint"]:
        facts.append(f"told: {question['hint']}")
    lines = [f"{number:>3}  {'; '.join(facts)}"]
    for attempt in conversation["attempts"]:
        said = attempt["candidate"]
        answer = attempt["problem"] or (
            f"{said['title']}  {said['action']}  {said['locus']}" if said else "nothing"
        )
        lines.append(f"     {attempt['proposer']}: {answer}")
    if conversation["ended"]:
        lines.append("     nothing more to say")
    return lines


COMMANDS: dict[str, Callable[[argparse.ArgumentParser], Run]] = {
    "record": record_command,
    "replay": replay_command,
}
