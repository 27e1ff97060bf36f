"""admit: try a card, alone, on a kernel that it was not lifted from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.proposer.settings import NO_BUDGET

from klineage_tui.commands.automatic import limit_of
from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_trust,
    add_workspace,
    opened_workspace,
    print_json,
    say,
    use_host,
)

if TYPE_CHECKING:
    from klineage.lineage import Workspace
    from klineage.proposer.base import Proposer
    from klineage.skill.admission import Source, Suggestion, Target, Trial
    from klineage.skill.card import Card

NOT_RECORDED = "not recorded"


def admit_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("id", metavar="CARD", help="the card; klineage card list shows them")
    add_workspace(parser)
    parser.add_argument(
        "--on", metavar="TARGET",
        help="a kernel, its folder, or LINEAGE:K0 (default: the first suggestion that its rule fits)",
    )  # fmt: skip
    parser.add_argument(
        "--less", metavar="NAMES", default="", help="take these mechanisms out of it first, a,b"
    )
    parser.add_argument(
        "--workload", metavar="W", help="what the kernel computes (default: workload.py beside it)"
    )
    parser.add_argument("--platform", metavar="P", help="what it is for (default: this machine)")
    parser.add_argument(
        "--with", dest="by", metavar="WHO", default="rules",
        help="who puts the card on it: rules, patch, model[:ID], command:NAME, replay:FILE, person (default: rules)",
    )  # fmt: skip
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="of a person: the kernel with the card on it"
    )
    parser.add_argument(
        "--budget", metavar="DOLLARS",
        help=f"what the calls for this card may cost, all runs together; a model is asked with one, or '{NO_BUDGET}'",
    )  # fmt: skip
    parser.add_argument("--suggest", action="store_true", help="only list kernels to try it on, and why")
    parser.add_argument(
        "--anyway", action="store_true", help="also where one of its preconditions does not hold"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="write nothing into the card's verification log"
    )
    add_trust(parser)
    add_host(parser)
    add_json(parser)
    return _admit


def _admit(arguments: argparse.Namespace) -> int:
    """The exit code is 1 when the trial did not hold."""
    from klineage.skill.admission import admit, sources
    from klineage.skill.library import Library
    from klineage.walk import trust

    use_host(arguments)
    with opened_workspace(arguments) as workspace:
        if arguments.trust:
            trust.trust_repository(workspace)
        library = Library.of(workspace)
        card = library.get(arguments.id)
        known = sources(card, library.lineage)
        if arguments.suggest:
            _suggest(card, known, workspace, arguments)
            return 0
        target = _target(card, known, workspace, arguments)
        trial = admit(
            card, target, _materializer(workspace, arguments), known,
            anyway=arguments.anyway, on_progress=None if arguments.json else say,
        )  # fmt: skip
        status = NOT_RECORDED if arguments.dry_run else _record(library, card, trial)
    if arguments.json:
        print_json({**trial_row(trial), "card": card.id, "status": status})
    else:
        _say(card, trial, status)
    return 0 if trial.accepted else 1


def _target(
    card: Card, known: Sequence[Source], workspace: Workspace, arguments: argparse.Namespace
) -> Target:
    from klineage.skill.admission import held_out_targets, named

    without = [name.strip() for name in arguments.less.split(",") if name.strip()]
    if arguments.on:
        return named(
            arguments.on, workspace, workload=arguments.workload, platform=arguments.platform, without=without
        )
    if without:
        raise KlineageError("--less takes mechanisms out of a target; name it with --on")
    found = [s for s in held_out_targets(card, known, workspace) if s.fits or arguments.by != "rules"]
    if not found:
        raise KlineageError(
            f"there is no held-out kernel here that the rule of {card.id} fits; name one of your own with --on, "
            "or try --with patch or a model"
        )
    return found[0].target


def _materializer(workspace: Workspace, arguments: argparse.Namespace) -> Any:
    from klineage.skill.admission import materializer_named

    def ask(name: str) -> Proposer:
        from klineage.proposer.registry import Context, proposer_named

        from klineage_tui.config import load_config

        limit = limit_of(argparse.Namespace(**{**vars(arguments), "proposer": name}))
        context = Context(
            workspace.git.place, arguments.id, load_config().proposer, limits=(limit,) if limit else ()
        )
        return proposer_named(name, context)

    return materializer_named(arguments.by, file=arguments.file, ask=ask)


def _record(library: Any, card: Card, trial: Trial) -> str:
    """Write the trial into the card as it is by now; returns the status that it has then."""
    from klineage.skill.admission import recorded

    word = "worked" if trial.accepted else "did not work"
    changed = library.update(
        card.id,
        lambda now: recorded(now, trial),
        reason=trial.why,
        title=f"Try {card.id} on {trial.target.name}: it {word}",
        reports=trial.reports,
        machine=True,
    )
    return str(changed.status)


def _suggest(
    card: Card, known: Sequence[Source], workspace: Workspace, arguments: argparse.Namespace
) -> None:
    from klineage.skill.admission import held_out_targets

    found = held_out_targets(card, known, workspace)
    if arguments.json:
        print_json([suggestion_row(one) for one in found])
        return
    if not found:
        say(f"no kernel here is held out from {card.id}; name one of your own with --on")
    for one in found:
        say(f"{one.target.name}")
        say(
            f"    {one.target.workload.name}, {one.target.platform}; held out by {', '.join(one.held_out)}: {one.why}"
        )
        say(
            "    its rule fits here"
            if one.fits
            else "    its rule does not fit here; a patch or a model might"
        )


def _say(card: Card, trial: Trial, status: str) -> None:
    from klineage.skill.admission import why_held_out

    target = trial.target
    say(f"{card.id} on {target.name} ({target.workload.name}, {target.platform})")
    say(f"  {'held out' if trial.held_out else 'not held out'}: {why_held_out(target, trial.held_out)}")
    for attempt in trial.attempts:
        mark = "accepted" if attempt.holds else "refused"
        trust = f", {attempt.report.trust}" if attempt.report is not None else ""
        say(f"  attempt {attempt.number} by {attempt.made.by}: {mark}{trust}")
        for text in filter(None, (attempt.made.how, attempt.why)):
            say(f"    {text}")
    became = f"{card.id} {'is' if status != card.status else 'stays'} {status}"
    say(status if status == NOT_RECORDED else became)
    if not trial.accepted and status != NOT_RECORDED:
        say("the next trial is on another kernel, where there is one; --suggest lists them")
    if trial.accepted and not trial.held_out:
        say("it worked, but not on a held-out kernel, so it admits nothing")


def trial_row(trial: Trial) -> dict[str, Any]:
    """A trial as the JSON object that is printed of it."""
    from klineage_tui.presentation.ablation import gain_row

    return {
        "target": trial.target.name,
        "workload": trial.target.workload.name,
        "platform": trial.target.platform,
        "held_out": list(trial.held_out),
        "accepted": trial.accepted,
        "admits": trial.admits,
        "why": trial.why,
        "attempts": [
            {
                "number": attempt.number,
                "by": attempt.made.by,
                "how": attempt.made.how,
                "holds": attempt.holds,
                "why": attempt.why,
                "gain": gain_row(attempt.gain) if attempt.gain is not None else None,
                "trust": str(attempt.report.trust) if attempt.report is not None else None,
            }
            for attempt in trial.attempts
        ],
    }


def suggestion_row(one: Suggestion) -> dict[str, Any]:
    """A suggestion as a JSON object; ``target`` is what ``--on`` takes."""
    return {
        "target": one.target.name,
        "workload": one.target.workload.name,
        "platform": one.target.platform,
        "prior_actions": list(one.target.prior_actions),
        "held_out": list(one.held_out),
        "why": one.why,
        "fits": one.fits,
    }


COMMANDS = {"admit": admit_command}
