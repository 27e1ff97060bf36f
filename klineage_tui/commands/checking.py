"""check: ask the preconditions of a card of a kernel; nothing is run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.cli import default_workspace
from klineage_tui.commands.common import Run, add_json, print_json, say
from klineage_tui.commands.libraries import add_libraries, opened_libraries

if TYPE_CHECKING:
    from klineage.skill.admission.target import Target
    from klineage.skill.anchors.finding import Place
    from klineage.skill.card import Card
    from klineage.skill.checks import Answer
    from klineage.skill.checks.facts import Facts

_SHOWN = 3  # places of an anchor that are named


def check_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("card", metavar="CARD", help="a card's id, or its file; left out with --expression")
    parser.add_argument(
        "kernel", metavar="KERNEL", nargs="?", help="a kernel file, its folder, or LINEAGE:K0 (any state)"
    )
    parser.add_argument(
        "--expression", metavar="E", action="append", default=[],
        help="ask this instead of a card's checks; may be repeated (docs/cards.md has the language)",
    )  # fmt: skip
    parser.add_argument(
        "--workload", metavar="W", help="what the kernel computes (default: workload.py beside it)"
    )
    parser.add_argument("--platform", metavar="P", help="what it is for (default: this machine)")
    add_libraries(parser)
    add_json(parser)
    return _check


@dataclass(frozen=True)
class Asked:
    """One check and its answer. ``key``: of the precondition, empty for an expression of the command line."""

    key: str
    kind: str
    text: str
    check: str
    answer: Answer | None


def _check(arguments: argparse.Namespace) -> int:
    """The exit code is 1 when a check fails; what is unknown is no failure."""
    alone = bool(arguments.expression) and arguments.kernel is None
    where = arguments.card if alone else arguments.kernel
    if where is None:
        raise KlineageError("name the kernel to ask as well: klineage check CARD KERNEL --workload W")
    card = None if alone else _card(arguments)
    target = _target(where, arguments)
    asked = _asked(card, arguments.expression, _facts(target, card, arguments))
    found = _found(card, target) if card is not None and not arguments.expression else None
    if arguments.json:
        print_json(
            {
                "card": card and card.id, "target": target.name, "workload": target.workload.name,
                "platform": target.platform, "answers": [_row(one) for one in asked],
                "anchor": found and _found_row(found),
            }
        )  # fmt: skip
    else:
        _say(card, target, asked)
        if found is not None:
            say(f"at   {_found_words(found)}")
    return 1 if any(one.answer is not None and one.answer.state == "fails" for one in asked) else 0


@dataclass(frozen=True)
class Found:
    """Where the anchor of a card is found in a kernel; ``problem``: why it cannot be looked for."""

    places: tuple[Place, ...] = ()
    problem: str = ""


def _found(card: Card, target: Target) -> Found:
    from klineage.skill.anchors import find_anchor

    if card.surface != target.kernel.surface:
        return Found(
            problem=f"the card is written in {card.surface}, and this kernel in {target.kernel.surface}"
        )
    if not card.anchor.query:
        return Found(problem="the card's anchor has no query: only a reader can tell where it acts")
    try:
        return Found(find_anchor(card.anchor.query, target.kernel))
    except KlineageError as error:
        return Found(problem=str(error))


def _found_row(found: Found) -> dict[str, Any]:
    places = [{"locus": place.locus, "line": place.line} for place in found.places]
    return {"places": places, "problem": found.problem or None}


def _found_words(found: Found) -> str:
    """``its anchor finds 12 places: line 31 (gemm/for[i]), ... and 9 more``."""
    if found.problem:
        return found.problem
    if not found.places:
        return "its anchor finds no place in this kernel, so there is nothing that it could act at"
    shown = [
        f"line {p.line} ({p.locus.partition('::')[2] or p.locus or p.type})" for p in found.places[:_SHOWN]
    ]
    more = len(found.places) - len(shown)
    return f"its anchor finds {plural(len(found.places), 'place')}: {', '.join(shown)}{f' and {more} more' if more else ''}"


def _card(arguments: argparse.Namespace) -> Card:
    from klineage.skill.file import parse

    file = Path(arguments.card)
    if file.suffix == ".md" and file.is_file():
        return parse(file.read_bytes(), str(file))
    with opened_libraries(arguments) as libraries:
        for library in libraries:
            if arguments.card in library.stamps():
                return library.get(arguments.card)
    raise KlineageError(f"there is no card {arguments.card!r} here; klineage card list shows what there is")


def _target(where: str, arguments: argparse.Namespace) -> Target:
    from klineage.lineage import Workspace
    from klineage.skill.admission.target import named

    place = arguments.workspace or default_workspace()
    workload, platform = arguments.workload, arguments.platform
    if not (place / ".git").exists():
        return named(where, workload=workload, platform=platform, runs=False)
    workspace = Workspace.open(place)
    try:
        return named(where, workspace, workload=workload, platform=platform, runs=False)
    finally:
        workspace.close()


def _facts(target: Target, card: Card | None, arguments: argparse.Namespace) -> Facts:
    from klineage.skill.checks.facts import facts

    settings = card.carrier.settings if card is not None else {}
    reports: Sequence[Any] = ()
    if target.lineage:  # a state of a lineage has its own gates, which know what was compiled
        from klineage.lineage import Workspace
        from klineage.walk import Walk

        workspace = Workspace.open(arguments.workspace or default_workspace())
        try:
            reports = Walk(workspace, target.lineage).reports(target.commit)
        finally:
            workspace.close()
    return facts(target.kernel, target.workload, target.platform, reports=reports, settings=settings)


def _asked(card: Card | None, expressions: Sequence[str], facts: Facts) -> list[Asked]:
    from klineage.skill.checks import check

    if expressions:
        return [Asked("", "", "", text, check(text, facts)) for text in expressions]
    return [
        Asked(p.key, p.kind, p.text, p.check, check(p.check, facts) if p.check else None)
        for p in (card.preconditions if card is not None else ())
    ]


def _row(one: Asked) -> dict[str, Any]:
    state = one.answer.state if one.answer is not None else "unchecked"
    why = one.answer.why if one.answer is not None else ""
    return {
        "key": one.key,
        "kind": one.kind,
        "text": one.text,
        "check": one.check,
        "state": state,
        "why": why,
    }


def _say(card: Card | None, target: Target, asked: Sequence[Asked]) -> None:
    of = f"{card.id} on " if card is not None else ""
    say(f"{of}{target.name} ({target.workload.name}, {target.platform})")
    if not asked:
        say("the card has no preconditions to ask")
    for one in asked:
        word = one.answer.state.upper() if one.answer is not None else "-"
        say(f"{one.key or '':<4} {word:<8} {one.text or one.check}".rstrip())
        if one.text and one.check:
            say(f"{'':<13} {one.check}")
        if one.answer is not None:
            say(f"{'':<13} {one.answer.why}")
        elif one.text:
            say(f"{'':<13} it has no check: only a reader can tell")


COMMANDS = {"check": check_command}
