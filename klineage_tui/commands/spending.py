"""ledger: what paid calls cost, and what a run may cost."""

from __future__ import annotations

import argparse
import os
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.commands.common import (
    Run,
    add_json,
    add_workspace,
    opened_workspace,
    print_json,
    say,
)

if TYPE_CHECKING:
    from klineage.ledger import Book, By, Entry, Ledger, Total, Usage
    from klineage.lineage import Workspace

_OUTCOME = 40  # characters in a row
BY = ("call", "step", "lineage", "day")  # those of klineage.ledger, which --help should not import


def ledger_command(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="of this lineage (default: of all)")
    add_workspace(parser)
    parser.add_argument(
        "--by", choices=BY, default="call",
        help="one line for each call, state of the walk, lineage, or day in UTC (default: call)",
    )  # fmt: skip
    parser.add_argument(
        "--estimate", nargs="?", const="", metavar="MODEL",
        help="instead, what walking ID on from here may cost by a model (default: the configured one)",
    )  # fmt: skip
    parser.add_argument("--max-steps", type=int, metavar="N", help="with --estimate: of so many steps")
    parser.add_argument(
        "--best-of", type=int, default=1, metavar="N", help="with --estimate: with N candidates a step"
    )
    parser.add_argument("--prices", action="store_true", help="instead, the prices that are reckoned with")
    add_json(parser)
    return _ledger


def _ledger(arguments: argparse.Namespace) -> int:
    from klineage.ledger import Ledger

    if arguments.estimate is None and (arguments.max_steps is not None or arguments.best_of != 1):
        raise KlineageError("--max-steps and --best-of belong to --estimate; add it, or leave them out")
    if arguments.prices:
        return _prices(arguments.json)
    with opened_workspace(arguments) as workspace:
        ledger = Ledger.of(workspace.git.place)
        if arguments.id:
            workspace.head(arguments.id)
        if arguments.estimate is not None:
            return _estimate(workspace, ledger, arguments)
        _settle_what_ended(workspace, ledger)
        book = ledger.read().of(arguments.id)
        steps = _step_names(workspace, book) if arguments.by == "step" else {}
        if arguments.json:
            print_json(_as_json(book, arguments.by, steps))
        else:
            _say(book, arguments.by, steps)
    return 0


def _settle_what_ended(workspace: Workspace, ledger: Ledger) -> None:
    """Calls and runs that have ended and that a kill has kept from being settled, where this may be written."""
    from klineage.proposer import calls
    from klineage.proposer.command import runs

    if os.access(workspace.git.place, os.W_OK):
        calls.recover(workspace.git.place)
        runs.recover(ledger)


def _say(book: Book, by: By, steps: dict[str, str]) -> None:
    from klineage_tui.presentation.spending import sum_of, table

    if not book.entries:
        say("no paid call yet")
    rows = _call_rows(book) if by == "call" else _group_rows(book, by, steps)
    numbers = range(4, 9) if by == "call" else range(1, 7)
    for line in table(rows, right=frozenset(numbers)) if book.entries else ():
        say(line)
    total = book.total()
    if book.entries:
        say(f"{plural(total.calls, 'call')}, {sum_of(total)}")
    for torn in book.torn:
        say(
            f"line {torn.number} of the ledger cannot be read, most likely torn by a cut of power: {torn.text[:80]}"
        )


def _call_rows(book: Book) -> list[list[str]]:
    from klineage_tui.presentation.spending import cost

    head = ["call", "lineage", "model", "outcome", "input", "cached", "written", "output", "cost"]
    rows = [
        [
            e.call.id,
            e.call.lineage,
            e.call.model,
            _short(e.outcome) if e.state != "open" else "not settled",
            *_tokens(e),
            cost(e),
        ]
        for e in book.entries
    ]
    return [head, *rows]


def _short(sentence: str) -> str:
    """The beginning of what a call ended with; ``--json`` has all of it."""
    return sentence if len(sentence) <= _OUTCOME else sentence[: _OUTCOME - 1] + "…"


def _tokens(entry: Entry) -> list[str]:
    usage = _known_usage(entry)
    if usage is None:
        return ["", "", "", ""]
    return [f"{n:,}" for n in (usage.input, usage.cached, usage.cache_write, usage.output)]


def _known_usage(entry: Entry) -> Usage | None:
    """What a call is known to have used; None also for a command that says nothing of it."""
    said = entry.state == "settled" and not (entry.unpriced and not any(astuple(entry.usage)))
    return entry.usage if said else None


