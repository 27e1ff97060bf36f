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
from klineage_tui.commands.proposing import add_asking, ask

if TYPE_CHECKING:
    from klineage.kernel import Kernel


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
    from klineage_tui.text.unified import unified_diff

    with opened_walk(arguments) as walk:
        state = walk.state()
        rows = []
        hindered = _not_offered(state.kernel) if arguments.all else []
        for number, candidate in enumerate(walk.candidates(), start=1):
            rejection = state.rejection_of(candidate)
            diff = unified_diff(
                state.kernel.source, candidate.source, state.kernel.filename, numbered=not arguments.json
            )
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
                f"{shown_command(arguments, f'seal {walk.id}')} ends the walk"
                if len(state.steps) > 1
                else f"simplify it by hand: {shown_command(arguments, f'accept {walk.id} --file YOURS')}"
            )
            seen = plural(len(_not_offered(state.kernel)), "mechanism")
            what = "no rule sees anything left to remove"
            if not seen.startswith("0 "):
                told = (
                    "listed below"
                    if arguments.all
                    else f"{shown_command(arguments, f'propose {walk.id} --all')} says why"
                )
                what = f"rules see {seen} that they cannot take out ({told})"
            say(f"{walk.id}: {what}; {way_on}")
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
    return 0


COMMANDS = {
    "propose": propose_command,
    "seal": seal_command,
}
