"""derive: how each accepted step would be sealed, and by whom its forward edit is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.proposer.settings import NO_BUDGET

from klineage_tui.commands.automatic import limit_of, proposer_of
from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_lineage,
    add_trust,
    find_step,
    opened_walk,
    print_json,
    say,
)

if TYPE_CHECKING:
    from klineage.lineage import Step
    from klineage.proposer.base import Proposer
    from klineage.walk import Walk
    from klineage.walk.deriving import Derivation
    from klineage.walk.putting_back import Ask


def derive_command(parser: argparse.ArgumentParser) -> Run:
    add_lineage(parser)
    parser.add_argument(
        "step", nargs="?", metavar="STEP", help="this accepted step only, by its number (see log)"
    )
    add_trust(parser)
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="your own forward edit of the simpler kernel, for one STEP"
    )
    parser.add_argument(
        "--proposer", metavar="NAME",
        help="ask this one and nobody else: rules, model[:ID], command:NAME, replay:FILE (default: the rule that knows it, "
        "else who made the step)",
    )  # fmt: skip
    add_budget(parser)
    parser.add_argument("--renew", action="store_true", help="derive again what was derived before")
    add_host(parser)
    add_json(parser)
    parser.set_defaults(record=None, fresh=False)
    return _derive


def add_budget(parser: argparse.ArgumentParser) -> None:
    """What asking for forward edits may cost."""
    parser.add_argument(
        "--budget", metavar="DOLLARS",
        help=f"what the calls for this lineage may cost, all runs together; a model is asked with one, or '{NO_BUDGET}'",
    )  # fmt: skip


def _derive(arguments: argparse.Namespace) -> int:
    """The exit code is 1 when an edit or a proposer that was named does not hold."""
    from klineage.walk.reading import read_bytes

    arguments.fresh = arguments.renew
    if arguments.file is not None and (arguments.step is None or arguments.proposer is not None):
        raise KlineageError("--file is your own edit for one step: name the STEP, and no --proposer")
    with opened_walk(arguments) as walk:
        step = accepted_step(walk, arguments.step) if arguments.step is not None else None
        found = walk.derivations(
            step,
            ask=asking(walk, arguments),
            only=_only(walk, arguments),
            source=read_bytes(arguments.file) if arguments.file is not None else None,
            renew=arguments.renew,
            on_progress=None if arguments.json else say,
        )
        if arguments.json:
            print_json([derivation_row(derivation) for derivation in found])
        else:
            for derivation in found:
                say_derivation(derivation)
    wanted = arguments.file is not None or arguments.proposer is not None
    return 1 if wanted and any(derivation.how == "replayed" for derivation in found) else 0


def accepted_step(walk: Walk, name: str) -> Step:
    """The accepted step of a name. Raises KlineageError for a state that no step led to."""
    step = find_step(walk, name)
    if step.direction != "backward" or step.decision == "rejected":
        raise KlineageError(
            f"{name} is no accepted step of {walk.id}; klineage log {walk.id} --backward lists them"
        )
    return step


def asking(walk: Walk, arguments: argparse.Namespace) -> Ask:
    """Who may be asked: any command, and a model only within a budget."""

    def ask(name: str) -> Proposer | None:
        if arguments.budget is None and name.startswith("model"):
            return None
        named = argparse.Namespace(**{**vars(arguments), "proposer": name})
        return proposer_of(walk, named, limit_of(named))

    return ask


def _only(walk: Walk, arguments: argparse.Namespace) -> Proposer | None:
    if arguments.proposer in (None, "rules"):
        return None
    return proposer_of(walk, arguments, limit_of(arguments))


def derivation_row(found: Derivation) -> dict[str, Any]:
    """A derivation as the JSON object that is printed of it."""
    return {
        "state": found.number,
        "step": found.step.number,
        "action": found.step.action,
        "how": found.how,
        "by": found.by or None,
        "why": found.why,
        "fidelity": list(found.fidelity),
        "confirmed": found.confirmed,
    }


def say_derivation(found: Derivation) -> None:
    say(f"K{found.number:<3} step {found.step.number:<3} {found.how:<9} {found.step.action}")
    say(f"     {found.why}")


COMMANDS = {"derive": derive_command}
