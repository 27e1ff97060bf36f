"""walk: walking backward by itself, or with a person's word on each step, by any proposer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural
from klineage.proposer.settings import NO_BUDGET

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
    from threading import Event

    from klineage.gate import GateEvent, Report
    from klineage.ledger import Limit, Meter
    from klineage.proposer.base import Attempt, Proposer, ProposerEvent
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk, WalkLimits
    from klineage.walk.automatic import Decide, WalkOutcome


def walk_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    add_proposer(parser)
    parser.add_argument(
        "--policy", choices=["auto", "ask"], default="auto",
        help="auto takes what passes the gate; ask asks you first (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--best-of", type=int, default=1, metavar="N",
        help="ask for N candidates a step, and take the one that passes and changes the fewest lines (default: 1)",
    )  # fmt: skip
    parser.add_argument("--hint", default="", metavar="TEXT", help="a word to the proposer")
    parser.add_argument("--max-steps", type=int, metavar="N", help="stop after N accepted steps")
    parser.add_argument(
        "--max-rejections", type=int, metavar="N",
        help="stop after N attempts in a row that failed (default: 20 of the rules, else 5)",
    )  # fmt: skip
    parser.add_argument("--max-minutes", type=float, metavar="M", help="begin nothing new after M minutes")
    add_host(parser)
    add_json(parser)
    return _walk


def add_proposer(parser: argparse.ArgumentParser) -> None:
    """Who proposes, and what it may spend."""
    parser.add_argument(
        "--proposer", default="rules", metavar="NAME",
        help="who proposes: rules, model[:ID], command:NAME, replay:FILE (default: rules)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", metavar="DOLLARS",
        help=f"what the calls for this lineage may cost, all runs together; a model needs one, or '{NO_BUDGET}'",
    )  # fmt: skip
    parser.add_argument(
        "--record", type=Path, metavar="FILE",
        help="add every question and its answer to this file, without secrets; replay:FILE answers from it",
    )  # fmt: skip


def limit_of(arguments: argparse.Namespace) -> Limit | None:
    """The dollar limit of a command; None for no limit. Raises KlineageError where a paid proposer has none."""
    from klineage.ledger import Limit, parse_dollars

    if arguments.budget is None:
        if arguments.proposer.partition(":")[0] == "model":
            raise KlineageError(
                f"{arguments.proposer} costs money: say --budget DOLLARS for what this lineage may cost in all, "
                f"or --budget {NO_BUDGET}"
            )
        return None
    if arguments.budget == NO_BUDGET:
        return None
    return Limit(parse_dollars(arguments.budget, "--budget"), arguments.id)


def proposer_of(walk: Walk, arguments: argparse.Namespace, limit: Limit | None) -> Proposer:
    """The proposer that a command names."""
    from klineage.proposer.registry import Context, proposer_named

    from klineage_tui.config import load_config

    context = Context(
        walk.workspace.git.place, walk.id, load_config().proposer,
        limits=(limit,) if limit else (), fresh=getattr(arguments, "fresh", False), record=arguments.record,
    )  # fmt: skip
    return proposer_named(arguments.proposer, context)


def _limits(arguments: argparse.Namespace) -> WalkLimits:
    from klineage.walk import WalkLimits

    from klineage_tui.proposers import failures_in_a_row

    for name in ("max_steps", "max_rejections", "best_of"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise KlineageError(f"--{name.replace('_', '-')} needs a whole number of at least 1")
    minutes = arguments.max_minutes
    if minutes is not None and not 0 < minutes < 1e6:
        raise KlineageError("--max-minutes needs a number of minutes above 0")
    seconds = None if minutes is None else 60 * minutes
    failures = arguments.max_rejections or failures_in_a_row(arguments.proposer)
    return WalkLimits(arguments.max_steps, failures, seconds)


def _say_what_stays(walk: Walk, proposer: str, arguments: argparse.Namespace) -> None:
    """The simplest form that somebody reaches is not always one without mechanisms."""
    from klineage.proposer.rules import why_not

    state = walk.state()
    if proposer != "rules":
        if names := dict.fromkeys(feature.name for feature in state.features):
            say(f"{proposer} sees nothing more to take out; the detectors still see {', '.join(names)}")
        return
    stays = why_not(state.kernel)
    if stays:
        seen = plural(len(stays), "mechanism")
        told = shown_command(arguments, f"propose {walk.id} --all")
        say(f"rules see {seen} that they cannot take out ({told} says why)")


def _walk(arguments: argparse.Namespace) -> int:
    import threading

    from klineage.ledger import Ledger, Meter
    from klineage.walk import Listener, walk_automatically

    if arguments.policy == "ask" and arguments.json:
        raise KlineageError("--policy ask asks in text; leave --json out")
    limits, limit = _limits(arguments), limit_of(arguments)
    cancel = threading.Event()
    with opened_walk(arguments) as walk:
        proposer = proposer_of(walk, arguments, limit)
        meter = Meter(Ledger.of(walk.workspace.git.place), walk.id, limit)
        quiet = arguments.json
        if not quiet:
            _say_estimate(walk, meter, proposer.name, arguments)
        status = _Status()
        outcome = walk_automatically(
            walk,
            limits,
            proposer=proposer,
            hint=arguments.hint,
            best_of=arguments.best_of,
            decide=_asking(walk, cancel) if arguments.policy == "ask" else None,
            listener=Listener(
                on_step=None if quiet else say_step,
                on_attempt=None if quiet else _told(meter),
                on_answer=status.answer,
                on_gate=status.gate,
            ),
            cancel=cancel,
        )
        if quiet:
            print_json(_outcome_row(walk, outcome, meter))
        else:
            _say_outcome(walk, outcome, meter, proposer.name, arguments)
    return 0


def _outcome_row(walk: Walk, outcome: WalkOutcome, meter: Meter) -> dict[str, Any]:
    """A walk as the JSON object that is printed of it."""
    total = meter.read().total
    return {
        "id": walk.id,
        "stopped": outcome.stopped,
        "note": outcome.note,
        "spending": {"dollars": total.dollars, "at_most": total.at_most, "unpriced": total.unpriced},
        "steps": [step_row(step) for step in (*outcome.accepted, *outcome.rejected)],
    }


def _say_outcome(
    walk: Walk, outcome: WalkOutcome, meter: Meter, proposer: str, arguments: argparse.Namespace
) -> None:
    from klineage_tui.presentation.spending import spend_line

    counts = f"{len(outcome.accepted)} accepted, {len(outcome.rejected)} rejected"
    say(f"{walk.id}: {counts}; stopped at: {outcome.stopped}")
    if outcome.note:
        say(outcome.note)
    if outcome.stopped == "simplest form":
        _say_what_stays(walk, proposer, arguments)
    reading = meter.read()
    if reading.total.calls:
        say(f"{walk.id} has cost {spend_line(reading)}")


def _say_estimate(walk: Walk, meter: Meter, proposer: str, arguments: argparse.Namespace) -> None:
    """What a model's walk may cost, before it begins; nothing for a model that has no price."""
    from klineage_tui.presentation.spending import money
    from klineage_tui.proposers import estimated

    kind, _, model = proposer.partition(":")
    found = (
        estimated(walk, meter.ledger, model, arguments.max_steps, arguments.best_of)
        if kind == "model"
        else None
    )
    if found is not None:
        say(f"{walk.id}: about {money(found.dollars)} for {plural(found.calls, 'call')} ({found.basis})")


