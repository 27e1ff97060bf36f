"""propose, walk, accept, reject, undo, redo, seal: decisions on a lineage."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    step_row,
)

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.kernel import Kernel
    from klineage.lineage import Step
    from klineage.proposer.candidate import Candidate
    from klineage.walk import Walk


def propose_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument("--diff", action="store_true", help="print each proposal's diff too")
    parser.add_argument(
        "--all", action="store_true", help="also list what rules see and do not offer, and why not"
    )
    add_json(parser)
    return _propose


def _propose(arguments: argparse.Namespace) -> int:
    from klineage_tui.text.unified import unified_diff

    with opened_walk(arguments) as walk:
        state = walk.state()
        rows = []
        hindered = _not_offered(state.kernel) if arguments.all else []
        for number, candidate in enumerate(walk.candidates(), start=1):
            rejection = state.rejection_of(candidate)
            diff = unified_diff(state.kernel.source, candidate.source, state.kernel.filename)
            rows.append(
                {
                    "number": number,
                    "title": candidate.title,
                    "action": candidate.action,
                    "locus": candidate.locus,
                    "removes": [str(feature) for feature in candidate.removes],
                    "settings": candidate.settings,
                    "preconditions": candidate.preconditions,
                    "rationale": candidate.rationale,
                    "proposer": candidate.proposer,
                    "rejected": rejection.why if rejection else None,
                    "diff": diff,
                }
            )
        if arguments.json:
            print_json([*rows, *hindered])
            return 0
        if not rows:
            way_on = (
                f"klineage seal {walk.id} ends the walk"
                if len(state.steps) > 1
                else f"simplify it by hand: klineage accept {walk.id} --file YOURS"
            )
            seen = plural(len(_not_offered(state.kernel)), "mechanism")
            what = "no rule sees anything left to remove"
            if not seen.startswith("0 "):
                told = "listed below" if arguments.all else f"klineage propose {walk.id} --all says why"
                what = f"rules see {seen} that they cannot take out ({told})"
            say(f"{walk.id}: {what}; {way_on}")
        for row in rows:
            mark = f"  (rejected: {row['rejected']})" if row["rejected"] else ""
            say(f"{row['number']:>3}  {row['title']:<44} {row['action']:<20} {row['locus']}{mark}")
            if arguments.diff:
                say(str(row["diff"]))
        for row in hindered:
            say(
                f"  -  {row['title']:<44} {row['action']:<20} {row['locus']}  (not offered: {row['why_not']})"
            )
    return 0


def _not_offered(kernel: Kernel) -> list[dict[str, Any]]:
    """What rules see in the kernel and do not offer; ``number`` is null, ``why_not`` the reason."""
    from klineage.proposer.rules import why_not

    return [
        {
            "number": None,
            "title": found.rule.title,
            "action": found.rule.action,
            "locus": found.site.locus,
            "removes": [str(feature) for feature in found.site.removes],
            "settings": found.site.settings,
            "preconditions": found.rule.preconditions,
            "rationale": found.rule.rationale,
            "proposer": f"rules:{found.rule.name}",
            "why_not": found.reason,
        }
        for found in why_not(kernel)
    ]


def walk_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    parser.add_argument("--proposer", choices=["rules"], default="rules", help="who proposes")
    parser.add_argument("--max-steps", type=int, metavar="N", help="stop after N accepted steps")
    add_host(parser)
    add_json(parser)
    return _walk


def _walk(arguments: argparse.Namespace) -> int:
    from klineage.walk import Listener, WalkLimits, walk_automatically

    if arguments.max_steps is not None and arguments.max_steps < 1:
        raise KlineageError("--max-steps needs a whole number of at least 1")
    with opened_walk(arguments) as walk:
        outcome = walk_automatically(
            walk,
            WalkLimits(steps=arguments.max_steps),
            listener=Listener(on_step=None if arguments.json else _say_step, on_gate=_progress()),
        )
        if arguments.json:
            steps = [step_row(step) for step in (*outcome.accepted, *outcome.rejected)]
            print_json({"id": walk.id, "stopped": outcome.stopped, "steps": steps})
        else:
            say(
                f"{walk.id}: {len(outcome.accepted)} accepted, {len(outcome.rejected)} rejected; stopped at: {outcome.stopped}"
            )
    return 0


def _say_step(step: Step) -> None:
    from klineage_tui.presentation.details import outcome

    mark = "x" if step.decision == "rejected" else "o"
    say(f"{mark} {step.number:>2}  {step.subject:<44}  {outcome(step)}".rstrip())


def _progress() -> Callable[[Candidate | None, GateEvent], None] | None:
    """One line on a terminal's stderr that says what the gate does now; nothing elsewhere."""
    if not sys.stderr.isatty():
        return None

    def show(candidate: Candidate | None, event: GateEvent) -> None:
        what = candidate.title if candidate else "the kernel itself"
        sys.stderr.write(f"\r\x1b[K{what[:40]}: {event.stage} {event.state} {event.detail[:40]}")
        if event.stage == "profile" and event.state == "done":
            sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    return show


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
        print_json(step_row(step)) if arguments.json else _say_step(step)
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
        print_json(step_row(step)) if arguments.json else _say_step(step)
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


def seal_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    add_host(parser)
    add_json(parser)
    return _seal


def _seal(arguments: argparse.Namespace) -> int:
    with opened_walk(arguments) as walk:
        steps = walk.seal(None if arguments.json else say)
        if arguments.json:
            print_json([step_row(step) for step in steps])
        else:
            say(
                f"{walk.id}: sealed, {plural(len(steps) - 1, 'optimization')}; git log -p lineage/{walk.id} reads it as a course"
            )
    return 0


COMMANDS = {
    "propose": propose_command,
    "walk": walk_command,
    "accept": accept_command,
    "reject": reject_command,
    "undo": undo_command,
    "redo": redo_command,
    "seal": seal_command,
}
