"""probe: break a precondition of a card on purpose, and gate what comes of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError

from klineage_tui.commands.common import (
    Run,
    add_host,
    add_json,
    add_library,
    add_trust,
    opened_library,
    opened_workspace,
    print_json,
    say,
    use_host,
)

if TYPE_CHECKING:
    from klineage.gate import GateEvent
    from klineage.skill.card import Probe
    from klineage.skill.probe import Boundary, Probed

_KINDS = ("size", "stride", "misalign", "dtype", "feature", "platform", "setting")


def probe_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("id", metavar="CARD", help="the card; klineage card list shows them")
    parser.add_argument(
        "-p", "--precondition", metavar="KEY", action="append", default=[],
        help="only this one, p1; may be repeated (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--search", action="store_true", help="also look for the boundary: the smallest, or the largest, that still pays"
    )  # fmt: skip
    parser.add_argument(
        "--change",
        choices=_KINDS,
        help="what to break, in place of the card's own probe; for one precondition",
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[],
        help="of --change: dim= value=; buffer= bytes=; element=; name=; platform=; name= value=",
    )  # fmt: skip
    parser.add_argument("--on", metavar="LINEAGE", default="", help="only the card's states in this lineage")
    parser.add_argument("--dry-run", action="store_true", help="write nothing into the card")
    parser.add_argument("--who", default="", metavar="NAME", help="who probes (default: git's user)")
    add_library(parser)
    add_trust(parser)
    add_host(parser)
    add_json(parser)
    return _probe


def _probe(arguments: argparse.Namespace) -> int:
    from klineage.skill.probe import Judge, probe_card

    use_host(arguments)
    if arguments.trust and not arguments.library:
        _trust(arguments)
    with opened_library(arguments) as library:
        keep = library.writable and not arguments.dry_run
        _, done = probe_card(
            library,
            arguments.id,
            arguments.precondition,
            judge=Judge(on_event=None if arguments.json else _progress),
            lineage_id=arguments.on,
            trusted=arguments.trust,
            searching=arguments.search,
            instead=_instead(arguments),
            keep=keep,
            who=arguments.who,
            on_probed=None if arguments.json else _say,
        )
    if arguments.json:
        print_json({"card": arguments.id, "kept": keep, "probes": [probe_row(one) for one in done]})
    elif not done:
        say(f"{arguments.id} has no preconditions to probe")
    elif not keep:
        say("nothing was written into the card")
    return 0


def _trust(arguments: argparse.Namespace) -> None:
    from klineage.walk import trust

    with opened_workspace(arguments) as workspace:
        trust.trust_repository(workspace)


def _instead(arguments: argparse.Namespace) -> Probe | None:
    """What ``--change`` and ``--set`` say. Raises KlineageError where they do not fit together."""
    from klineage.skill.card import Probe

    if not arguments.change:
        if arguments.set:
            raise KlineageError("--set tells what --change breaks; say --change too")
        return None
    if len(arguments.precondition) != 1:
        raise KlineageError("--change breaks one precondition; say which with --precondition")
    pairs = [text.partition("=") for text in arguments.set]
    if wrong := next((name for name, equals, _ in pairs if not equals or not name), None):
        raise KlineageError(f"--set {wrong} has no value; write it as --set dim=k")
    return Probe(arguments.change, {name.strip(): value.strip() for name, _, value in pairs})


def _progress(words: str, event: GateEvent | None) -> None:
    if event is None:
        say(f"     gating {words}")


def _say(probed: Probed) -> None:
    from klineage_tui.text.columns import pad, widest

    trust = f"  {probed.finding.trust}, {probed.finding.platform}" if probed.finding.trust else ""
    say(f"{probed.key:<4} {probed.finding.outcome.upper():<10} {probed.finding.found}{trust}")
    if probed.unsearched:
        say(f"     not searched: {probed.unsearched}")
    if probed.boundary is not None:
        cells = widest([rung.words for rung in probed.boundary.rungs])
        for rung in probed.boundary.rungs:
            said = rung.finding.found.removeprefix(f"{rung.words}: ")
            say(f"       {_WORDS[rung.finding.outcome]:<7} {pad(rung.words, cells)}  {said}")
        say(f"     {probed.boundary.text}")


_WORDS = {"refuted": "stands", "confirmed": "breaks", "untested": "unknown"}


def probe_row(probed: Probed) -> dict[str, Any]:
    """What became of a precondition as the JSON object that every verb prints."""
    finding = probed.finding
    return {
        "key": probed.key, "outcome": finding.outcome, "found": finding.found, "change": probed.change,
        "settings": probed.settings, "trust": finding.trust, "platform": finding.platform, "when": finding.when,
        "state": probed.state.name if probed.state else "", "unsearched": probed.unsearched,
        "boundary": _boundary_row(probed.boundary) if probed.boundary else None,
    }  # fmt: skip


def _boundary_row(boundary: Boundary) -> dict[str, Any]:
    rungs = [
        {
            "words": rung.words, "change": rung.change, "settings": rung.settings, "outcome": rung.finding.outcome,
            "found": rung.finding.found, "violates": rung.violates,
        }
        for rung in boundary.rungs
    ]  # fmt: skip
    return {"text": boundary.text, "rungs": rungs}


COMMANDS = {"probe": probe_command}