def _told(meter: Meter) -> Callable[[Attempt], None]:
    """Says what is wrong with an answer, and when a mark of the limit is passed."""

    def tell(attempt: Attempt) -> None:
        from klineage_tui.presentation.spending import spend_line

        if attempt.problem:
            say(f"?     {attempt.problem}")
        for note in attempt.notes:
            say(f"      {note}")
        reading = meter.read()
        if reading.passed:
            say(f"      {reading.passed[-1]} % of the budget is passed: {spend_line(reading)}")

    return tell


class _Status:
    """One line on a terminal's stderr that says what the proposer or the gate does now; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def answer(self, event: ProposerEvent) -> None:
        if event.kind == "status":
            self._show(event.text)

    def gate(self, candidate: Candidate | None, event: GateEvent) -> None:
        what = candidate.title if candidate else "the kernel itself"
        last = event.stage == "profile" and event.state == "done"
        self._show("" if last else f"{what[:40]}: {event.stage} {event.state} {event.detail[:40]}")

    def _show(self, text: str) -> None:
        from klineage_tui.text.sanitize import sanitize

        if self._shown:
            sys.stderr.write(f"\r\x1b[K{sanitize(text)[:100]}")
            sys.stderr.flush()


def _asking(walk: Walk, cancel: Event) -> Decide:
    """A person's word on each candidate that passed its gate, on the terminal; the end of the input is "quit"."""

    def decide(candidate: Candidate, report: Report) -> str | None:
        from klineage_tui.text.unified import unified_diff

        head = walk.state().kernel
        say()
        say(unified_diff(head.source, candidate.source, head.filename))
        say(f"{candidate.title}: {candidate.rationale}")
        say(f"by {candidate.proposer}; the gate says {report.verdict.value}{_effect(report)}")
        while True:
            say("accept, reject REASON, or quit?")
            word, _, reason = sys.stdin.readline().strip().partition(" ")
            if word in ("accept", "a"):
                return None
            if word in ("reject", "x") and reason.strip():
                return reason.strip()
            if word in ("quit", "q") or not word:
                cancel.set()
                return None

    return decide


def _effect(report: Report) -> str:
    return f", {report.effect.value}" if report.effect else ""


COMMANDS = {"walk": walk_command}