def _group_rows(book: Book, by: By, steps: dict[str, str]) -> list[list[str]]:
    from klineage_tui.presentation.spending import sum_of

    rows = [[by, "calls", "input", "cached", "written", "output", "cost"]]
    for key, total in book.by(by).items():
        usage = total.usage
        counts = (total.calls, usage.input, usage.cached, usage.cache_write, usage.output)
        rows.append([steps.get(key, key), *(f"{count:,}" for count in counts), sum_of(total)])
    return rows


def _as_json(book: Book, by: By, steps: dict[str, str]) -> dict[str, Any]:
    rows: list[dict[str, Any]]
    if by == "call":
        rows = [_entry_json(entry) for entry in book.entries]
    else:
        rows = [
            {"key": key, **({"step": steps.get(key)} if by == "step" else {}), **_total_json(total)}
            for key, total in book.by(by).items()
        ]
    torn = [{"line": torn.number, "text": torn.text} for torn in book.torn]
    return {"by": by, "rows": rows, "total": _total_json(book.total()), "torn": torn}


def _entry_json(entry: Entry) -> dict[str, Any]:
    call = entry.call
    return {
        "key": call.id, "lineage": call.lineage, "kernel": call.step, "proposer": call.proposer, "model": call.model,
        "prompt": call.prompt, "when": call.when, "state": entry.state, "outcome": entry.outcome,
        "ended": entry.ended, "worst": call.worst, "usage": _known_usage(entry),
        "dollars": entry.dollars, "at_most": entry.at_most,
    }  # fmt: skip


def _total_json(total: Total) -> dict[str, Any]:
    return {
        "calls": total.calls, "usage": total.usage, "dollars": total.dollars, "open": total.open,
        "at_most": total.at_most, "unpriced": total.unpriced,
    }  # fmt: skip


def _step_names(workspace: Workspace, book: Book) -> dict[str, str]:
    """The states that were asked about, as ``gemm 3``; by the keys of ``Book.by``."""
    names: dict[str, str] = {}
    for lineage in {entry.call.lineage for entry in book.entries} & {s.id for s in workspace.lineages()}:
        for step in workspace.history(lineage):
            names[f"{lineage}:{step.kernel}"] = f"{lineage} {step.number}  {step.subject}"
    return names


def _estimate(workspace: Workspace, ledger: Ledger, arguments: argparse.Namespace) -> int:
    from klineage.ledger import own_file
    from klineage.walk import Walk

    from klineage_tui.config import load_config
    from klineage_tui.presentation.spending import money
    from klineage_tui.proposers import estimated

    if not arguments.id:
        raise KlineageError("--estimate is for one lineage; name it")
    model = arguments.estimate or load_config().proposer.model
    walk = Walk(workspace, arguments.id)
    found = estimated(walk, ledger, model, arguments.max_steps, arguments.best_of)
    if found is None:
        raise KlineageError(f"{model} has no price; give it one in {own_file()}")
    spent = ledger.read().of(walk.id).total()
    if arguments.json:
        row = {
            "id": walk.id,
            "model": model,
            "calls": found.calls,
            "dollars": found.dollars,
            "basis": found.basis,
        }
        print_json({**row, "spent": _total_json(spent)})
    else:
        say(f"{plural(found.calls, 'call')} of {model}, about {money(found.dollars)} ({found.basis})")
        so_far = money(spent.committed, at_most=spent.open > 0)
        say(f"{walk.id} has cost {so_far} so far; --budget is the limit of both together")
    return 0


def _prices(as_json: bool) -> int:
    from klineage.ledger import load_prices, own_file

    from klineage_tui.presentation.spending import table

    prices = load_prices()
    if as_json:
        models = {
            model: {**price.to_json(), "own": model in prices.own} for model, price in prices.models.items()
        }
        print_json(
            {"date": prices.date, "source": prices.source, "own_file": str(own_file()), "models": models}
        )
        return 0
    rows = [["model", "input", "cached", "written", "output", "$ a million tokens"]]
    for model, price in prices.models.items():
        bands = [(model, price, "yours" if model in prices.own else "")]
        if price.long is not None:
            bands.append((f"  above {price.above:,} tokens", price.long, ""))
        rows += [
            [name, *(str(r) for r in (p.input, p.cached, p.cache_write, p.output)), note]
            for name, p, note in bands
        ]
    for line in table(rows, right=frozenset((1, 2, 3, 4))):
        say(line)
    say(f"{prices.source}, {prices.date}; your own prices: {own_file()}")
    return 0


COMMANDS = {"ledger": ledger_command}
