"""lift: cards out of the transitions of sealed lineages, by structure or with a model, into the library."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural
from klineage.proposer.settings import NO_BUDGET

from klineage_tui.commands.common import (
    Run,
    add_json,
    add_workspace,
    opened_workspace,
    print_json,
    say,
    shown_command,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from klineage.lineage import Workspace
    from klineage.skill.card import Card
    from klineage.skill.lift.groups import Group
    from klineage.skill.lift.shelving import Improve, Lift

_LIBRARY = "library"


def lift_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="sealed lineages (default: every sealed one of the workspace)"
    )
    add_workspace(parser)
    parser.add_argument(
        "--into", choices=[_LIBRARY], help="put the cards into the workspace's library; without it they are shown",
    )  # fmt: skip
    parser.add_argument(
        "--proposer", default="rules", metavar="NAME",
        help="rules: what structure and gates show; model[:ID]: what a model says of it too, with each claim checked",
    )  # fmt: skip
    parser.add_argument(
        "--budget", metavar="DOLLARS",
        help=f"what all lifts of this workspace may cost together; a model needs one, or '{NO_BUDGET}'",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="CARD", action="append", default=[], help="only this card; may be repeated"
    )
    parser.add_argument("--source", action="store_true", help="print the cards' files")
    parser.add_argument("--who", default="", metavar="NAME", help="who lifts (default: git's user)")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    add_json(parser)
    return _lift


def _lift(arguments: argparse.Namespace) -> int:
    """The exit code is 1 where a card's file is broken, so that it could not learn what is new."""
    from klineage.skill.library import Library
    from klineage.skill.lift.shelving import lift, put
    from klineage.skill.lift.source import source_of

    with opened_workspace(arguments) as workspace:
        source = source_of(workspace, arguments.ids)
        library = Library.of(workspace)
        lifts = _wanted(lift(source, library, _improve(workspace, arguments), arguments.only), arguments.only)
        commit = put(library, lifts, arguments.who, arguments.reason) if arguments.into else ""
    if arguments.json:
        print_json({"commit": commit or None, "cards": [lift_row(one) for one in lifts]})
    else:
        _say(arguments, lifts, commit)
    return 1 if any(one.state == "broken" for one in lifts) else 0


def _improve(workspace: Workspace, arguments: argparse.Namespace) -> Improve | None:
    """The model that was named, within its budget; None for the structural lift alone."""
    if arguments.proposer == "rules":
        return None
    from klineage.proposer.registry import Context
    from klineage.skill.lift.model import LEDGER, lifter_named

    from klineage_tui.commands.automatic import limit_of
    from klineage_tui.config import load_config

    limit = limit_of(argparse.Namespace(**{**vars(arguments), "id": LEDGER}))
    context = Context(workspace.git.place, LEDGER, load_config().proposer, limits=(limit,) if limit else ())
    lifter = lifter_named(arguments.proposer, context)

    def improve(card: Card, group: Group) -> Card:
        if not arguments.json:
            say(f"asking {lifter.name} about {card.id}")
        return lifter(card, group)

    return improve


def _wanted(lifts: Sequence[Lift], only: Sequence[str]) -> tuple[Lift, ...]:
    known = {one.id: one for one in lifts}
    for name in only:
        if name not in known:
            raise KlineageError(f"no card {name!r} comes of these lineages; they give {', '.join(known)}")
    return tuple(one for one in lifts if not only or one.id in only)


def lift_row(one: Lift) -> dict[str, Any]:
    """What became of one optimization as the JSON object that is printed of it."""
    return {
        "id": one.id,
        "state": one.state,
        "transitions": [t.name for t in one.group.transitions],
        "rejected": [r.name for r in one.group.rejected],
        "added": list(one.added),
        "kept": list(one.kept),
        "faults": list(one.faults),
        "problem": one.problem or None,
        "card": one.card,
    }


def _say(arguments: argparse.Namespace, lifts: Sequence[Lift], commit: str) -> None:
    from klineage.skill.file import render

    for one in lifts:
        if arguments.source and one.card is not None:
            say(render(one.card).decode())
            continue
        _say_one(one)
    written = [one for one in lifts if one.state in ("new", "updated")]
    if commit:
        say(f"{plural(len(written), 'card')} written to the library; {shown_command(arguments, 'card list')}")
    elif not written:
        say("the library has all that these lineages show")
    elif not arguments.into:
        ids = " ".join(arguments.ids)
        into = shown_command(arguments, f"lift {ids + ' ' if ids else ''}--into library")
        say(f"nothing was written; {into} puts them into the library")


def _say_one(one: Lift) -> None:
    say(f"{one.state:<9} {one.id:<28} {one.card.intent if one.card is not None else ''}".rstrip())
    if one.problem:
        say(f"          {one.problem}")
        return
    if one.card is not None:
        for line in card_lines(one.card):
            say(f"          {line}")
    if one.state == "updated" and one.added:
        say(f"          new: {', '.join(one.added)}")
    if one.kept:
        say(f"          kept as it was written: {', '.join(one.kept)}")
    for fault in one.faults:
        say(f"          CONTRACT: {fault}")


def card_lines(card: Card) -> list[str]:
    """What a lifted card holds, in three lines: where it comes from, what it gains, what can go wrong."""
    from klineage.numbers import gained

    kinds = [item.kind for item in card.evidence]
    lines = [
        f"from {plural(kinds.count('transition'), 'transition')} and {plural(kinds.count('rejected'), 'rejected attempt')}; "
        f"{plural(len(card.preconditions), 'precondition')}, {plural(len(card.risks), 'risk')}"
    ]
    effects = [
        f"{gained(e.gain, e.low, e.high)}x {e.quantity} on {e.workload} ({e.trust})" for e in card.effects
    ]
    lines.append("gains " + ", ".join(effects) if effects else "no gain was shown")
    doubts = [*(one.doubt for one in card.preconditions), *(risk.doubt for risk in card.risks)]
    return lines + [f"UNSUPPORTED: {doubt}" for doubt in doubts if doubt]


COMMANDS = {"lift": lift_command}
