"""propose, seal: what is offered on a lineage, and its end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from klineage.numbers import plural

from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_lineage,
    add_trust,
    opened_walk,
    print_json,
    say,
    shown_command,
    step_row,
)
from klineage_tui.commands.deriving import add_budget, asking
from klineage_tui.commands.proposing import add_asking, ask, candidate_row

if TYPE_CHECKING:
    from klineage.kernel import Kernel
    from klineage.walk import Walk, WalkState


def propose_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "--diff", action="store_true", help="print each proposal's diff too, its changes numbered"
    )
    parser.add_argument(
        "--all", action="store_true", help="also list what rules see and do not offer, and why not"
    )
    add_asking(parser)
    add_json(parser)
    return _propose


def _propose(arguments: argparse.Namespace) -> int:
    if arguments.proposer != "rules":
        return ask(arguments)
    with opened_walk(arguments) as walk:
        state = walk.state()
        rows = _offered(walk, state, numbered=not arguments.json)
        hindered = _not_offered(state.kernel) if arguments.all else []
        if arguments.json:
            print_json([*rows, *hindered])
            return 0
        if not rows:
            _say_way_on(walk, state, arguments)
        for row in rows:
            mark = f"  (rejected: {row['rejected']})" if row["rejected"] else ""
            say(f"{row['number']:>3}  {row['title']:<46} {row['action']:<20} {row['locus']}{mark}")
            if arguments.diff:
                say(str(row["diff"]))
        for row in hindered:
            say(
                f"  -  {row['title']:<46} {row['action']:<20} {row['locus']}  (not offered: {row['why_not']})"
            )
    return 0


def _offered(walk: Walk, state: WalkState, *, numbered: bool) -> list[dict[str, Any]]:
    """What rules offer on the current state; ``rejected`` is the reason of whoever turned it down before."""
    rows = []
    for number, candidate in enumerate(walk.candidates(), start=1):
        rejection = state.rejection_of(candidate)
        row = candidate_row(candidate, number, state.kernel, numbered=numbered)
        rows.append({**row, "rejected": rejection.why if rejection else None})
    return rows


def _say_way_on(walk: Walk, state: WalkState, arguments: argparse.Namespace) -> None:
    """What to do on a state for which rules offer nothing."""
    way_on = (
        f"{shown_command(arguments, f'seal {walk.id}')} ends the walk"
        if len(state.steps) > 1
        else f"simplify it by hand: {shown_command(arguments, f'accept {walk.id} --file YOURS')}"
    )
    what = "no rule sees anything left to remove"
    if seen := _not_offered(state.kernel):
        why = f"{shown_command(arguments, f'propose {walk.id} --all')} says why"
        told = "listed below" if arguments.all else why
        what = f"rules see {plural(len(seen), 'mechanism')} that they cannot take out ({told})"
    say(f"{walk.id}: {what}; {way_on}")
    say(f"{shown_command(arguments, f'features {walk.id}')} lists the mechanisms that are there")


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


def seal_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    add_trust(parser)
    parser.add_argument(
        "--ask", action="store_true",
        help="ask the model or the command that made a step for its forward edit, where derive has not (a model: with --budget)",
    )  # fmt: skip
    add_budget(parser)
    add_host(parser)
    add_json(parser)
    parser.set_defaults(record=None, fresh=False)
    return _seal


def _seal(arguments: argparse.Namespace) -> int:
    with opened_walk(arguments) as walk:
        steps = walk.seal(
            None if arguments.json else say, ask=asking(walk, arguments) if arguments.ask else None
        )
        if arguments.json:
            print_json([step_row(step) for step in steps])
        else:
            replayed = [step for step in steps if step.forward == "replayed"]
            for step in replayed:
                say(f"K{step.number} is replayed, not derived: {step.found}")
            say(
                f"{walk.id}: sealed, {plural(len(steps) - 1, 'optimization')}, {len(steps) - 1 - len(replayed)} derived; "
                f"git log -p lineage/{walk.id} reads it as a course"
            )
            if replayed:
                told = shown_command(arguments, f"derive {walk.id}")
                say(
                    f"{told} tries again, on a quiet machine; with a step and --file it takes a forward edit of yours; then seal again"
                )
    return 0


COMMANDS = {
    "propose": propose_command,
    "seal": seal_command,
}
