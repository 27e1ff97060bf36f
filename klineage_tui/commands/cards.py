"""card: the cards of a library: list, show, history, lint. What changes them is in ``card_editing`` and ``card_deciding``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from klineage.errors import KlineageError
from klineage.numbers import plural

from klineage_tui.commands import card_deciding, card_editing
from klineage_tui.commands.card_problems import problem_line, problem_rows
from klineage_tui.commands.common import (
    Run,
    add_json,
    add_library,
    opened_library,
    print_json,
    say,
    short_value,
    shown_command,
)

if TYPE_CHECKING:
    from klineage.skill.card import Card
    from klineage.skill.library import Entry, Library
    from klineage.skill.library.history import Revision

    from klineage_tui.card_queue import Item


def card_command(parser: argparse.ArgumentParser) -> Run:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def sub(name: str, help: str, *ids: str) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=help)
        for word in ids:
            made.add_argument(word.lower(), metavar=word)
        add_library(made)
        add_json(made)
        return made

    _add_reading(sub)
    card_editing.add_edit(sub("edit", "edit a card in $EDITOR, from a file, or field by field", "ID"))
    card_deciding.add_deciding(sub)
    return _card


def _add_reading(sub: Callable[..., argparse.ArgumentParser]) -> None:
    listing = sub("list", "list the cards: what needs a person first")
    listing.add_argument("--status", metavar="S", help="only hypothesis, admitted or retired ones")
    listing.add_argument("--surface", metavar="S", help="only those of triton, cuda or c")
    listing.add_argument(
        "--action", metavar="A", dest="word", help="only those of an action such as prefetch"
    )
    listing.add_argument("--twins", action="store_true", help="instead, pairs that may be one card, and why")
    show = sub("show", "show a card: its file, and what is stale in it", "ID")
    show.add_argument("--at", metavar="COMMIT", help="as it was in a commit of its history")
    history = sub("history", "list the revisions of a card: who changed what, and why", "ID")
    history.add_argument("--diff", action="store_true", help="with what each changed, field by field")
    lint = sub("lint", "say what is wrong with cards: all, or those named; exit 1 where something is")
    lint.add_argument("ids", nargs="*", metavar="ID")


def _card(arguments: argparse.Namespace) -> int:
    run = {
        "list": _list, "show": _show, "history": _history, "lint": _lint, "edit": card_editing.edit,
        **card_deciding.DECISIONS,
    }[arguments.action]  # fmt: skip
    with opened_library(arguments) as library:
        return run(arguments, library)


def _list(arguments: argparse.Namespace, library: Library) -> int:
    from klineage_tui.card_queue import STANDINGS
    from klineage_tui.card_reading import item_from

    entries = [entry for entry in library.cards() if _wanted(arguments, entry)]
    if arguments.twins:
        return _twins(arguments, entries)
    items = sorted(
        (item_from(entry) for entry in entries), key=lambda item: (STANDINGS.index(item.standing), item.id)
    )
    if arguments.json:
        print_json([_row(item, entry) for item, entry in _paired(items, entries)])
        return 0
    if not items:
        say("no cards here yet; klineage lift --into library makes them, klineage library pull brings others")
    from klineage_tui.text.columns import pad, widest

    cells = widest([item.id for item in items])
    for item in items:
        say(f"{item.standing:<12}  {pad(item.id, cells)}  {_best(item.card):<34}  {item.why}".rstrip())
    return 0


def _wanted(arguments: argparse.Namespace, entry: Entry) -> bool:
    wanted = {"status": arguments.status, "surface": arguments.surface, "action": arguments.word}
    return entry.card is None or all(getattr(entry.card, k) == v for k, v in wanted.items() if v)


def _paired(items: Iterable[Item], entries: Iterable[Entry]) -> list[tuple[Item, Entry]]:
    found = {entry.id: entry for entry in entries}
    return [(item, found[item.id]) for item in items]


def _row(item: Item, entry: Entry) -> dict[str, Any]:
    card = item.card
    return {
        "id": item.id,
        "status": card and card.status,
        "standing": item.standing,
        "why": item.why,
        "intent": card and card.intent,
        "action": card and card.action,
        "surface": card and card.surface,
        "effects": card and card.effects,
        "stale": item.marks.stale,
        "revision": entry.revision,
        "file": entry.file,
        "problem": entry.problem or None,
    }


def _best(card: Card | None) -> str:
    """The strongest claim of a card, with its trust beside it."""
    from klineage.numbers import gained

    if card is None or not card.effects:
        return ""
    best = max(card.effects, key=lambda effect: (effect.quantity == "time", effect.gain))
    return f"{gained(best.gain, best.low, best.high)}x {best.quantity.replace('_', ' ')} {best.trust}"


def _twins(arguments: argparse.Namespace, entries: Sequence[Entry]) -> int:
    from klineage.skill.library.curating import twins

    found = twins(entry.card for entry in entries if entry.card is not None)
    if arguments.json:
        print_json(found)
        return 0
    for pair in found:
        say(f"{pair.one}  {pair.two}: {pair.why}")
        say(
            f"    {shown_command(arguments, f'card merge {pair.one} {pair.two} --reason WHY')} makes them one"
        )
    if not found:
        say("no two cards look like one")
    return 0


def _show(arguments: argparse.Namespace, library: Library) -> int:
    from klineage.skill.staleness import stale, verified_scope

    if arguments.at:
        data = library.at(arguments.id, arguments.at)
        print_json({"id": arguments.id, "source": data}) if arguments.json else say(_text(data))
        return 0
    entry, data = library.entry(arguments.id), library.source(arguments.id)
    old = {} if entry.card is None else dict(stale(entry.card))
    if arguments.json:
        scope = entry.card and verified_scope(entry.card)
        print_json(
            {
                "id": entry.id, "card": entry.card, "problem": entry.problem or None, "revision": entry.revision,
                "stale": old, "verified_scope": scope, "source": _text(data),
            }
        )  # fmt: skip
    else:
        say(_text(data).rstrip("\n"))
        for key, fields in old.items():
            say(f"stale: {key} rests on {', '.join(fields)}, edited since")
    if entry.card is None:
        raise KlineageError(entry.problem)
    return 0


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _history(arguments: argparse.Namespace, library: Library) -> int:
    log = library.history(arguments.id)
    changes = [_changes(library, arguments.id, entry) for entry in log] if arguments.diff else []
    if arguments.json:
        from dataclasses import asdict

        rows = [asdict(entry) for entry in log]
        print_json([{**row, "changes": changes[i]} if changes else row for i, row in enumerate(rows)])
        return 0
    for number, entry in enumerate(log):
        say(f"{entry.commit[:10]}  {entry.when:%Y-%m-%d %H:%M}  {entry.who:<16}  {entry.title}")
        for line in entry.reason.splitlines():
            say(f"    {line}")
        for change in changes[number] if changes else ():
            say(f"    {change.field}: {short_value(change.before)} -> {short_value(change.after)}")
    return 0


def _changes(library: Library, card_id: str, entry: Revision) -> Sequence[Any]:
    """What a commit changed where it was made; nothing where the card came or went."""
    from klineage.skill.file import parse
    from klineage.skill.library.fields import changed_fields

    was = library.before(card_id, entry)
    if not entry.revision or not was:
        return ()
    try:
        after, before = (parse(data, f"{card_id}.md") for data in (library.at(card_id, entry.commit), was))
    except KlineageError as broken:
        from klineage.skill.library.fields import FieldChange

        return (FieldChange("file", "", str(broken)),)
    return changed_fields(before, after)


def _lint(arguments: argparse.Namespace, library: Library) -> int:
    entries = [library.entry(card_id) for card_id in arguments.ids] or list(library.cards())
    found = problem_rows(library, entries)
    if arguments.json:
        print_json(found)
    else:
        for row in found:
            say(problem_line(row))
        say(f"{plural(len(entries), 'card')}, {plural(len(found), 'problem')}")
    return 1 if any(row["severity"] == "error" for row in found) else 0


COMMANDS = {"card": card_command}
